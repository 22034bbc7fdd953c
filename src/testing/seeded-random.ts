/** Randomness that a seed repeats exactly. */

import type { Random } from "../core/clock.ts";

/**
 * A source of randomness that gives the same numbers for the same seed. Clients of one store must share one instance: two with the same
 * seed would draw the same tokens, and two deliveries would have the same receipt.
 */
export class SeededRandom implements Random {
  #state: number;

  /** @param seed any whole number; only its lowest 32 bits count */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number in [0, 1), in steps of 2^-32. */
  fraction(): number {
    return this.#word() / 2 ** 32;
  }

  /** An integer in [0, 2^48). Repeatable, hence easy to guess: for tests only. */
  token(): number {
    return (this.#word() % 2 ** 16) * 2 ** 32 + this.#word();
  }

  // A Weyl sequence whose steps are scattered by multiplying and folding; every 32-bit state occurs once per period.
  #word(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let word = this.#state;
    word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
    word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
    return (word ^ (word >>> 16)) >>> 0;
  }
}
