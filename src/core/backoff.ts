/** Exponential backoff with jitter. */

import type { Random } from "./clock.ts";

/** How waits grow from one attempt to the next. */
export interface Backoff {
  /** The longest wait before the second attempt, in milliseconds. */
  readonly firstMs: number;
  /** The longest wait of all, in milliseconds. */
  readonly maximumMs: number;
}

/**
 * How long to wait before the next attempt, in milliseconds: half of the doubled wait is fixed, the other half drawn, so that
 * callers who failed together do not return together ("equal jitter" of the AWS Architecture Blog, Exponential Backoff And Jitter, 2015).
 *
 * @param attempt how many attempts have failed, from 1
 */
export function backoffMs(backoff: Backoff, attempt: number, random: Random): number {
  const ceiling = Math.min(backoff.maximumMs, backoff.firstMs * 2 ** Math.min(attempt - 1, 50));
  return ceiling / 2 + (ceiling / 2) * random.fraction();
}
