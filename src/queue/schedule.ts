/** Repeated work: a message at every instant of a rhythm, one however many processes keep the same schedule. */

import { type Backoff, backoffMs } from "../core/backoff.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import { parseChosenMessageId } from "../core/names.ts";
import { checkInteger } from "../core/options.ts";
import { rest } from "./availability.ts";
import type { NamedQueue } from "./named-queue.ts";

/** When something is repeated. */
export type Rhythm =
  /** Every so many milliseconds, counted from 1970-01-01 UTC, so that all processes mean the same instants. 100 ms to 366 days. */
  | { readonly everyMs: number }
  /** A cron pattern of five fields, or six with seconds, in an IANA time zone (default UTC), daylight saving heeded. */
  | { readonly cron: string; readonly timeZone?: string };

/** Options of {@link repeat}. */
export interface RepeatOptions {
  /** Ends the schedule. */
  readonly signal?: AbortSignal;
  /** Told when an instant's message could not be stored; it is tried again until the next instant. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Waits between attempts to store. */
const STORE_BACKOFF: Backoff = { firstMs: 200, maximumMs: 10_000 };
/** Timers are set for this long at most, in milliseconds, so that a step of the wall clock is noticed. */
const LONGEST_REST_MS = 60_000;
const SHORTEST_RHYTHM_MS = 100;
const LONGEST_RHYTHM_MS = 366 * 24 * 3600 * 1000;

/**
 * Enqueues `value(instant)` at every instant of the rhythm until the signal is aborted or `stop` is called. The message's id is made of the
 * schedule's name and the instant, so of several processes with the same schedule one stores it and the others find it stored: as long as
 * their clocks differ by less than the store's `rememberMs` (ten minutes). Instants at which no process ran are left out. The queue is
 * complete between instants: nothing is stored ahead.
 *
 * @param name names the schedule within its queue: the same in every process
 * @throws QueueFSError `invalid-argument` for a rhythm that cannot be kept, `dependency-missing` when cron support does not load
 */
export async function repeat<Value>(
  queue: NamedQueue<Value>,
  name: string,
  rhythm: Rhythm,
  value: (instant: Date) => Value,
  options: RepeatOptions = {},
): Promise<{ stop(): Promise<void> }> {
  parseChosenMessageId(`${name}@${new Date(0).toISOString()}`);
  const next = await instantsOf(rhythm);
  const stopping = new AbortController();
  const signal = options.signal === undefined ? stopping.signal : AbortSignal.any([options.signal, stopping.signal]);
  const schedule = new Schedule(queue, name, next, value, options, signal);
  const running = schedule.run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** The function from a moment to the first instant after it; `undefined` when there is none. */
async function instantsOf(rhythm: Rhythm): Promise<(afterMs: number) => number | undefined> {
  if ("everyMs" in rhythm) {
    const everyMs = checkInteger("everyMs", rhythm.everyMs, SHORTEST_RHYTHM_MS, LONGEST_RHYTHM_MS);
    return (afterMs) => (Math.floor(afterMs / everyMs) + 1) * everyMs;
  }
  const { Cron } = await import("croner");
  try {
    const pattern = new Cron(rhythm.cron, { timezone: rhythm.timeZone ?? "UTC", paused: true });
    const next = (afterMs: number): number | undefined => pattern.nextRun(new Date(afterMs))?.getTime();
    next(0);
    return next;
  } catch (error) {
    throw new QueueFSError(
      "invalid-argument",
      `the cron pattern ${quote(rhythm.cron)} or time zone ${quote(rhythm.timeZone)} is not understood: ${String(error)}`,
      { cause: error },
    );
  }
}

class Schedule<Value> {
  readonly #queue: NamedQueue<Value>;
  readonly #name: string;
  readonly #next: (afterMs: number) => number | undefined;
  readonly #value: (instant: Date) => Value;
  readonly #options: RepeatOptions;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;

  constructor(
    queue: NamedQueue<Value>,
    name: string,
    next: (afterMs: number) => number | undefined,
    value: (instant: Date) => Value,
    options: RepeatOptions,
    signal: AbortSignal,
  ) {
    this.#queue = queue;
    this.#name = name;
    this.#next = next;
    this.#value = value;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    let lastMs = this.#clock.wallMs();
    while (!this.#signal.aborted) {
      // After a step back of the wall clock, instants that had their message are not given another.
      const instantMs = this.#next(Math.max(lastMs, this.#clock.wallMs()));
      if (instantMs === undefined) return;
      await this.#restUntil(instantMs);
      if (this.#signal.aborted) return;
      lastMs = instantMs;
      await this.#store(new Date(instantMs));
    }
  }

  async #restUntil(instantMs: number): Promise<void> {
    for (let leftMs = instantMs - this.#clock.wallMs(); leftMs > 0 && !this.#signal.aborted; leftMs = instantMs - this.#clock.wallMs()) {
      await rest(this.#clock, Math.min(leftMs, LONGEST_REST_MS), this.#signal);
    }
  }

  async #store(instant: Date): Promise<void> {
    const giveUpMs = this.#next(instant.getTime()) ?? Number.POSITIVE_INFINITY;
    for (let attempt = 1; !this.#signal.aborted; attempt += 1) {
      try {
        await this.#queue.enqueue(this.#value(instant), { id: `${this.#name}@${instant.toISOString()}` });
        return;
      } catch (error) {
        // Another process stored other bytes for the same instant: the instant has its message.
        if (error instanceof QueueFSError && error.code === "id-conflict") return;
        (this.#options.onError ?? ((failure: unknown) => process.emitWarning(String(failure))))(error);
        await rest(this.#clock, backoffMs(STORE_BACKOFF, attempt, this.#options.random ?? systemRandom), this.#signal);
        if (this.#clock.wallMs() >= giveUpMs) return;
      }
    }
  }
}
