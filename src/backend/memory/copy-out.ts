/** Copies of stored bytes for callers. */

import { markAsUntransferable } from "node:worker_threads";
import type { Entry } from "./entry.ts";

/** Bytes of a block from which small copies are cut. */
const BLOCK_BYTES = 16 * 1024;
/** The longest copy that is cut from a block; longer ones have a buffer of their own. */
const LARGEST_CUT_BYTES = 2 * 1024;

/**
 * Makes arrays that belong to the caller alone: nothing the caller writes into one shows in the store or in another copy.
 *
 * Allocating a buffer takes over a microsecond, more than all the rest of a delivery, so small copies are cut from a common block, as
 * Node.js does for its own small buffers: `data.buffer` is then larger than `data`. Blocks cannot be transferred to another thread,
 * which would take all copies cut from them along; posting a message copies it as ever.
 */
export class CopyOut {
  #block = new Uint8Array(0);
  #used = 0;

  /** A copy of the payload of a message. */
  copy(entry: Entry): Uint8Array {
    return this.copyBytes(entry.bytes, entry.start, entry.length);
  }

  /** A copy of a part of an array. */
  copyBytes(bytes: Uint8Array, start: number, length: number): Uint8Array {
    if (length > LARGEST_CUT_BYTES) return bytes.slice(start, start + length);
    if (this.#used + length > this.#block.length) this.#renew();
    const copy = new Uint8Array(this.#block.buffer, this.#used, length);
    copy.set(new Uint8Array(bytes.buffer, bytes.byteOffset + start, length));
    // Eight-byte steps, so that a caller can lay a view of any number type over a copy.
    this.#used += (length + 7) & ~7;
    return copy;
  }

  #renew(): void {
    this.#block = new Uint8Array(BLOCK_BYTES);
    this.#used = 0;
    markAsUntransferable(this.#block.buffer);
  }
}
