/** A worker: takes messages of one queue as they come and runs a handler on each, several at a time. */

import { setMaxListeners } from "node:events";
import { type Backoff, backoffMs, checkBackoff } from "../core/backoff.ts";
import { type Clock, type Random, systemClock, systemRandom, type Timer } from "../core/clock.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { MAX_DEQUEUE_LIMIT } from "../core/limits.ts";
import type { ReleaseAnswer } from "../core/message.ts";
import { checkInteger, readOptions } from "../core/options.ts";
import { Availability, rest } from "./availability.ts";
import { tell } from "./callback.ts";
import type { Delivery } from "./delivery.ts";
import type { Handler } from "./handler.ts";
import { Intake } from "./intake.ts";
import { keepLeasesWhileBusy, whenThreadIsReady } from "./lease-holding.ts";
import { NamedQueue } from "./named-queue.ts";
import { RateLimiter } from "./rate-limit.ts";
import { DEFAULT_BACKOFF, runHandler } from "./run-handler.ts";
import { MAX_GRACE_MS, type StopReport, WORKER_OPTIONS, type WorkerHealth, type WorkerOptions } from "./worker-options.ts";

export type { StopReport, WorkerHealth, WorkerOptions } from "./worker-options.ts";

/** Deliveries that may wait to be settled while further handlers run, beyond the concurrency. */
const MAX_UNSETTLED = 1_000;
/** How long a message may wait ahead before it is given back to whoever is free, in milliseconds. */
const LONGEST_AHEAD_MS = 1_000;
/** How long, beyond the grace, stopping waits for the store to hear what is acked and what is released, in milliseconds. */
const LAST_WORDS_MS = 500;
/** A lease that may be over before the second thread has begun, on a busy machine, in milliseconds. */
const SHORT_LEASE_MS = 10_000;
/** Waits between failed looks. */
const LOOK_BACKOFF: Backoff = { firstMs: 100, maximumMs: 5_000 };

/** What there is once the queue is there. */
interface Open {
  readonly intake: Intake;
  readonly availability: Availability;
}

type Settings = WorkerOptions & Required<Pick<WorkerOptions, "concurrency" | "handlerTimeoutMs" | "graceMs" | "pollIntervalMs">>;

/** Runs a handler on the messages of one queue. Starting, stopping, pausing twice is harmless; a stopped worker stays stopped. */
export class Worker<Value> implements AsyncDisposable {
  /** The queue it works on. */
  readonly queue: NamedQueue<Value>;
  readonly #handler: Handler<Value>;
  readonly #options: Settings;
  readonly #prefetch: number;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limiter: RateLimiter | undefined;
  readonly #stopTaking = new AbortController();
  readonly #stopHandlers = new AbortController();
  /** Deliveries in the hands of handlers. */
  readonly #handling = new Set<Delivery<Value>>();
  /** Deliveries being settled after their handlers ended, and those in the hands of handlers. */
  readonly #active = new Map<Delivery<Value>, Promise<void>>();
  /** Deliveries taken ahead, oldest first. */
  #ahead: Delivery<Value>[] = [];
  #aheadTimer: Timer | undefined;
  #open: Open | undefined;
  #state: "idle" | "running" | "stopping" | "stopped" = "idle";
  #paused = false;
  #failure: unknown;
  #released = 0;
  #loop: Promise<void> = Promise.resolve();
  #wakeTaking: (() => void) | undefined;
  #releaseThread: (() => Promise<void>) | undefined;
  #stopped: Promise<StopReport> | undefined;

  /** @throws QueueFSError `invalid-argument` */
  constructor(queue: NamedQueue<Value>, handler: Handler<Value>, options: WorkerOptions = {}) {
    const checked = readOptions("Worker", WORKER_OPTIONS, options);
    if (!(queue instanceof NamedQueue)) throw new QueueFSError("invalid-argument", `a worker needs a NamedQueue, got ${quote(queue)}`);
    if (typeof handler !== "function") throw new QueueFSError("invalid-argument", "a worker needs a handler, a function");
    if (options.backoff !== undefined) checkBackoff(options.backoff);
    this.queue = queue;
    this.#handler = handler;
    const { concurrency, handlerTimeoutMs, graceMs, pollIntervalMs } = checked;
    this.#options = { ...options, concurrency, handlerTimeoutMs, graceMs, pollIntervalMs };
    // What is ahead of a rate limit has been counted already, and would begin in a burst.
    this.#prefetch = options.rateLimit === undefined ? (checked.prefetch ?? Math.min(Math.max(concurrency, 50), 100)) : 0;
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

  /** Begins no more messages until resumed; running handlers go on, and what was taken ahead is released. */
  pause(): void {
    this.#paused = true;
    void this.#releaseAhead();
  }

  /** Takes messages again. */
  resume(): void {
    this.#paused = false;
    this.#wakeTaking?.();
  }

  /** How the worker is now. */
  get health(): WorkerHealth {
    const state = this.#state === "running" && this.#paused ? "paused" : this.#state;
    return { state, active: this.#handling.size, ...(this.#failure === undefined ? {} : { failure: this.#failure }) };
  }

  async #work(): Promise<void> {
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    const { signal } = this.#stopTaking;
    try {
      for (let failures = 0; !signal.aborted; ) {
        try {
          await this.#takeOnce(signal);
          failures = 0;
        } catch (error) {
          failures += 1;
          this.#failure = error;
          this.#report(error);
          // What handlers still do cannot be settled any more.
          if (isQueueFSError(error, "closed")) void this.stop({ graceMs: 0 });
          else await rest(this.#clock, backoffMs(LOOK_BACKOFF, failures, this.#random), signal);
        }
      }
    } finally {
      clearInterval(keepAlive);
      this.#open?.intake.close();
      this.#open?.availability.close();
    }
  }

  /** At the first take, not before: until then the store may be away. */
  async #openQueue(): Promise<Open> {
    const { backend, name } = this.queue;
    await this.queue.ensure();
    const { settings } = await backend.statistics(name);
    // A first message that keeps the event loop busy must not outlast its lease before there is a thread to renew it.
    if (this.queue.leaseMs < SHORT_LEASE_MS) await whenThreadIsReady(backend);
    const prefetch = settings.maxDeliveries === 1 ? 0 : this.#prefetch;
    return {
      intake: new Intake(this.#options.concurrency, prefetch, this.#clock, () => this.#wakeTaking?.()),
      availability: new Availability(backend, name, this.#clock),
    };
  }

  async #takeOnce(signal: AbortSignal): Promise<void> {
    this.#open ??= await this.#openQueue();
    const { intake, availability } = this.#open;
    await this.#whenFree(intake, signal);
    const room = Math.min(this.#room(intake), MAX_DEQUEUE_LIMIT);
    const limit = this.#limiter === undefined ? room : Math.min(room, await this.#limiter.wait(room, signal));
    if (signal.aborted || this.#paused || limit <= 0) return;
    const { handlerTimeoutMs, graceMs, pollIntervalMs } = this.#options;
    const { version } = availability;
    const deliveries = await this.queue.take(limit, true, handlerTimeoutMs === 0 ? Number.POSITIVE_INFINITY : handlerTimeoutMs + graceMs);
    // Sleeping may last: that the store answers again is to be seen meanwhile.
    this.#failure = undefined;
    this.#limiter?.use(deliveries.length);
    if (deliveries.length === 0) {
      await availability.sleep(version, pollIntervalMs, signal);
      return;
    }
    availability.found();
    this.#ahead.push(...deliveries);
    const isCautious = intake.claimed(deliveries.map(({ deliveryCount }) => deliveryCount));
    if (signal.aborted || this.#paused) await this.#releaseAhead();
    // Before any of them begins, since that may be the end of this process.
    else if (isCautious) await this.#releaseAhead(Math.max(0, intake.limit - this.#handling.size));
    this.#beginAhead();
  }

  /** How many more messages may be taken. What waits to be settled counts too beyond a bound, so that a slow store slows the taking. */
  #room(intake: Intake): number {
    const unsettled = this.#active.size - this.#handling.size;
    return Math.min(
      intake.limit + intake.ahead - this.#handling.size - this.#ahead.length,
      MAX_UNSETTLED + this.#options.concurrency - unsettled,
    );
  }

  /** Resolves when enough room for a claim is left and the worker is not paused. */
  async #whenFree(intake: Intake, signal: AbortSignal): Promise<void> {
    const isFree = (): boolean => !this.#paused && this.#room(intake) >= Math.max(1, Math.ceil(intake.ahead / 2));
    while (!signal.aborted && !isFree()) {
      await new Promise<void>((resolve) => {
        const go = (): void => {
          this.#wakeTaking = undefined;
          signal.removeEventListener("abort", go);
          resolve();
        };
        this.#wakeTaking = go;
        signal.addEventListener("abort", go, { once: true });
      });
      // Handlers that end in the same turn free their places together, and the next claim takes as many.
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
  }

  /** Begins what was taken ahead, as far as handlers are free. */
  #beginAhead(): void {
    const limit = this.#open?.intake.limit ?? 0;
    while (this.#handling.size < limit && this.#ahead.length > 0 && !this.#paused && !this.#stopTaking.signal.aborted) {
      this.#begin(this.#ahead.shift() as Delivery<Value>);
    }
    this.#watchAhead();
  }

  /** Gives back what waits ahead for long: another worker may be free. */
  #watchAhead(): void {
    this.#aheadTimer?.cancel();
    this.#aheadTimer = undefined;
    if (this.#ahead.length === 0) return;
    this.#aheadTimer = this.#clock.setTimer(() => {
      this.#open?.intake.waited();
      void this.#releaseAhead();
    }, LONGEST_AHEAD_MS);
  }

  #begin(delivery: Delivery<Value>): void {
    this.#handling.add(delivery);
    this.#active.set(delivery, this.#run(delivery));
  }

  async #run(delivery: Delivery<Value>): Promise<void> {
    const { handlerTimeoutMs, backoff = DEFAULT_BACKOFF, onSettled } = this.#options;
    const begunMs = this.#clock.monotonicMs();
    const outcome = await runHandler(this.#handler, delivery, {
      queue: this.queue.name,
      telemetry: this.queue.telemetry,
      clock: this.#clock,
      random: this.#random,
      backoff,
      settleAttempts: Number.POSITIVE_INFINITY,
      stopping: this.#stopHandlers.signal,
      onHandled: () => {
        this.#handling.delete(delivery);
        this.#open?.intake.handled(this.#clock.monotonicMs() - begunMs);
        this.#beginAhead();
        this.#wakeTaking?.();
      },
      onError: (error, about) => this.#report(error, about),
      ...(handlerTimeoutMs === 0 ? {} : { timeoutMs: handlerTimeoutMs }),
    });
    this.#active.delete(delivery);
    if (onSettled !== undefined) tell(() => onSettled(outcome, delivery.id));
    this.#wakeTaking?.();
  }

  #report(error: unknown, about?: { readonly id: string; readonly attempt: number }): void {
    // Errors with a message are in the telemetry already.
    if (about === undefined) this.queue.telemetry.recordError(error);
    const { onError } = this.#options;
    if (onError !== undefined) tell(() => onError(error, about));
  }

  /**
   * Stops: takes no more messages, gives running handlers `graceMs`, then aborts their signals and releases their messages at once, so that
   * others need not wait for the leases. It resolves within half a second after the grace, also when the store is away. Calling it again
   * answers the same.
   *
   * @param options `graceMs` instead of the worker's own
   * @throws QueueFSError `invalid-argument`
   */
  stop(options: { readonly graceMs?: number } = {}): Promise<StopReport> {
    const { graceMs = this.#options.graceMs } = options;
    this.#stopped ??= this.#stop(checkInteger("graceMs", graceMs, 0, MAX_GRACE_MS));
    return this.#stopped;
  }

  async #stop(graceMs: number): Promise<StopReport> {
    this.#state = "stopping";
    // Unreferenced timers let the process end; the grace must be kept all the same.
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    const handling = [...this.#handling];
    const releasedBefore = this.#released;
    this.#stopTaking.abort(new QueueFSError("closed", "the worker is stopping"));
    const releases = [this.#releaseAhead()];
    await this.#within(Promise.all([this.#loop, ...releases, ...this.#active.values()]), graceMs);
    this.#stopHandlers.abort(new QueueFSError("aborted", "the worker stops, and the handler's grace is over"));
    const left = handling.filter((delivery) => this.#handling.has(delivery));
    const settling = [...this.#active].filter(([delivery]) => !this.#handling.has(delivery)).map(([, settled]) => settled);
    releases.push(...left.map((delivery) => this.#release(delivery, () => delivery.release())));
    await this.#within(Promise.all([this.#loop, ...releases, ...settling]), LAST_WORDS_MS);
    await this.#releaseThread?.();
    clearInterval(keepAlive);
    this.#state = "stopped";
    return { finished: handling.length - left.length, released: this.#released - releasedBefore };
  }

  async #within(work: Promise<unknown>, atMostMs: number): Promise<void> {
    const over = new AbortController();
    await Promise.race([work, rest(this.#clock, atMostMs, over.signal)]);
    over.abort();
  }

  /** Releases what was taken ahead, but for the first `keep`. */
  async #releaseAhead(keep = 0): Promise<void> {
    const surplus = this.#ahead.splice(keep);
    if (this.#ahead.length === 0) this.#watchAhead();
    await Promise.all(surplus.map((delivery) => this.#release(delivery, () => delivery.putBack())));
    if (surplus.length > 0) this.#wakeTaking?.();
  }

  async #release(delivery: Delivery<Value>, release: () => Promise<ReleaseAnswer>): Promise<void> {
    try {
      if ((await release()) === "released") this.#released += 1;
    } catch (error) {
      this.#report(error);
    } finally {
      delivery.abandon();
    }
  }

  /** Stops, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
