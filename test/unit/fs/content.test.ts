/** Contents made piece by piece and read by offset; bytes staged by offset. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isQueueFSError, QueueFSError } from "../../../src/core/errors.ts";
import { LISTING_KEEP_BYTES } from "../../../src/core/limits.ts";
import { Content } from "../../../src/fs/content.ts";
import { StagedBytes } from "../../../src/fs/staged-bytes.ts";

async function* slowly(pieces: readonly Uint8Array[], drawn: { count: number }): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    drawn.count += 1;
    await Promise.resolve();
    yield piece;
  }
}

describe("content", () => {
  test("reads at any offsets, in any order and at once, are the bytes of the pieces joined", async () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 9 });
    const reads = fc.array(fc.record({ offset: fc.nat(70), length: fc.integer({ min: 1, max: 70 }) }), { maxLength: 9 });
    await fc.assert(
      fc.asyncProperty(pieces, reads, fc.boolean(), async (given, asked, isListing) => {
        const joined = Buffer.concat(given);
        const content = new Content(slowly(given, { count: 0 }), isListing);
        const answers = await Promise.all(asked.map(({ offset, length }) => content.read(offset, length)));
        answers.forEach((answer, index) => {
          const { offset, length } = asked[index] as { offset: number; length: number };
          expect(Buffer.from(answer)).toEqual(joined.subarray(offset, offset + length));
        });
        expect(Buffer.from(await content.readAll())).toEqual(joined);
      }),
    );
  });

  test("draws no more than was asked for", async () => {
    const drawn = { count: 0 };
    const content = new Content(slowly([Uint8Array.of(1, 2), Uint8Array.of(3), Uint8Array.of(4)], drawn), true);
    expect(await content.read(0, 2)).toEqual(Uint8Array.of(1, 2));
    expect(drawn.count).toBe(1);
    await content.end();
    expect(drawn.count).toBe(1);
  });

  test("a listing forgets what lies far behind and says so; a message stays whole", async () => {
    const piece = new Uint8Array(LISTING_KEEP_BYTES / 4).fill(7);
    const pieces = Array.from({ length: 12 }, () => piece);
    for (const isListing of [true, false]) {
      const content = new Content(slowly(pieces, { count: 0 }), isListing);
      for (let offset = 0; offset < pieces.length * piece.length; offset += piece.length) {
        expect((await content.read(offset, piece.length)).byteLength).toBe(piece.length);
      }
      const total = pieces.length * piece.length;
      expect((await content.read(total - LISTING_KEEP_BYTES, 5)).byteLength).toBe(5);
      const back = await content.read(0, 5).catch((error: unknown) => error);
      if (isListing) expect(isQueueFSError(back, "unsupported")).toBe(true);
      else expect(back).toEqual(Uint8Array.of(7, 7, 7, 7, 7));
    }
  });

  test("a read far behind the end of a short listing makes it forget nothing", async () => {
    const content = new Content(slowly([Uint8Array.of(1, 2), Uint8Array.of(3)], { count: 0 }), true);
    expect(await content.read(LISTING_KEEP_BYTES + 1_000, 5)).toEqual(new Uint8Array());
    expect(await content.read(0, 5)).toEqual(Uint8Array.of(1, 2, 3));
  });

  test("a source that fails is never taken for the end", async () => {
    const failure = new QueueFSError("store-unreachable", "away");
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Uint8Array.of(1, 2, 3);
      throw failure;
    }
    const content = new Content(failing(), true);
    expect(await content.read(0, 3)).toEqual(Uint8Array.of(1, 2, 3));
    for (let attempt = 0; attempt < 2; attempt += 1) await expect(content.read(3, 1)).rejects.toBe(failure);
    expect(await content.read(1, 2)).toEqual(Uint8Array.of(2, 3));
    await expect(content.readAll()).rejects.toBe(failure);
  });
});

test("staged bytes are those of an array of the same writes and cuts", () => {
  const step = fc.oneof(fc.record({ put: fc.uint8Array({ maxLength: 20 }), at: fc.nat(600) }), fc.record({ resize: fc.nat(600) }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const staged = new StagedBytes();
      let model: number[] = [];
      for (const one of steps) {
        if ("put" in one) {
          staged.put(one.put, one.at);
          while (one.put.length > 0 && model.length < one.at) model.push(0);
          one.put.forEach((byte, index) => {
            model[one.at + index] = byte;
          });
        } else {
          staged.resize(one.resize);
          model = Array.from({ length: one.resize }, (_, index) => model[index] ?? 0);
        }
        expect([...staged.view()]).toEqual(model);
      }
    }),
  );
});
