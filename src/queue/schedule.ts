/** Repeated work: a message at every instant of a rhythm, one however many processes keep the same schedule. */

import { type Backoff, backoffMs } from "../core/backoff.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { DEFAULT_REMEMBER_MS } from "../core/limits.ts";
import { parseChosenMessageId } from "../core/names.ts";
import { checkInteger, type OptionTable, readOptions } from "../core/options.ts";
import { rest } from "./availability.ts";
import { tell, warn } from "./callback.ts";
import type { NamedQueue } from "./named-queue.ts";

/** When something is repeated. */
export type Rhythm =
  /** Every so many milliseconds, counted from 1970-01-01 UTC, so that all processes mean the same instants. 100 ms to 366 days. */
  | { readonly everyMs: number }
  /** A cron pattern of five fields, or six with seconds, in an IANA time zone (default UTC), daylight saving heeded. */
  | { readonly cron: string; readonly timeZone?: string };

/** Options of {@link repeat}, as a table. */
export const REPEAT_OPTIONS = {
  lateMs: {
    type: "integer",
    minimum: 0,
    maximum: 604_800_000,
    default: DEFAULT_REMEMBER_MS,
    meaning: "how late an instant's message may be stored, in milliseconds; later, the instant is left out",
  },
  signal: { type: "object", meaning: "ends the schedule" },
  onError: { type: "object", meaning: "told when an instant's message could not be stored, and when an instant is left out" },
  clock: { type: "object", meaning: "the time" },
  random: { type: "object", meaning: "the randomness of waits between attempts" },
} as const satisfies OptionTable;

/** Options of {@link repeat}. */
export interface RepeatOptions {
  /**
   * How late an instant's message may still be stored, in milliseconds, because the store was away or the process asleep; later, the instant
   * is left out and `onError` told. 0 to 7 days, default ten minutes. Longer than the store's `rememberMs`, and an instant may get a second
   * message when one process was cut off and another was not.
   */
  readonly lateMs?: number;
  /** Ends the schedule. */
  readonly signal?: AbortSignal;
  /** Told when an instant's message could not be stored, before it is tried again, and when an instant is left out. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
  /** The time; the host's unless given. */
  readonly clock?: Clock;
  /** The randomness of the waits between attempts; the host's unless given. */
  readonly random?: Random;
}

/** A schedule that is kept. */
export interface Repetition {
  /** Ends it; resolves when the step that may be running has ended. */
  stop(): Promise<void>;
  /** Resolves when it has ended: stopped, out of instants, or its store closed. */
  readonly ended: Promise<void>;
}

/** Waits between attempts to store. */
const STORE_BACKOFF: Backoff = { firstMs: 200, maximumMs: 10_000 };
/** Timers are set for this long at most, in milliseconds, so that a step of the wall clock is noticed. */
const LONGEST_REST_MS = 60_000;
/** A wall clock set back by more than this, in milliseconds, was wrong; less, and the hours are lived through again without messages. */
const LONGEST_STEP_BACK_MS = 3 * 3600 * 1000;
const SHORTEST_RHYTHM_MS = 100;
const LONGEST_RHYTHM_MS = 366 * 24 * 3600 * 1000;

/**
 * Enqueues `value(instant)` at every instant of the rhythm until the signal is aborted, `stop` is called or the store is closed. The message's
 * id is made of the schedule's name and the instant, so of several processes with the same schedule one stores it and the others find it
 * stored: as long as their clocks differ by less than the store's `rememberMs` (ten minutes). Of instants at which no process ran, the
 * last one is made up for if it is not over for long, see `lateMs`. The queue is complete between instants: nothing is stored ahead. A schedule keeps its process alive.
 *
 * @param name names the schedule within its queue: the same in every process
 * @param value the value for an instant; the same in every process
 * @throws QueueFSError `invalid-argument` for a rhythm that cannot be kept, `dependency-missing` when cron support does not load
 */
export async function repeat<Value>(
  queue: NamedQueue<Value>,
  name: string,
  rhythm: Rhythm,
  value: (instant: Date) => Value | Promise<Value>,
  options: RepeatOptions = {},
): Promise<Repetition> {
  parseChosenMessageId(idOf(name, new Date(0)));
  const { lateMs } = readOptions("repeat", REPEAT_OPTIONS, options);
  const next = await instantsOf(rhythm);
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  options.signal?.addEventListener("abort", stop, { once: true });
  if (options.signal?.aborted) stop();
  const schedule = new Schedule(queue, name, next, value, { ...options, lateMs }, stopping.signal);
  const ended = schedule.run().finally(() => options.signal?.removeEventListener("abort", stop));
  return {
    ended,
    stop() {
      stop();
      return ended;
    },
  };
}

function idOf(name: string, instant: Date): string {
  return `${name}@${instant.toISOString()}`;
}

/**
 * The function from a moment to the first instant after it, in milliseconds since 1970; it answers `undefined` when there is none.
 *
 * @throws QueueFSError `invalid-argument`, `dependency-missing`
 */
export async function instantsOf(rhythm: Rhythm): Promise<(afterMs: number) => number | undefined> {
  if (typeof rhythm !== "object" || rhythm === null)
    throw new QueueFSError("invalid-argument", `a rhythm is { everyMs } or { cron, timeZone }, got ${quote(rhythm)}`);
  if ("everyMs" in rhythm) {
    const everyMs = checkInteger("everyMs", rhythm.everyMs, SHORTEST_RHYTHM_MS, LONGEST_RHYTHM_MS);
    return (afterMs) => (Math.floor(afterMs / everyMs) + 1) * everyMs;
  }
  const { Cron } = await loadCron();
  try {
    const pattern = new Cron(rhythm.cron, { timezone: rhythm.timeZone ?? "UTC", paused: true });
    const next = (afterMs: number): number | undefined => pattern.nextRun(new Date(afterMs))?.getTime();
    if (next(0) === undefined) throw new Error("it names no instant");
    return next;
  } catch (error) {
    throw new QueueFSError(
      "invalid-argument",
      `the cron pattern ${quote(rhythm.cron)} or time zone ${quote(rhythm.timeZone)} is not understood: ${String(error)}`,
      { cause: error },
    );
  }
}

async function loadCron(): Promise<typeof import("croner")> {
  try {
    return await import("croner");
  } catch (error) {
    throw new QueueFSError("dependency-missing", "cron patterns need the package croner, which cannot be loaded: npm install croner", {
      cause: error,
    });
  }
}

class Schedule<Value> {
  readonly #queue: NamedQueue<Value>;
  readonly #name: string;
  readonly #next: (afterMs: number) => number | undefined;
  readonly #value: (instant: Date) => Value | Promise<Value>;
  readonly #options: RepeatOptions & { readonly lateMs: number };
  readonly #clock: Clock;
  readonly #signal: AbortSignal;

  constructor(
    queue: NamedQueue<Value>,
    name: string,
    next: (afterMs: number) => number | undefined,
    value: (instant: Date) => Value | Promise<Value>,
    options: RepeatOptions & { readonly lateMs: number },
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
    // Timers of clocks let the process end, which a schedule must not do between two instants.
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    try {
      await this.#keep();
    } catch (error) {
      this.#report(error);
    } finally {
      clearInterval(keepAlive);
    }
  }

  async #keep(): Promise<void> {
    let lastMs = this.#clock.wallMs();
    while (!this.#signal.aborted) {
      const nextMs = this.#next(lastMs);
      if (nextMs === undefined) return;
      if (!(await this.#restUntil(nextMs, lastMs - LONGEST_STEP_BACK_MS))) {
        lastMs = this.#clock.wallMs();
        continue;
      }
      if (this.#signal.aborted) return;
      // After a step back of the wall clock, instants that had their message are not given another: they are not after the last one.
      lastMs = this.#lastPassed(nextMs);
      if (!(await this.#store(new Date(lastMs)))) return;
    }
  }

  /** Of this instant, which has passed, and those that have passed since, the last one: the others are left out. */
  #lastPassed(instantMs: number): number {
    const nowMs = this.#clock.wallMs();
    const isOver = nowMs - instantMs > this.#options.lateMs;
    let lastMs = isOver ? (this.#next(nowMs - this.#options.lateMs - 1) ?? instantMs) : instantMs;
    if (lastMs > nowMs) return instantMs;
    for (let next = this.#next(lastMs); next !== undefined && next <= nowMs; next = this.#next(lastMs)) lastMs = next;
    return lastMs;
  }

  /** Rests until the instant has come; `false` when it turns out that the clock was wrong all the time and has been set right. */
  async #restUntil(instantMs: number, earliestMs: number): Promise<boolean> {
    while (!this.#signal.aborted) {
      const nowMs = this.#clock.wallMs();
      if (nowMs < earliestMs) return false;
      if (nowMs >= instantMs) return true;
      await rest(this.#clock, Math.min(instantMs - nowMs, LONGEST_REST_MS), this.#signal);
    }
    return true;
  }

  /** Stores the message of an instant, or leaves the instant out. Answers whether the schedule goes on. */
  async #store(instant: Date): Promise<boolean> {
    const instantMs = instant.getTime();
    const nextMs = this.#next(instantMs) ?? Number.POSITIVE_INFINITY;
    for (let attempt = 1; !this.#signal.aborted; attempt += 1) {
      const nowMs = this.#clock.wallMs();
      if (nowMs - instantMs > this.#options.lateMs || (attempt > 1 && nowMs >= nextMs)) {
        this.#report(new QueueFSError("timed-out", `the schedule ${quote(this.#name)} leaves out ${instant.toISOString()}: it is over`));
        return true;
      }
      try {
        await this.#queue.enqueue(await this.#value(instant), { id: idOf(this.#name, instant) });
        return true;
      } catch (error) {
        // Another process stored other bytes for the same instant: the instant has its message.
        if (isQueueFSError(error, "id-conflict")) return true;
        this.#report(error);
        if (isQueueFSError(error, "closed")) return false;
        await rest(this.#clock, backoffMs(STORE_BACKOFF, attempt, this.#options.random ?? systemRandom), this.#signal);
      }
    }
    return true;
  }

  #report(error: unknown): void {
    const { onError = warn } = this.#options;
    tell(() => onError(error));
  }
}
