/** Back-pressure: a bound on what calls hold that have no answer yet. */

import { tooManyWaiting } from "./errors.ts";
import { DEFAULT_MAX_WAITING_BYTES } from "./limits.ts";

/** Bytes that a call counts for each of its items, beside their data: about what the call itself holds in memory. */
export const WAITING_ITEM_BYTES = 256;

/** The option `maxWaitingBytes`, the same for every store that has something to wait for. */
export const MAX_WAITING_BYTES_OPTION = {
  type: "integer",
  minimum: 1024,
  maximum: Number.MAX_SAFE_INTEGER,
  default: DEFAULT_MAX_WAITING_BYTES,
  meaning: "bytes of calls that store messages and wait, beyond which more are refused as store-busy",
} as const;

/** Counts the bytes of calls that store messages, so that a producer that never awaits is refused before it fills the memory. */
export class WaitingBytes {
  readonly #store: string;
  readonly #maximum: number;
  #bytes = 0;

  /**
   * @param store where the store is, for errors
   * @param maximum bytes beyond which no more calls are taken; a single call may have more
   */
  constructor(store: string, maximum: number) {
    this.#store = store;
    this.#maximum = maximum;
  }

  /** Counts a call from now on. @throws QueueFSError `store-busy` when too many wait: then it is not counted */
  take(bytes: number): void {
    if (this.#bytes > this.#maximum) throw tooManyWaiting(this.#store, this.#bytes);
    this.#bytes += bytes;
  }

  /** A call that was counted has its answer. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
