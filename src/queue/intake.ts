/** How many messages a worker may have in hand: as many as its handlers take, a few more where that is harmless, fewer after a crash. */

import type { Clock, Timer } from "../core/clock.ts";

/** What was taken ahead should have begun after so long, by the pace of the last handlers, in milliseconds. */
const AHEAD_MS = 100;
/** Weight of the last handler in that pace. */
const PACE_WEIGHT = 0.3;
/** A worker that has run a message delivered before for so long trusts itself with its whole concurrency, in milliseconds. */
const TRUST_MS = 1_000;

/**
 * Decides how many messages run at once and how many wait ahead of them. Messages ahead make claims and acks travel in batches, but
 * whoever holds them keeps them from others, and when its process dies each of them counts a delivery that it never had. So none are held
 * ahead while handlers are slow, and none beside messages that were delivered before: one of these may be what kills processes. For the
 * same reason a worker starts with one message, and goes on one by one while it is given such messages.
 */
export class Intake {
  readonly #concurrency: number;
  readonly #prefetch: number;
  readonly #clock: Clock;
  readonly #onGrow: () => void;
  #limit = 1;
  #isCautious = true;
  #paceMs: number | undefined;
  #isStuck = false;
  #trust: Timer | undefined;

  /** @param onGrow called when more may run than before */
  constructor(concurrency: number, prefetch: number, clock: Clock, onGrow: () => void) {
    this.#concurrency = concurrency;
    this.#prefetch = prefetch;
    this.#clock = clock;
    this.#onGrow = onGrow;
  }

  /** Handlers that may run at once now. */
  get limit(): number {
    return this.#limit;
  }

  /** Messages that may wait ahead of them now. */
  get ahead(): number {
    if (this.#isCautious || this.#isStuck || this.#paceMs === undefined) return 0;
    return Math.min(this.#prefetch, Math.floor((this.#limit * AHEAD_MS) / this.#paceMs));
  }

  /** Takes note of what a claim gave. Answers whether what cannot begin at once must be given back. */
  claimed(deliveryCounts: readonly number[]): boolean {
    this.#isCautious = deliveryCounts.some((count) => count > 1);
    if (!this.#isCautious) this.#grow(this.#concurrency);
    else if (this.#limit < this.#concurrency) this.#trust ??= this.#clock.setTimer(() => this.#grow(this.#concurrency), TRUST_MS);
    return this.#isCautious;
  }

  /** Takes note of a handler that has ended. */
  handled(tookMs: number): void {
    this.#isStuck = false;
    this.#paceMs = this.#paceMs === undefined ? tookMs : this.#paceMs + (tookMs - this.#paceMs) * PACE_WEIGHT;
    if (this.#limit < this.#concurrency) this.#grow(this.#limit + 1);
  }

  /** Takes note that messages have waited ahead for too long: none are held until a handler ends. */
  waited(): void {
    this.#isStuck = true;
  }

  #grow(limit: number): void {
    if (limit <= this.#limit) return;
    this.#limit = limit;
    if (limit === this.#concurrency) this.close();
    this.#onGrow();
  }

  /** Lets go of its timer. */
  close(): void {
    this.#trust?.cancel();
  }
}
