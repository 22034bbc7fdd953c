/**
 * Sends each request until it is answered or its time is over. That is safe because requests that change something carry a session and a number
 * by which the server knows them, and after a restart of the server, which forgets them, only what is harmless twice is sent again.
 */

import { randomBytes } from "node:crypto";
import { backoffMs } from "../../core/backoff.ts";
import { closedError, isQueueFSError, QueueFSError } from "../../core/errors.ts";
import { WAITING_ITEM_BYTES, WaitingBytes } from "../../core/waiting-bytes.ts";
import { INSTANCE_HEADER, REQUEST_HEADER, SESSION_HEADER } from "../../core/wire.ts";
import { type Failure, readFailure, unknownOutcome, unreachable } from "./failure.ts";
import type { HttpSettings } from "./options.ts";
import { type Received, type Sending, Transport, TransportError } from "./transport.ts";

/** One request of the API, which may be sent several times. */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: string | Uint8Array;
  /** The media type of the body. */
  readonly type?: string;
  /** The media type of the answer. */
  readonly accept?: string;
  /** `read`: changes nothing. `repeatable`: twice is as good as once. `once`: twice is another thing than once. */
  readonly kind: "read" | "repeatable" | "once";
  /** Whether it may take as long as the store is large. */
  readonly isLong?: boolean;
  /** Whether its body holds messages: such requests are refused when too many wait. */
  readonly storesMessages?: boolean;
}

/** A sequence of requests, one in the air at a time, which the server knows as one session. */
interface Lane {
  readonly session: string;
  number: number;
}

/** How an attempt ended without an answer to hand on. */
interface Failed {
  readonly failure: Failure;
  readonly error: QueueFSError;
}

/**
 * How long after it was sent first a request that must not happen twice may be sent again, in milliseconds. The server keeps the answers of a
 * session for ten minutes after its last request.
 */
const REPEATABLE_MS = 8 * 60 * 1000;
const RETRY_BACKOFF = { firstMs: 10, maximumMs: 500 } as const;

/** The connections to one server, and what is known of it. */
export class Connection {
  readonly location: string;
  readonly transport: Transport;
  readonly #settings: HttpSettings;
  readonly #idle: Lane[];
  readonly #waiting: ((lane: Lane) => void)[] = [];
  readonly #wakers = new Set<() => void>();
  readonly #waitingBytes: WaitingBytes;
  #instance: string | undefined;
  #calls = 0;
  // Until it was reached for the first time there is nothing to lose.
  #isDown = true;
  #isClosing = false;
  #whenIdle: (() => void) | undefined;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
    this.location = settings.url;
    this.transport = new Transport(settings);
    this.#waitingBytes = new WaitingBytes(settings.url, settings.maxWaitingBytes);
    const session = randomBytes(16).toString("base64url");
    this.#idle = Array.from({ length: settings.maxConnections }, (_, index) => ({ session: `${session}-${index}`, number: 0 })).reverse();
  }

  /** Sends a request until it is answered. @param patienceMs how long a server that is away is waited for. @throws QueueFSError */
  async run(request: ApiRequest, patienceMs = this.#settings.outageMs): Promise<Received> {
    if (this.#isClosing) throw closedError(`the connection to ${this.location}`);
    const waitingBytes = request.storesMessages === true ? (request.body?.length ?? 0) + WAITING_ITEM_BYTES : 0;
    if (waitingBytes > 0) this.#waitingBytes.take(waitingBytes);
    this.#calls += 1;
    // The lane that was used last comes first: its connection is open.
    const lane = this.#idle.pop() ?? (await new Promise<Lane>((resolve) => this.#waiting.push(resolve)));
    try {
      return await this.#repeat(request, lane, patienceMs);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#idle.push(lane);
      else next(lane);
      this.#waitingBytes.give(waitingBytes);
      this.#calls -= 1;
      if (this.#calls === 0) this.#whenIdle?.();
    }
  }

  async #repeat(request: ApiRequest, lane: Lane, patienceMs: number): Promise<Received> {
    const { clock, random } = this.#settings;
    const firstSentMs = clock.monotonicMs();
    let deadline: number | undefined;
    // The life of the server in which it may have happened.
    let mayHaveHappened: { readonly instance: string | undefined } | undefined;
    lane.number += 1;
    for (let attempt = 1; ; attempt += 1) {
      const instance = this.#instance;
      const ended = await this.#attempt(request, lane, request.kind === "once" ? mayHaveHappened?.instance : undefined);
      if (!("failure" in ended)) return ended;
      const { failure, error } = ended;
      if (failure === "refused") throw mayHaveHappened === undefined ? error : unknownOutcome(this.location, error);
      // Such an answer is not kept for a copy that comes late: as long as there may be one, the step is sent on until it has an answer that is.
      const isOpen = mayHaveHappened !== undefined && error.retryable;
      if (failure === "final" && !isOpen) {
        // What another life of the server refuses to do may be done anew where twice is as good as once.
        if (!(request.kind === "repeatable" && mayHaveHappened !== undefined && isQueueFSError(error, "outcome-unknown"))) throw error;
        mayHaveHappened = undefined;
      }
      const now = clock.monotonicMs();
      deadline ??= now + patienceMs;
      if (failure === "lost" && request.kind !== "read") mayHaveHappened ??= { instance };
      // Where nothing happened it is another request: the server may remember that it refused this one.
      if (mayHaveHappened === undefined) lane.number += 1;
      const isTooLate = request.kind === "once" && mayHaveHappened !== undefined && now - firstSentMs > REPEATABLE_MS;
      if (now >= deadline || isTooLate || this.#isClosing) throw this.#gaveUp(error, mayHaveHappened !== undefined);
      await this.#pause(Math.min(backoffMs(RETRY_BACKOFF, attempt, random), deadline - now));
    }
  }

  #gaveUp(error: QueueFSError, mayHaveHappened: boolean): QueueFSError {
    if (mayHaveHappened) return unknownOutcome(this.location, error);
    return this.#isClosing ? closedError(`the connection to ${this.location}`) : error;
  }

  async #attempt(request: ApiRequest, lane: Lane, instance: string | undefined): Promise<Received | Failed> {
    const { method, path, body, type, accept, kind, isLong } = request;
    const sending: Sending = {
      method,
      path,
      timeoutMs: isLong ? 0 : this.#settings.requestTimeoutMs,
      headers: {
        ...(type === undefined ? {} : { "content-type": type }),
        ...(accept === undefined ? {} : { accept }),
        ...(kind === "read" ? {} : { [SESSION_HEADER]: lane.session, [REQUEST_HEADER]: String(lane.number) }),
        ...(instance === undefined ? {} : { [INSTANCE_HEADER]: instance }),
      },
      ...(body === undefined ? {} : { body }),
    };
    let received: Received;
    try {
      received = await this.transport.exchange(sending);
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      this.#lost(error);
      return { failure: error.wasSent ? "lost" : "unsent", error: unreachable(this.location, error) };
    }
    const from = received.headers[INSTANCE_HEADER.toLowerCase()];
    if (typeof from === "string") this.#instance = from;
    if (received.status >= 200 && received.status < 300) {
      this.#isDown = false;
      return received;
    }
    return readFailure(received, this.location);
  }

  #lost(error: Error): void {
    if (this.#isDown || this.#isClosing) return;
    this.#isDown = true;
    this.#settings.onError(
      new QueueFSError("store-unreachable", `lost the connection to ${this.location}: ${error.message}; connecting again`),
    );
  }

  /** Waits until time has passed or it is being closed. A call that is being repeated keeps the process alive, as one in the air does. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wakers.delete(done);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wakers.add(done);
    });
  }

  /** Takes no more calls, waits for those in the air, but not for a server that is away, and lets go of the connections. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const wake of [...this.#wakers]) wake();
    let timer: ReturnType<typeof setTimeout> | undefined;
    if (this.#calls > 0) {
      const { requestTimeoutMs } = this.#settings;
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
        timer = setTimeout(resolve, requestTimeoutMs);
      });
    }
    clearTimeout(timer);
    this.transport.close();
  }
}
