/** Sees every request from its begin to its answer: for metrics, logs, traces, and whoever else observes. */

import type { Clock } from "../../core/clock.ts";
import { isTracingLoading, type Tracing, tracing } from "../../queue/tracing.ts";
import type { RequestEnd, RequestObserver } from "../exchange.ts";
import type { Metrics } from "./metrics.ts";
import type { RequestLog } from "./request-log.ts";

/** Names a request in logs, and in its answer. A client may give its own. */
export const REQUEST_ID_HEADER = "X-Request-Id";

/** What observes. */
export interface Observers {
  readonly metrics: Metrics;
  readonly log: RequestLog | undefined;
  readonly observer: RequestObserver | undefined;
}

/** What is seen of a request. */
interface Seen {
  readonly method: string;
  header(name: string): string | undefined;
}

/** What was found out of it by the time of its answer. */
interface Found {
  readonly route: string | undefined;
  readonly error: unknown;
}

/** Sees the requests of one server. */
export class Observation {
  readonly #observers: Observers;
  readonly #clock: Clock;
  /** Begins the ids of requests. */
  readonly #instance: string;
  #requests = 0;

  constructor(observers: Observers, clock: Clock, instance: string) {
    this.#observers = observers;
    this.#clock = clock;
    this.#instance = instance;
  }

  /** Has a request served. Answers with the headers that the answer gets by that, if any. */
  async run<Answered extends { readonly status: number }>(
    seen: Seen,
    found: Found,
    serve: () => Promise<Answered>,
  ): Promise<{ readonly answered: Answered; readonly headers: Readonly<Record<string, string>> | undefined }> {
    const { metrics, log, observer } = this.#observers;
    const begunMs = this.#clock.monotonicMs();
    const { method } = seen;
    metrics.begin();
    observer?.begin?.({ method });
    const loading = isTracingLoading();
    if (loading !== undefined) await loading;
    const trace = tracing();
    const answered = await (trace === undefined ? serve() : traced(trace, seen, found, serve));
    const { error, route = "none" } = found;
    const durationMs = this.#clock.monotonicMs() - begunMs;
    const ended: RequestEnd = { method, route, status: answered.status, durationMs, ...(error === undefined ? {} : { error }) };
    metrics.end(ended);
    let headers: Record<string, string> | undefined;
    if (log !== undefined) {
      const id = this.#idOf(seen);
      headers = { [REQUEST_ID_HEADER.toLowerCase()]: id };
      log.end(ended, id);
    }
    observer?.end?.(ended);
    return { answered, headers };
  }

  #idOf(seen: Seen): string {
    this.#requests += 1;
    const given = seen.header(REQUEST_ID_HEADER);
    return given !== undefined && /^[\w.:-]{1,128}$/.test(given) ? given : `${this.#instance.slice(0, 8)}-${this.#requests.toString(36)}`;
  }
}

async function traced<Answered extends { readonly status: number }>(
  trace: Tracing,
  seen: Seen,
  found: Found,
  serve: () => Promise<Answered>,
): Promise<Answered> {
  const { method } = seen;
  let answered: Answered | undefined;
  const header = (name: string): string | undefined => seen.header(name);
  await trace.serve(method, header, async (span) => {
    answered = await serve();
    const { route = "none" } = found;
    const { status } = answered;
    span.end(`${method} ${route}`, { "http.route": route, "http.response.status_code": status }, status >= 500);
  });
  return answered as Answered;
}
