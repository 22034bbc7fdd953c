/** At most so many messages begun in so much time: a token bucket. */

import type { Clock } from "../core/clock.ts";
import { checkInteger } from "../core/options.ts";
import { rest } from "./availability.ts";

/** How many messages in how much time. */
export interface RateLimit {
  /** Messages begun at most in `perMs`, and at most at once. 1 to 1,000,000. */
  readonly count: number;
  /** The time, in milliseconds. 1 to 86,400,000. */
  readonly perMs: number;
}

/** Counts against a {@link RateLimit}. Full at the start. */
export class RateLimiter {
  readonly #limit: RateLimit;
  readonly #clock: Clock;
  #tokens: number;
  #sinceMs: number;

  /** @throws QueueFSError `invalid-argument` */
  constructor(limit: RateLimit, clock: Clock) {
    checkInteger("rateLimit.count", limit.count, 1, 1_000_000);
    checkInteger("rateLimit.perMs", limit.perMs, 1, 86_400_000);
    this.#limit = limit;
    this.#clock = clock;
    this.#tokens = limit.count;
    this.#sinceMs = clock.monotonicMs();
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(this.#limit.count, this.#tokens + ((nowMs - this.#sinceMs) * this.#limit.count) / this.#limit.perMs);
    this.#sinceMs = nowMs;
  }

  /** Waits until at least one may begin; answers how many of `wanted` may. 0 when the signal was aborted. */
  async wait(wanted: number, signal: AbortSignal): Promise<number> {
    for (;;) {
      this.#refill();
      if (signal.aborted) return 0;
      if (this.#tokens >= 1) return Math.min(wanted, Math.floor(this.#tokens));
      await rest(this.#clock, Math.ceil(((1 - this.#tokens) * this.#limit.perMs) / this.#limit.count), signal);
    }
  }

  /** Counts messages that have begun. */
  use(count: number): void {
    this.#tokens -= count;
  }
}
