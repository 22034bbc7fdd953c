/** What a worker can be told, and what it tells. */

import type { Backoff } from "../core/backoff.ts";
import type { Clock, Random } from "../core/clock.ts";
import { MAX_DELAY_MS, MAX_DEQUEUE_LIMIT } from "../core/limits.ts";
import type { OptionTable } from "../core/options.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RunOutcome } from "./run-handler.ts";

/** Longest grace, in milliseconds. */
export const MAX_GRACE_MS = 3_600_000;

/** Options of a {@link Worker}, as a table. */
export const WORKER_OPTIONS = {
  concurrency: { type: "integer", minimum: 1, maximum: 10_000, default: 1, meaning: "handlers that run at once" },
  prefetch: {
    type: "integer",
    minimum: 0,
    maximum: MAX_DEQUEUE_LIMIT,
    meaning: "messages taken ahead of running handlers, while these are fast; the concurrency unless given, but from 50 to 100",
  },
  handlerTimeoutMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_DELAY_MS,
    default: 3_600_000,
    meaning: "a handler's time, in milliseconds, 0 for none",
  },
  graceMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_GRACE_MS,
    default: 10_000,
    meaning: "how long running handlers may take after stop, in milliseconds",
  },
  pollIntervalMs: {
    type: "integer",
    minimum: 10,
    maximum: 3_600_000,
    default: 5_000,
    meaning: "how often to look although nothing woke the worker, in milliseconds",
  },
  backoff: { type: "object", meaning: "how retries wait" },
  rateLimit: { type: "object", meaning: "messages begun in a time, by this worker" },
  keepLeasesWhileBusy: { type: "boolean", default: true, meaning: "a second thread renews leases while handlers keep the event loop busy" },
  onError: { type: "object", meaning: "told of every error" },
  onSettled: { type: "object", meaning: "told how each delivery ended" },
  clock: { type: "object", meaning: "the time" },
  random: { type: "object", meaning: "the randomness of backoff" },
} as const satisfies OptionTable;

/** Options of a {@link Worker}. */
export interface WorkerOptions {
  /** Handlers that run at once. 1 to 10,000, default 1. */
  readonly concurrency?: number;
  /**
   * Messages taken ahead of the running handlers at most, so that claims and acks travel in batches. Only while handlers are fast enough to
   * begin them within 100 ms; what has not begun after a second, or when the worker stops or pauses, is released. None beside messages that
   * were delivered before, with a rate limit, or in a queue whose messages may be delivered once only. 0 to 1,000, default the concurrency,
   * but from 50 to 100.
   */
  readonly prefetch?: number;
  /** A handler's time in milliseconds; then its signal is aborted and its message given back. Up to 366 days, 0 for none, default one hour. */
  readonly handlerTimeoutMs?: number;
  /**
   * How long running handlers may take after `stop`, in milliseconds; then their signals are aborted and their messages released. 0 to one
   * hour, default 10,000.
   */
  readonly graceMs?: number;
  /** How often to look although nothing woke the worker, in milliseconds. 10 to one hour, default 5,000. */
  readonly pollIntervalMs?: number;
  /** How retries wait after a throw. Default 1 s doubled up to 5 minutes, with jitter. */
  readonly backoff?: Backoff;
  /** At most so many messages begun in so much time, by this worker. Default no limit. */
  readonly rateLimit?: RateLimit;
  /**
   * Whether a second thread renews leases while handlers keep the event loop busy, for leases of a second or more, until `handlerTimeoutMs`
   * and `graceMs` have passed. Default true; not on memory stores, nor in bundled programs.
   */
  readonly keepLeasesWhileBusy?: boolean;
  /** Told of every error: of handlers and of settling (with message id and attempt), of looking for work. What it throws becomes a warning. */
  readonly onError?: (error: unknown, about?: { readonly id: string; readonly attempt: number }) => void;
  /** Told how each delivery ended. What it throws becomes a warning. */
  readonly onSettled?: (outcome: RunOutcome, id: string) => void;
  /** The time; the host's unless given. */
  readonly clock?: Clock;
  /** The randomness of backoff; the host's unless given. */
  readonly random?: Random;
}

/** How a worker is. */
export interface WorkerHealth {
  readonly state: "idle" | "running" | "paused" | "stopping" | "stopped";
  /** Handlers running now. */
  readonly active: number;
  /**
   * The last failure to look for work, if looking has not succeeded since: a worker that cannot reach its store is not an idle one. A worker
   * whose queue was removed goes on looking, every few seconds, and works again once somebody has made it anew; one whose store was closed
   * is stopped.
   */
  readonly failure?: unknown;
}

/** How stopping ended. */
export interface StopReport {
  /** Handlers that came to their end within the grace. */
  readonly finished: number;
  /**
   * Messages released: not begun, or their handlers did not come to their end. A message that the store could not be told of in time is not
   * counted; it comes back when its lease ends.
   */
  readonly released: number;
}
