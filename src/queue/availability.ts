/** Sleeping until a queue may have something: woken by the store, by the next due time, or by a slow look as a safety net. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { QueueName } from "../core/names.ts";

/** Watches one queue for its consumers. */
export class Availability {
  readonly #backend: Backend;
  readonly #queue: QueueName;
  readonly #clock: Clock;
  readonly #unsubscribe: () => void;
  #changes = 0;
  #wake: (() => void) | undefined;

  constructor(backend: Backend, queue: QueueName, clock: Clock) {
    this.#backend = backend;
    this.#queue = queue;
    this.#clock = clock;
    this.#unsubscribe = backend.subscribe((queues) => {
      if (queues !== undefined && !queues.has(queue)) return;
      this.#changes += 1;
      this.#wake?.();
    });
  }

  /** A number that moves with every change; taken before a look, so that no change between look and sleep is missed. */
  get version(): number {
    return this.#changes;
  }

  /**
   * Sleeps until something changed since `version`, something is due, `pollMs` have passed, or the signal is aborted. Failing to ask
   * when something is due only means sleeping for the poll interval.
   */
  async sleep(version: number, pollMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#changes !== version) return;
    let dueMs: number | undefined;
    try {
      dueMs = await this.#backend.nextDue(this.#queue);
    } catch {
      // The next dequeue meets the same trouble, and tells.
      dueMs = undefined;
    }
    if (signal.aborted || this.#changes !== version) return;
    // Available "now" although the look found nothing: somebody else is about to take it, so don't look again at once.
    const waitMs = Math.min(pollMs, Math.max(dueMs ?? pollMs, 1));
    await this.#rest(waitMs, signal);
  }

  async #rest(waitMs: number, signal: AbortSignal): Promise<void> {
    const awake = new AbortController();
    this.#wake = () => awake.abort();
    try {
      await rest(this.#clock, waitMs, AbortSignal.any([signal, awake.signal]));
    } finally {
      this.#wake = undefined;
    }
  }

  /** Wakes whoever sleeps. */
  wake(): void {
    this.#changes += 1;
    this.#wake?.();
  }

  /** Stops watching. */
  close(): void {
    this.#unsubscribe();
    this.#wake?.();
  }
}

/** Resolves after a time, or as soon as the signal is aborted. */
export function rest(clock: Clock, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    let timer: Timer | undefined;
    const end = (): void => {
      timer?.cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    timer = clock.setTimer(end, waitMs);
    signal.addEventListener("abort", end, { once: true });
  });
}
