/** Sleeping until a queue may have something: woken by the store, by the next due time, or by a slow look as a safety net. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { QueueName } from "../core/names.ts";

/** Looks in vain, one after the other, after which a look waits a little: a store that others keep busy wakes everybody all the time. */
const FREE_LOOKS = 3;
/** The longest of those waits, in milliseconds. */
const LONGEST_GAP_MS = 16;

/** Watches one queue for its consumer. One sleeps at a time. */
export class Availability {
  readonly #backend: Backend;
  readonly #queue: QueueName;
  readonly #clock: Clock;
  readonly #unsubscribe: () => void;
  #changes = 0;
  /** Whether the last change was said to be one of this very queue. */
  #isNamed = false;
  /** Looks and takes that found nothing, since something was found or it was quiet. */
  #vain = 0;
  #wake: (() => void) | undefined;

  constructor(backend: Backend, queue: QueueName, clock: Clock) {
    this.#backend = backend;
    this.#queue = queue;
    this.#clock = clock;
    this.#unsubscribe = backend.subscribe((queues) => {
      if (queues !== undefined && !queues.has(queue)) return;
      this.#changes += 1;
      this.#isNamed = queues !== undefined;
      this.#wake?.();
    });
  }

  /** A number that moves with every change; taken before a look, so that no change between look and sleep is missed. */
  get version(): number {
    return this.#changes;
  }

  /** Says that the consumer was given something. */
  found(): void {
    this.#vain = 0;
  }

  /**
   * Sleeps, after a take that gave nothing, until a take may give something, or the signal is aborted. Woken, and every `pollMs` in case a
   * wake-up was lost, it reads before the consumer takes: taking needs the store's lock, most changes of a busy store are none of this
   * queue, and a quiet one has nothing to give.
   *
   * @param version the version before that take
   */
  async sleep(version: number, pollMs: number, signal: AbortSignal): Promise<void> {
    this.#vain += 1;
    for (let looked = version; !signal.aborted; this.#vain += 1) {
      if (this.#changes !== looked && this.#isNamed && this.#vain === 1) return;
      if (this.#vain > FREE_LOOKS) await rest(this.#clock, Math.min(2 ** (this.#vain - FREE_LOOKS), LONGEST_GAP_MS), signal);
      looked = this.#changes;
      const dueMs = await this.#nextDue();
      if (dueMs === 0) return;
      if (this.#changes !== looked || signal.aborted) continue;
      const begunMs = this.#clock.monotonicMs();
      await this.#rest(Math.min(pollMs, dueMs ?? Number.POSITIVE_INFINITY), signal);
      if (this.#clock.monotonicMs() - begunMs > LONGEST_GAP_MS) this.#vain = 0;
    }
  }

  async #nextDue(): Promise<number | undefined> {
    try {
      return await this.#backend.nextDue(this.#queue);
    } catch {
      // The take that follows meets the same trouble, and tells.
      return 0;
    }
  }

  #rest(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.#wake = undefined;
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#wake = end;
      signal.addEventListener("abort", end);
      const timer = this.#clock.setTimer(end, waitMs);
    });
  }

  /** Stops watching. */
  close(): void {
    this.#unsubscribe();
    this.#wake?.();
  }
}

/** Resolves after a time, or as soon as the signal is aborted. */
export function rest(clock: Clock, waitMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    let timer: Timer | undefined;
    const end = (): void => {
      timer?.cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    timer = clock.setTimer(end, waitMs);
    signal?.addEventListener("abort", end, { once: true });
  });
}
