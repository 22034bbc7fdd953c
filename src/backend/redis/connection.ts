/**
 * One connection for commands. It is made anew when it breaks or falls silent, and each call is tried again until it is answered or
 * its time is over. That is safe because calls that change something carry a number by which the server knows them (session.ts).
 */

import { backoffMs } from "../../core/backoff.ts";
import type { Timer } from "../../core/clock.ts";
import { closedError, QueueFSError } from "../../core/errors.ts";
import type { OwnClient } from "./client.ts";
import { classify, type Failure, isCertain, isRefusal, translate, unknownOutcome, unreachable } from "./failure.ts";
import type { RedisSettings } from "./options.ts";

/** One call, which may be sent several times. */
export interface Call {
  /** Whether it changes something, so that an answer that never came leaves its outcome unknown. */
  readonly changes: boolean;
  /**
   * Sends it.
   *
   * @param whole with the whole script, since the server does not know its name
   * @param isRepeat again, while an earlier copy may still be under way
   */
  send(client: OwnClient, whole: boolean, isRepeat: boolean): Promise<unknown>;
}

/**
 * How long after it was sent first a call may be sent again, in milliseconds. The server keeps the answers of a session for ten minutes
 * after its last renewal, which is at most one minute old.
 */
const REPEATABLE_MS = 8 * 60 * 1000;
const RETRY_BACKOFF = { firstMs: 4, maximumMs: 250 } as const;
const RECONNECT_BACKOFF = { firstMs: 10, maximumMs: 500 } as const;

/** A moment, by both clocks. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** What ioredis is told, so that it neither queues nor resends: both are done here, where a repeat is recognised. */
export function clientSettings(settings: RedisSettings): object {
  return {
    lazyConnect: true,
    // With 0 every command that was in the air is rejected when the connection closes; with anything else some would never settle.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    connectTimeout: settings.connectTimeoutMs,
    keepAlive: 10_000,
    keyPrefix: "",
    retryStrategy: (attempt: number) => backoffMs(RECONNECT_BACKOFF, attempt, settings.random),
    // After a failover this server may be a replica for good: look the address up again.
    reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  };
}

/** The connection for commands. */
export class Connection {
  readonly location: string;
  readonly #client: OwnClient;
  readonly #settings: RedisSettings;
  readonly #wakers = new Set<() => void>();
  #lastError: unknown;
  #calls = 0;
  #inAir = 0;
  #progressMs = 0;
  #watchdog: Timer | undefined;
  #handshake: Timer | undefined;
  // Until it was ready for the first time there is nothing to lose.
  #isDown = true;
  #isClosed = false;
  #referenced: boolean | undefined;
  #whenIdle: (() => void) | undefined;

  constructor(client: OwnClient, settings: RedisSettings, location: string) {
    this.location = location;
    this.#client = client;
    this.#settings = settings;
    client.on("error", (error: Error) => this.#failed(error));
    client.on("connect", () => this.#connected());
    client.on("ready", () => this.#becameReady());
    client.on("close", () => this.#lost());
  }

  /**
   * Connects for the first time.
   *
   * @throws QueueFSError `store-unreachable`, or `store-failed` when the server refuses the user
   */
  async open(): Promise<void> {
    const deadline = this.#now() + this.#settings.connectTimeoutMs;
    // Its rejection says no more than the error events do.
    this.#client.connect().catch(() => {});
    while (!(await this.#untilReady(Math.min(100, deadline - this.#now())))) {
      if (isRefusal(this.#lastError)) throw translate(this.#lastError, this.location);
      if (this.#now() >= deadline) throw unreachable(this.location, this.#lastError);
    }
  }

  /** Sends a call until it is answered. @param sent now @throws QueueFSError what the answer means, or that there was none */
  run(call: Call, sent = this.instant()): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closedError(`the connection to ${this.location}`));
    this.#calls += 1;
    if (this.#client.status !== "ready") return this.#persist(call, undefined, sent);
    this.#takesOff(sent.monotonicMs);
    return call.send(this.#client, false, false).then(
      (reply) => {
        this.#landed();
        this.#finished();
        return reply;
      },
      (error: unknown) => {
        this.#landed();
        return this.#persist(call, error, sent);
      },
    );
  }

  async #persist(call: Call, first: unknown, sent: Instant): Promise<unknown> {
    try {
      return await this.#repeat(call, first, sent);
    } finally {
      this.#finished();
    }
  }

  async #repeat(call: Call, first: unknown, sent: Instant): Promise<unknown> {
    const deadline = this.#now() + this.#settings.outageMs;
    let error = first;
    let mayHaveHappened = false;
    let whole = false;
    for (let attempt = 1; ; attempt += 1) {
      const failure = error === undefined ? undefined : classify(error);
      if (failure === "lost" && call.changes) mayHaveHappened = true;
      if (failure === "load") whole = true;
      if (failure === "final")
        throw mayHaveHappened && !isCertain(error) ? unknownOutcome(this.location, error) : translate(error, this.location);
      if (failure === "wait" || failure === "unsent") await this.#pause(backoffMs(RETRY_BACKOFF, attempt, this.#settings.random));
      const isReady = this.#now() < deadline && (await this.#untilReady(deadline - this.#now()));
      if (!isReady || this.#isClosed) throw this.#gaveUp(failure, error, mayHaveHappened);
      // After that the server may have forgotten this session, and would take a repeat for a new call.
      if (mayHaveHappened && this.#isLongAgo(sent)) throw unknownOutcome(this.location, error);
      try {
        return await this.#attempt(call, whole, mayHaveHappened);
      } catch (thrown) {
        error = thrown;
      }
    }
  }

  #gaveUp(failure: Failure | undefined, error: unknown, mayHaveHappened: boolean): QueueFSError {
    if (mayHaveHappened) return unknownOutcome(this.location, error);
    if (this.#isClosed) return closedError(`the connection to ${this.location}`);
    return failure === "wait" ? translate(error, this.location) : unreachable(this.location, this.#lastError ?? error);
  }

  /** Now. */
  instant(): Instant {
    return { monotonicMs: this.#now(), wallMs: this.#settings.clock.wallMs() };
  }

  // Both clocks are asked: the one stands still while the host sleeps, the other can be stepped.
  #isLongAgo(sent: Instant): boolean {
    const { clock } = this.#settings;
    return clock.monotonicMs() - sent.monotonicMs > REPEATABLE_MS || Math.abs(clock.wallMs() - sent.wallMs) > REPEATABLE_MS;
  }

  async #attempt(call: Call, whole: boolean, isRepeat: boolean): Promise<unknown> {
    this.#takesOff(this.#now());
    try {
      return await call.send(this.#client, whole, isRepeat);
    } finally {
      this.#landed();
    }
  }

  #takesOff(nowMs: number): void {
    if (this.#inAir === 0) this.#progressMs = nowMs;
    this.#inAir += 1;
    this.#watch();
    this.#reference();
  }

  #landed(): void {
    this.#inAir -= 1;
    // A lone call had the connection for itself: only where others still wait does the time of this reply matter.
    if (this.#inAir > 0) this.#progressMs = this.#now();
  }

  #finished(): void {
    this.#calls -= 1;
    this.#reference();
    if (this.#calls === 0) this.#whenIdle?.();
  }

  /** Resolves when no call is in the air. */
  async whenIdle(): Promise<void> {
    if (this.#calls > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
  }

  #now(): number {
    return this.#settings.clock.monotonicMs();
  }

  // A connection may die without a word (a cable, a firewall, a server that is stopped): silence while calls are in the air tells.
  #watch(): void {
    this.#watchdog ??= this.#settings.clock.setTimer(() => {
      this.#watchdog = undefined;
      if (this.#inAir === 0) return;
      if (this.#now() - this.#progressMs >= this.#settings.commandTimeoutMs) this.#abandon("no answer within the command timeout");
      else this.#watch();
    }, this.#settings.commandTimeoutMs / 2);
  }

  #abandon(reason: string): void {
    this.#lastError = new Error(reason);
    // Ending it in good order would wait for the other side.
    if (this.#client.stream) this.#client.stream.destroy();
    else this.#client.disconnect(true);
  }

  #connected(): void {
    this.#handshake?.cancel();
    this.#handshake = this.#settings.clock.setTimer(() => {
      if (this.#client.status !== "ready") this.#abandon("no answer to the greeting within the connect timeout");
    }, this.#settings.connectTimeoutMs);
  }

  #becameReady(): void {
    this.#handshake?.cancel();
    this.#isDown = false;
    this.#lastError = undefined;
    this.#referenced = undefined;
    this.#reference();
    this.#wakeAll();
  }

  #lost(): void {
    this.#handshake?.cancel();
    if (this.#isClosed || this.#isDown) return;
    this.#isDown = true;
    const reason = this.#lastError instanceof Error ? `: ${this.#lastError.message}` : "";
    this.#settings.onError(new QueueFSError("store-unreachable", `lost the connection to ${this.location}${reason}; connecting again`));
  }

  #failed(error: Error): void {
    this.#lastError = error;
    this.#wakeAll();
  }

  // An idle store does not keep the process alive, a call in the air does.
  #reference(): void {
    const wanted = this.#calls > 0;
    if (wanted === this.#referenced) return;
    const { stream } = this.#client;
    if (!stream) return;
    this.#referenced = wanted;
    if (wanted) stream.ref?.();
    else stream.unref?.();
  }

  #wakeAll(): void {
    for (const wake of [...this.#wakers]) wake();
  }

  async #untilReady(atMostMs: number): Promise<boolean> {
    const deadline = this.#now() + atMostMs;
    while (this.#client.status !== "ready" && !this.#isClosed) {
      const left = deadline - this.#now();
      if (left <= 0) return false;
      await this.#pause(left);
      if (isRefusal(this.#lastError)) return this.#client.status === "ready";
    }
    return !this.#isClosed;
  }

  /** Waits until time has passed, the connection changed, or it was closed. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wakers.delete(done);
        timer.cancel();
        resolve();
      };
      const timer = this.#settings.clock.setTimer(done, ms);
      this.#wakers.add(done);
    });
  }

  /** Lets go of the server. Calls still in the air fail. */
  close(): void {
    this.#isClosed = true;
    this.#watchdog?.cancel();
    this.#handshake?.cancel();
    this.#client.disconnect();
    this.#client.stream?.destroy();
    this.#wakeAll();
  }
}
