/** Contents taken apart into lines and messages. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { PIECE_CHARACTERS, type RecordKind, records, type TextRecord } from "../../../src/http/agfs/records.ts";

async function taken(text: string, kind: RecordKind, partBytes: number): Promise<TextRecord[]> {
  const bytes = new TextEncoder().encode(text);
  async function* parts(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
  }
  const found: TextRecord[] = [];
  for await (const record of records(parts(), kind)) found.push(record);
  return found;
}

test("lines are those of the text, however it is cut into parts", async () => {
  const lines = fc.array(
    fc.string({ unit: "grapheme", maxLength: 9 }).map((text) => text.replace(/[\r\n]/g, "")),
    { minLength: 1, maxLength: 6 },
  );
  await fc.assert(
    fc.asyncProperty(lines, fc.constantFrom("\n", "\r\n"), fc.integer({ min: 1, max: 7 }), async (given, end, partBytes) => {
      const found = await taken(given.join(end), "lines", partBytes);
      const expected = given.map((text, index) => ({ number: index + 1, text }));
      if (expected.at(-1)?.text === "") expected.pop();
      expect(found).toEqual(expected);
    }),
  );
});

test("messages are the elements of the array, whatever texts they hold", async () => {
  const text = fc.oneof(fc.string({ unit: "binary", maxLength: 12 }), fc.constantFrom(',{"id":"', '[{"id":"x"}]', "]", "["));
  const message = fc.record({ id: text, data: text });
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 5 }), fc.integer({ min: 1, max: 9 }), async (given, partBytes) => {
      const found = await taken(JSON.stringify(given), "messages", partBytes);
      // "[]" has no message, and no text.
      expect(found.map((record) => JSON.parse(record.text))).toEqual(given);
      expect(found.map(({ number }) => number)).toEqual(given.map((_, index) => index + 1));
    }),
  );
});

test("long records come in pieces that overlap, so that nothing short lies between two", async () => {
  for (const at of [0, PIECE_CHARACTERS - 3, PIECE_CHARACTERS, 2 * PIECE_CHARACTERS - 3, 4 * PIECE_CHARACTERS]) {
    const text = `first\n${"x".repeat(at)}needle${"y".repeat(3 * PIECE_CHARACTERS)}\nlast`;
    for (const partBytes of [1_000, 1_000_000]) {
      const found = await taken(text, "lines", partBytes);
      expect(found.every((record) => record.text.length <= 2 * PIECE_CHARACTERS)).toBe(true);
      expect(found.filter((record) => record.text.includes("needle")).every(({ number }) => number === 2)).toBe(true);
      expect(found.some((record) => record.text.includes("needle"))).toBe(true);
      expect(found.at(-1)).toEqual({ number: 3, text: "last" });
    }
  }
});
