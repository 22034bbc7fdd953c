import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteReader, ByteWriter } from "../../../src/backend/redis/bytes.ts";
import { PROGRAMS } from "../../../src/backend/redis/programs.ts";
import { CallStart, encodeKeys, encodeScriptCall } from "../../../src/backend/redis/script-call.ts";

const fields = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("u8" as const), value: fc.nat(0xff) }),
    fc.record({ kind: fc.constant("u16" as const), value: fc.nat(0xffff) }),
    fc.record({ kind: fc.constant("u32" as const), value: fc.integer({ min: 0, max: 0xffff_ffff }) }),
    fc.record({ kind: fc.constant("u48" as const), value: fc.integer({ min: 0, max: 2 ** 48 - 1 }) }),
    fc.record({ kind: fc.constant("text" as const), value: fc.string({ unit: "grapheme" }) }),
    fc.record({ kind: fc.constant("bytes" as const), value: fc.uint8Array({ maxLength: 600 }) }),
  ),
);

test("what is written is read, whatever it is and in whatever order", () => {
  fc.assert(
    fc.property(fields, fc.nat(32), (rows, capacity) => {
      const writer = new ByteWriter(capacity);
      const lengths = rows.map((row) => {
        const before = writer.length;
        if (row.kind === "text") writer.text(row.value);
        else if (row.kind === "bytes") writer.bytes(row.value);
        else writer[row.kind](row.value);
        return writer.length - before;
      });
      const reader = new ByteReader(writer.view());
      for (const [index, row] of rows.entries()) {
        if (row.kind === "text") expect(reader.text(lengths[index] as number)).toBe(row.value);
        else if (row.kind === "bytes") expect(reader.copy(lengths[index] as number)).toEqual(row.value);
        else expect(reader[row.kind]()).toBe(row.value);
      }
      expect(reader.isAtEnd).toBe(true);
      expect(() => reader.u8()).toThrow("shorter than it says");
    }),
  );
});

test("a script call is what the protocol of Redis asks for, with keys and binary values byte for byte", () => {
  const keys = encodeKeys(["{n}:é", "{n}:b"]);
  const blob = Buffer.from([0, 13, 10, 255]);
  const { sha, text } = PROGRAMS.due;
  const expected = (name: string, script: string): Buffer =>
    Buffer.concat([
      Buffer.from(
        `*7\r\n$${name.length}\r\n${name}\r\n$${script.length}\r\n${script}\r\n$1\r\n2\r\n$6\r\n{n}:é\r\n$5\r\n{n}:b\r\n$2\r\nö\r\n$4\r\n`,
      ),
      blob,
      Buffer.from("\r\n"),
    ]);
  const start = new CallStart(PROGRAMS.due, keys, 2);
  for (const values of [
    ["ö", blob],
    [encodeKeys(["ö"]), blob],
    [encodeKeys(["ö"]), blob, encodeKeys([])],
  ]) {
    expect(encodeScriptCall(start.encode(false), values)).toEqual(expected("EVALSHA", sha));
    expect(encodeScriptCall(start.encode(true), values)).toEqual(expected("EVAL", text));
  }
});

test("all scripts are ASCII, so that their length in characters is that in bytes", () => {
  for (const { name, text } of Object.values(PROGRAMS)) expect(Buffer.byteLength(text), name).toBe(text.length);
});
