/** Codecs turn values into bytes and back, and say what they refuse. */

import { describe, expect, test } from "vitest";
import { bytesCodec, jsonCodec, type StandardSchema, textCodec } from "../../../src/queue/index.ts";

const evenNumber: StandardSchema<number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) =>
      typeof value === "number" && value % 2 === 0 ? { value } : { issues: [{ message: "must be even", path: ["n"] }] },
  },
};

describe("codecs", () => {
  test("bytes are the bytes", async () => {
    const data = Uint8Array.of(0, 255, 10);
    expect(await bytesCodec.decode(await bytesCodec.encode(data))).toEqual(data);
    expect(() => bytesCodec.encode("text" as never)).toThrow(/Uint8Array.*"text"/);
  });

  test("text keeps every character, a byte order mark too, and refuses what UTF-8 cannot hold", async () => {
    for (const text of ["", "\ufeffa", "a\0b", "\r\n", "日本 😀"]) expect(await textCodec.decode(await textCodec.encode(text))).toBe(text);
    expect(() => textCodec.encode("\ud800")).toThrow(/lone surrogates/);
    expect(() => textCodec.decode(Uint8Array.of(0xff))).toThrow();
  });

  test("JSON refuses what it cannot keep", async () => {
    const json = jsonCodec();
    expect(await json.decode(await json.encode({ a: [1, null] }))).toEqual({ a: [1, null] });
    const circle: { self?: unknown } = {};
    circle.self = circle;
    for (const value of [undefined, () => 0, circle, 1n])
      await expect(json.encode(value)).rejects.toMatchObject({ code: "invalid-argument" });
  });

  test("a validator judges both ways, and its words are passed on", async () => {
    const even = jsonCodec(evenNumber);
    expect(await even.decode(await even.encode(4))).toBe(4);
    await expect(even.encode(3)).rejects.toThrow(/to be enqueued.*n: must be even/);
    await expect(even.decode(new TextEncoder().encode("3"))).rejects.toThrow(/the message.*n: must be even/);
  });
});
