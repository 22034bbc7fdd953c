/** What a request is beside what `Request` tells: whether its client is still there. The one who holds the socket knows. */

import type { BodyReading } from "./body.ts";

/** One request and its answer, as whoever holds the socket sees them. */
export interface Exchange {
  /** Aborted when the client goes away before its answer is written. */
  readonly signal: AbortSignal;
  /** Whether that has happened. To ask is free, and a signal is not. */
  readonly isGone: boolean;
  /** Has `listener` called, once at most, when the answer did not reach the client, as far as that can be known. */
  onLost(listener: () => void): void;
  /** The body, read without detours. @throws whatever `reading` throws; QueueFSError `aborted` when it breaks off */
  readBody(reading: BodyReading): Promise<Uint8Array>;
}

/** The exchange of a request that came by no socket of ours. */
export function exchangeOf(request: Request, readStream: (body: Request["body"], reading: BodyReading) => Promise<Uint8Array>): Exchange {
  return {
    signal: request.signal,
    get isGone() {
      return request.signal.aborted;
    },
    onLost: (listener) => request.signal.addEventListener("abort", listener, { once: true }),
    readBody: (reading) => readStream(request.body, reading),
  };
}

/** What is told of a request that begins. */
export interface RequestBegin {
  readonly method: string;
}

/** What is told of a request whose answer is ready. */
export interface RequestEnd extends RequestBegin {
  /** The name of the route, or `none`. */
  readonly route: string;
  readonly status: number;
  /** Until the answer was ready to be sent, in milliseconds. */
  readonly durationMs: number;
  /** The error that the answer tells of, if it does. */
  readonly error?: unknown;
}

/** Is told of every request: for metrics, logs and traces. What it throws is not caught. */
export interface RequestObserver {
  begin?(request: RequestBegin): void;
  end?(request: RequestEnd): void;
}
