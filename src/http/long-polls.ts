/** Requests that wait for something to happen: a bounded number at once, all of which end when the server stops. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { QueueFSError } from "../core/errors.ts";
import { SharedLooks } from "./shared-looks.ts";
import { WaitingRoom } from "./waiting-room.ts";

/** The long polls of one server. */
export class LongPolls {
  readonly room: WaitingRoom;
  /** The store, with looks that several may share. */
  readonly looks: SharedLooks;
  readonly #maximum: number;
  readonly #drain = new AbortController();
  /** One for each that waits. Listeners of one signal would be thousands, of which Node warns. */
  readonly #waiting = new Set<AbortController>();

  constructor(backend: Backend, maximum: number, clock: Clock = systemClock) {
    this.room = new WaitingRoom(backend, clock);
    this.looks = new SharedLooks(backend);
    this.#maximum = maximum;
  }

  /** How many wait. */
  get count(): number {
    return this.#waiting.size;
  }

  /** Aborted when the server stops: whoever waits answers with what there is. */
  get drained(): AbortSignal {
    return this.#drain.signal;
  }

  /**
   * Runs something that waits. Once the server stops it is not to wait: `waitMs` is then 0.
   *
   * @param signal aborted when the client goes away
   * @param wait gets how long it may wait, and a signal for both ends
   * @throws QueueFSError `overloaded` when too many wait already
   */
  async run<Result>(waitMs: number, signal: AbortSignal, wait: (waitMs: number, signal: AbortSignal) => Promise<Result>): Promise<Result> {
    if (waitMs === 0 || this.#drain.signal.aborted) return wait(0, signal);
    if (this.count >= this.#maximum)
      throw new QueueFSError("overloaded", `${this.count} requests wait already, as many as this server lets; ask again later`);
    // By hand: AbortSignal.any with a signal that lives as long as the server keeps every request's alive with it (Node 20).
    const either = new AbortController();
    const onAbort = (): void => either.abort(signal.reason);
    this.#waiting.add(either);
    signal.addEventListener("abort", onAbort);
    try {
      return await wait(waitMs, either.signal);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#waiting.delete(either);
    }
  }

  /** Ends all waits, and lets none begin. */
  end(): void {
    this.room.dismiss();
    const reason = new QueueFSError("closed", "the server stops");
    this.#drain.abort(reason);
    for (const either of this.#waiting) either.abort(reason);
  }
}
