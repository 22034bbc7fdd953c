/** Exponential backoff with jitter. */

import type { Random } from "./clock.ts";
import { checkInteger, type OptionTable, readOptions } from "./options.ts";

/** How waits grow from one attempt to the next. */
export interface Backoff {
  /** The longest wait before the second attempt, in milliseconds. */
  readonly firstMs: number;
  /** The longest wait of all, in milliseconds. */
  readonly maximumMs: number;
}

const LONGEST_MS = 24 * 3600 * 1000;

/** Fields of `backoff`, as a table. */
export const BACKOFF_OPTIONS = {
  firstMs: {
    type: "integer",
    minimum: 1,
    maximum: LONGEST_MS,
    meaning: "the longest wait before the second attempt, in milliseconds; not above maximumMs, and needed",
  },
  maximumMs: { type: "integer", minimum: 1, maximum: LONGEST_MS, meaning: "the longest wait of all, in milliseconds; needed" },
} as const satisfies OptionTable;

/** Checks a backoff that a caller gave. @throws QueueFSError `invalid-argument` unless both times are whole milliseconds, 1 to a day, the first not above the last */
export function checkBackoff(backoff: Backoff): Backoff {
  const { firstMs, maximumMs } = readOptions("backoff", BACKOFF_OPTIONS, backoff);
  checkInteger("backoff.firstMs", firstMs, 1, checkInteger("backoff.maximumMs", maximumMs, 1, LONGEST_MS));
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
