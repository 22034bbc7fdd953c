/** The bytes of messages, the same on every read path of the file face. */

import { expect, test } from "vitest";
import { dataOf } from "../../src/core/codec.ts";
import { overEveryStore, readInParts, utf8 } from "../support/file-face.ts";

/** Bytes that others have lost or changed. */
const PAYLOADS: readonly (readonly [string, Uint8Array])[] = [
  ["nothing", new Uint8Array(0)],
  ["NUL", Uint8Array.of(0)],
  ["FF FE", Uint8Array.of(0xff, 0xfe)],
  ["C3 28", Uint8Array.of(0xc3, 0x28)],
  ["ED A0 80", Uint8Array.of(0xed, 0xa0, 0x80)],
  ["a byte order mark", Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)],
  ["all byte values", Uint8Array.from({ length: 256 }, (_, index) => index)],
  ["CRLF", utf8("a\r\nb\r\n")],
  ["a trailing newline", utf8("echo\n")],
  ["{}", utf8("{}")],
  ["null", utf8("null")],
  ['{"id":"x"}', utf8('{"id":"x"}')],
  ["text beyond the basic plane", utf8("日本 😀 \u2028 \ufffe")],
  ["8 MiB of noise", noise(8 * 1024 * 1024)],
];

overEveryStore("file bytes", (face) => {
  test.each(PAYLOADS)("%s is the same on every read path", async (_what, payload) => {
    const answer = await face.fs.write("/q/enqueue", payload);
    expect(answer.bytesWritten).toBe(payload.byteLength);
    const [listed, ...more]: [{ id: string; data: string }] = await face.json("/q/messages");
    expect(more).toEqual([]);
    sameBytes(listed, payload);
    sameBytes(await face.json("/q/peek"), payload);
    const taken = await face.take();
    sameBytes(taken, payload);
    expect([listed.id, taken.id]).toEqual([answer.id, answer.id]);
    await face.put("/q/.nack", JSON.stringify({ receipt: taken.receipt, giveUp: true, reason: "test" }));
    const [dead]: [{ data: string }] = await face.json("/q/.dead");
    sameBytes(dead, payload);
  });

  test.each(PAYLOADS)("%s is the same through handles, in odd pieces", async (_what, payload) => {
    const writing = await face.fs.open("/q/enqueue", { mode: "write" });
    const piece = Math.max(1, Math.ceil(payload.byteLength / 7));
    await writing.write(payload.subarray(0, 0));
    for (let start = 0; start < payload.byteLength; start += piece) await writing.write(payload.subarray(start, start + piece));
    expect((await writing.close()).bytesWritten).toBe(payload.byteLength);
    expect(await face.json("/q/status")).toEqual({ pending: 1, processing: 0 });
    const reading = await face.fs.open("/q/dequeue", { mode: "read" });
    sameBytes(JSON.parse((await readInParts(reading, Math.max(5, piece))).toString("utf8")), payload);
    await reading.close();
    expect(await face.json("/q/status")).toEqual({ pending: 0, processing: 1 });
  });

  test("an empty message, the message {} and an empty queue are three answers", async () => {
    expect(await face.text("/q/dequeue")).toBe("{}");
    expect(await face.text("/q/peek")).toBe("{}");
    expect(await face.text("/q/messages")).toBe("[]");
    await face.fs.write("/q/enqueue", new Uint8Array(0));
    await face.put("/q/enqueue", "{}");
    expect(await face.take()).toMatchObject({ data: "", deliveries: 1 });
    expect(await face.take()).toMatchObject({ data: "{}" });
    expect(await face.text("/q/dequeue")).toBe("{}");
  });
});

/** Bytes that look random and are the same each time. */
function noise(length: number): Uint8Array {
  let state = 0x2545f491;
  return Uint8Array.from({ length }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state & 0xff;
  });
}

function sameBytes(shown: { readonly data: string }, payload: Uint8Array): void {
  // Compared as a whole: a difference among 8 MiB must not be printed byte by byte.
  expect(Buffer.compare(dataOf(shown), payload)).toBe(0);
}
