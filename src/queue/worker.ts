/** A worker: takes messages of one queue as they come and runs a handler on each, several at a time. */

import { setMaxListeners } from "node:events";
import { type Backoff, backoffMs } from "../core/backoff.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { isQueueFSError, QueueFSError } from "../core/errors.ts";
import { MAX_DELAY_MS, MAX_DEQUEUE_LIMIT } from "../core/limits.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import { Availability, rest } from "./availability.ts";
import type { Delivery } from "./delivery.ts";
import type { Handler } from "./handler.ts";
import { keepLeasesWhileBusy } from "./lease-holding.ts";
import type { NamedQueue } from "./named-queue.ts";
import { type RateLimit, RateLimiter } from "./rate-limit.ts";
import { DEFAULT_BACKOFF, type RunOutcome, runHandler } from "./run-handler.ts";

/** Options of a {@link Worker}, as a table. */
export const WORKER_OPTIONS = {
  concurrency: { type: "integer", minimum: 1, maximum: 10_000, default: 1, meaning: "handlers that run at once" },
  prefetch: { type: "integer", minimum: 0, maximum: MAX_DEQUEUE_LIMIT, meaning: "messages taken ahead of the running handlers" },
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
    maximum: 3_600_000,
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
   * Messages taken ahead of the running handlers, so that claims and acks travel in batches. What is not begun when the worker stops is
   * released. 0 to 1,000, default the concurrency, at most 100.
   */
  readonly prefetch?: number;
  /** A handler's time in milliseconds; then its signal is aborted and its message given back. Up to 366 days, 0 for none, default one hour. */
  readonly handlerTimeoutMs?: number;
  /** How long running handlers may take after `stop`, in milliseconds; then their messages are released. 0 to one hour, default 10,000. */
  readonly graceMs?: number;
  /** How often to look although nothing woke the worker, in milliseconds. 10 to one hour, default 5,000. */
  readonly pollIntervalMs?: number;
  /** How retries wait after a throw. Default 1 s doubled up to 5 minutes, with jitter. */
  readonly backoff?: Backoff;
  /** At most so many messages begun in so much time, by this worker. Default no limit. */
  readonly rateLimit?: RateLimit;
  /** Whether a second thread renews leases while handlers keep the event loop busy. Default true; not on memory stores. */
  readonly keepLeasesWhileBusy?: boolean;
  /** Told of every error: of handlers (with message id and attempt), of settling, of looking for work. */
  readonly onError?: (error: unknown, about?: { readonly id: string; readonly attempt: number }) => void;
  /** Told how each delivery ended. */
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
  /** The last failure to look for work, if looking has not succeeded since: a worker that cannot reach its store is not an idle one. */
  readonly failure?: unknown;
}

/** How stopping ended. */
export interface StopReport {
  /** Handlers that came to their end within the grace. */
  readonly finished: number;
  /** Messages released: not begun, or their handlers did not come to their end. */
  readonly released: number;
}

/** Deliveries that may wait to be settled while further handlers run, beyond the concurrency. */
const MAX_UNSETTLED = 1_000;
/** Waits between failed looks. */
const LOOK_BACKOFF: Backoff = { firstMs: 100, maximumMs: 5_000 };

/** Runs a handler on the messages of one queue. Starting, stopping, pausing twice is harmless; a stopped worker stays stopped. */
export class Worker<Value> implements AsyncDisposable {
  /** The queue it works on. */
  readonly queue: NamedQueue<Value>;
  readonly #handler: Handler<Value>;
  readonly #options: WorkerOptions &
    Required<Pick<WorkerOptions, "concurrency" | "prefetch" | "handlerTimeoutMs" | "graceMs" | "pollIntervalMs">>;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limiter: RateLimiter | undefined;
  readonly #stopTaking = new AbortController();
  readonly #stopHandlers = new AbortController();
  /** Deliveries in work, those being settled included. */
  readonly #active = new Map<Delivery<Value>, Promise<void>>();
  /** Deliveries taken ahead. */
  #ahead: Delivery<Value>[] = [];
  /** Handlers running now. */
  #running = 0;
  #state: "idle" | "running" | "stopping" | "stopped" = "idle";
  #paused = false;
  #failure: unknown;
  #loop: Promise<void> = Promise.resolve();
  #slotFreed: (() => void) | undefined;
  #resumed: (() => void) | undefined;
  #availability: Availability | undefined;
  #releaseThread: (() => Promise<void>) | undefined;
  #stopped: Promise<StopReport> | undefined;

  /** @throws QueueFSError `invalid-argument` */
  constructor(queue: NamedQueue<Value>, handler: Handler<Value>, options: WorkerOptions = {}) {
    const checked = readOptions("Worker", WORKER_OPTIONS, options);
    if (typeof handler !== "function") throw new QueueFSError("invalid-argument", "a worker needs a handler, a function");
    this.queue = queue;
    this.#handler = handler;
    const { concurrency, handlerTimeoutMs, graceMs, pollIntervalMs } = checked;
    this.#options = {
      ...options,
      concurrency,
      prefetch: checked.prefetch ?? Math.min(concurrency, 100),
      handlerTimeoutMs,
      graceMs,
      pollIntervalMs,
    };
    // One listener per running handler is no leak, however many there are.
    setMaxListeners(0, this.#stopTaking.signal, this.#stopHandlers.signal);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#limiter = options.rateLimit === undefined ? undefined : new RateLimiter(options.rateLimit, this.#clock);
  }

  /** Begins to take messages. Keeps the process alive until it is stopped. */
  start(): this {
    if (this.#state !== "idle") return this;
    this.#state = "running";
    if (this.#options.keepLeasesWhileBusy !== false) this.#releaseThread = keepLeasesWhileBusy(this.queue.backend, this.#clock);
    this.#loop = this.#work();
    return this;
  }

  /** Takes no more messages until resumed; running handlers go on. */
  pause(): void {
    this.#paused = true;
  }

  /** Takes messages again. */
  resume(): void {
    this.#paused = false;
    this.#resumed?.();
  }

  /** How the worker is now. */
  get health(): WorkerHealth {
    const state = this.#state === "running" && this.#paused ? "paused" : this.#state;
    return { state, active: this.#running, ...(this.#failure === undefined ? {} : { failure: this.#failure }) };
  }

  async #work(): Promise<void> {
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    const signal = this.#stopTaking.signal;
    try {
      for (let failures = 0; !signal.aborted; ) {
        try {
          await this.#takeOnce(signal);
          failures = 0;
          this.#failure = undefined;
        } catch (error) {
          failures += 1;
          this.#failure = error;
          this.#report(error);
          if (isQueueFSError(error, "closed")) return;
          await this.#pauseAfter(failures, signal);
        }
      }
    } finally {
      clearInterval(keepAlive);
      this.#availability?.close();
    }
  }

  async #pauseAfter(failures: number, signal: AbortSignal): Promise<void> {
    const waitMs = backoffMs(LOOK_BACKOFF, failures, this.#random);
    await rest(this.#clock, waitMs, signal);
  }

  async #takeOnce(signal: AbortSignal): Promise<void> {
    await this.#whenFree(signal);
    if (signal.aborted) return;
    if (this.#availability === undefined) {
      await this.queue.ensure();
      this.#availability = new Availability(this.queue.backend, this.queue.name, this.#clock);
    }
    const room = Math.min(this.#room, MAX_DEQUEUE_LIMIT);
    const limit = this.#limiter === undefined ? room : Math.min(room, await this.#limiter.wait(room, signal));
    if (signal.aborted || this.#paused || limit === 0) return;
    const { version } = this.#availability;
    const holdMs = this.#options.handlerTimeoutMs === 0 ? Number.POSITIVE_INFINITY : this.#options.handlerTimeoutMs + this.#options.graceMs;
    const deliveries = await this.queue.take(limit, true, holdMs);
    this.#limiter?.use(deliveries.length);
    if (signal.aborted) {
      await Promise.all(deliveries.map((delivery) => delivery.release()));
      return;
    }
    this.#ahead.push(...deliveries);
    this.#beginAhead();
    if (deliveries.length === 0) await this.#availability.sleep(version, this.#options.pollIntervalMs, signal);
  }

  /** How many more messages may be taken. What waits to be settled counts too beyond a bound, so that a slow store slows the taking. */
  get #room(): number {
    const { concurrency, prefetch } = this.#options;
    const unsettled = this.#active.size - this.#running;
    return Math.min(concurrency + prefetch - this.#running - this.#ahead.length, MAX_UNSETTLED + concurrency - unsettled);
  }

  /** Resolves when enough room for a claim is left and the worker is not paused. */
  async #whenFree(signal: AbortSignal): Promise<void> {
    const { concurrency, prefetch } = this.#options;
    while (!signal.aborted && (this.#paused || this.#room < Math.min(Math.max(1, Math.ceil(prefetch / 2)), concurrency + prefetch))) {
      await new Promise<void>((resolve) => {
        const go = (): void => {
          this.#slotFreed = undefined;
          this.#resumed = undefined;
          signal.removeEventListener("abort", go);
          resolve();
        };
        this.#slotFreed = go;
        this.#resumed = go;
        signal.addEventListener("abort", go, { once: true });
      });
      // Handlers that end in the same turn free their places together, and the next claim takes as many.
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
  }

  /** Begins what was taken ahead, as far as handlers are free. */
  #beginAhead(): void {
    while (this.#running < this.#options.concurrency && this.#ahead.length > 0 && !this.#stopTaking.signal.aborted) {
      this.#begin(this.#ahead.shift() as Delivery<Value>);
    }
  }

  #begin(delivery: Delivery<Value>): void {
    const { handlerTimeoutMs, backoff = DEFAULT_BACKOFF, onSettled } = this.#options;
    const run = async (): Promise<void> => {
      const outcome = await runHandler(this.#handler, delivery, {
        queue: this.queue.name,
        telemetry: this.queue.telemetry,
        clock: this.#clock,
        random: this.#random,
        backoff,
        stopping: this.#stopHandlers.signal,
        onHandled: () => {
          this.#running -= 1;
          this.#beginAhead();
          this.#slotFreed?.();
        },
        onError: (error, about) => this.#report(error, about),
        ...(handlerTimeoutMs === 0 ? {} : { timeoutMs: handlerTimeoutMs }),
      });
      this.#active.delete(delivery);
      onSettled?.(outcome, delivery.id);
      this.#slotFreed?.();
    };
    this.#running += 1;
    this.#active.set(delivery, run());
  }

  #report(error: unknown, about?: { readonly id: string; readonly attempt: number }): void {
    // Errors with a message are in the telemetry already.
    if (about === undefined) this.queue.telemetry.recordError(error);
    this.#options.onError?.(error, about);
  }

  /**
   * Stops: takes no more messages, gives running handlers `graceMs`, then aborts their signals and releases their messages at once, so that
   * others need not wait for the leases. Calling it again answers the same.
   */
  stop(options: { readonly graceMs?: number } = {}): Promise<StopReport> {
    this.#stopped ??= this.#stop(options.graceMs ?? this.#options.graceMs);
    return this.#stopped;
  }

  async #stop(graceMs: number): Promise<StopReport> {
    this.#state = "stopping";
    this.#stopTaking.abort(new QueueFSError("closed", "the worker is stopping"));
    await this.#loop;
    const ahead = this.#ahead.splice(0);
    const releasedAhead = Promise.all(ahead.map((delivery) => this.#release(delivery)));
    const running = [...this.#active.values()];
    const before = running.length;
    if (before > 0) await this.#settledWithin(running, graceMs);
    const left = [...this.#active.keys()];
    this.#stopHandlers.abort(new QueueFSError("aborted", "the worker stops, and the handler's grace is over"));
    const released = [...(await releasedAhead), ...(await Promise.all(left.map((delivery) => this.#release(delivery))))];
    await this.#releaseThread?.();
    this.#state = "stopped";
    return { finished: before - left.length, released: released.filter(Boolean).length };
  }

  async #settledWithin(running: readonly Promise<void>[], graceMs: number): Promise<void> {
    // Unreferenced timers let the process end; the grace must be kept all the same.
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    const over = new AbortController();
    await Promise.race([Promise.all(running), rest(this.#clock, graceMs, over.signal)]);
    over.abort();
    clearInterval(keepAlive);
  }

  async #release(delivery: Delivery<Value>): Promise<boolean> {
    try {
      return (await delivery.release()) === "released";
    } catch (error) {
      this.#report(error);
      return false;
    } finally {
      delivery.abandon();
    }
  }

  /** Stops, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
