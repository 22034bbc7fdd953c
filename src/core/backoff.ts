/** Exponential backoff with jitter. */

import type { Random } from "./clock.ts";
import { checkInteger } from "./options.ts";

/** How waits grow from one attempt to the next. */
export interface Backoff {
  /** The longest wait before the second attempt, in milliseconds. */
  readonly firstMs: number;
  /** The longest wait of all, in milliseconds. */
  readonly maximumMs: number;
}

/** Checks a backoff that a caller gave. @throws QueueFSError `invalid-argument` unless both times are whole milliseconds, 1 to a day, the first not above the last */
export function checkBackoff(backoff: Backoff): Backoff {
  const longestMs = 24 * 3600 * 1000;
  checkInteger("backoff.maximumMs", backoff?.maximumMs, 1, longestMs);
  checkInteger("backoff.firstMs", backoff?.firstMs, 1, backoff.maximumMs);
  return backoff;
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
