/** Copies of stored bytes for callers. */

import { markAsUntransferable } from "node:worker_threads";
import type { Entry } from "./entry.ts";

/** Bytes of a block from which small copies are cut. */
const BLOCK_BYTES = 16 * 1024;
/** The longest copy that is cut from a block; longer ones have a buffer of their own. */
const LARGEST_CUT_BYTES = 2 * 1024;
/** The longest copy that is made word by word: copying at once needs a second view, which takes longer to make. */
const LARGEST_WORDWISE_BYTES = 64;

/**
 * Makes arrays that belong to the caller alone: nothing the caller writes into one shows in the store or in another copy.
 *
 * Allocating a buffer takes over a microsecond, more than all the rest of a delivery, so small copies are cut from a common block, as
 * Node.js does for its own small buffers: `data.buffer` is then larger than `data`. Blocks cannot be transferred to another thread,
 * which would take all copies cut from them along; posting a message copies it as ever.
 */
export class CopyOut {
  // `buffer` of an array is a call into the runtime, so it is kept.
  #buffer = new ArrayBuffer(0);
  #words = new Int32Array(this.#buffer);
  #used = 0;

  /** A copy of the payload of a message. */
  copy(entry: Entry): Uint8Array {
    const { segment, bytes, start, length } = entry;
    if (segment === undefined || length > LARGEST_CUT_BYTES) return this.copyBytes(bytes, start, length);
    const place = this.#cut(length);
    // What moved to another segment may begin between words.
    if (length <= LARGEST_WORDWISE_BYTES && (start & 3) === 0) {
      this.#copyWords(segment.words, start >> 2, place >> 2, (length + 3) >> 2);
      return new Uint8Array(this.#buffer, place, length);
    }
    const copy = new Uint8Array(this.#buffer, place, length);
    copy.set(new Uint8Array(segment.buffer, start, length));
    return copy;
  }

  #copyWords(source: Int32Array, from: number, to: number, count: number): void {
    const words = this.#words;
    for (let index = 0; index < count; index += 1) words[to + index] = source[from + index] as number;
  }

  /** A copy of a part of an array. */
  copyBytes(bytes: Uint8Array, start: number, length: number): Uint8Array {
    if (length > LARGEST_CUT_BYTES) return bytes.slice(start, start + length);
    const place = this.#cut(length);
    const copy = new Uint8Array(this.#buffer, place, length);
    copy.set(start === 0 && length === bytes.length ? bytes : bytes.subarray(start, start + length));
    return copy;
  }

  /** Cuts so many bytes from the block, which may be a new one afterwards. @returns where they begin */
  #cut(length: number): number {
    if (this.#used + length > this.#buffer.byteLength) this.#renew();
    const start = this.#used;
    // Eight-byte steps, so that a caller can lay a view of any number type over a copy.
    this.#used = start + ((length + 7) & ~7);
    return start;
  }

  #renew(): void {
    this.#buffer = new ArrayBuffer(BLOCK_BYTES);
    this.#words = new Int32Array(this.#buffer);
    this.#used = 0;
    markAsUntransferable(this.#buffer);
  }
}
