/** When queues last changed, as far as this process was told: modification times for programs that look at them again and again. */

import type { Backend } from "../backend/contract.ts";
import type { Clock } from "../core/clock.ts";

/** Queues whose times are kept; beyond, those that changed longest ago get a time that is too late, never one that is too early. */
const MAX_QUEUES = 10_000;

/**
 * Follows the hints of a store, from the first question on: whoever never asks costs the store nothing. A time rises strictly with each hint,
 * also where the wall clock stands still or is set back.
 */
export class ChangeTimes {
  readonly #clock: Pick<Clock, "wallMs">;
  readonly #backend: Pick<Backend, "subscribe">;
  #unsubscribe: (() => void) | undefined;
  #ended = false;
  /** The one that changed longest ago comes first. */
  readonly #times = new Map<string, number>();
  /** Of all queues that have none of their own. */
  #floorMs = 0;
  #lastMs = 0;

  constructor(backend: Pick<Backend, "subscribe">, clock: Pick<Clock, "wallMs">) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /** When a queue last changed, in milliseconds since 1970-01-01 UTC. */
  of(queue: string): number {
    if (this.#unsubscribe === undefined && !this.#ended) this.#follow();
    return this.#times.get(queue) ?? this.#floorMs;
  }

  /** Follows no more. */
  end(): void {
    this.#ended = true;
    this.#unsubscribe?.();
  }

  #follow(): void {
    // What changed before is not known; no time is too early.
    this.#floorMs = this.#clock.wallMs();
    this.#lastMs = this.#floorMs;
    this.#unsubscribe = this.#backend.subscribe((queues) => {
      this.#lastMs = Math.max(this.#clock.wallMs(), this.#lastMs + 1);
      if (queues === undefined) {
        this.#floorMs = this.#lastMs;
        this.#times.clear();
      } else {
        for (const queue of queues) this.#set(queue);
      }
    });
  }

  #set(queue: string): void {
    this.#times.delete(queue);
    this.#times.set(queue, this.#lastMs);
    if (this.#times.size <= MAX_QUEUES) return;
    for (const [oldest, atMs] of this.#times) {
      this.#times.delete(oldest);
      this.#floorMs = Math.max(this.#floorMs, atMs);
      return;
    }
  }
}
