/** Sees every request from its begin to its answer: for metrics, logs, traces, and whoever else observes. */

import type { Context, MiddlewareHandler } from "hono";
import type { Clock } from "../../core/clock.ts";
import { isTracingLoading, type Tracing, tracing } from "../../queue/tracing.ts";
import type { AppEnv } from "../app.ts";
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

/** A middleware that must come before all others. @param instance begins the ids of requests */
export function observation({ metrics, log, observer }: Observers, clock: Clock, instance: string): MiddlewareHandler<AppEnv> {
  let requests = 0;
  return async (c, next) => {
    const begunMs = clock.monotonicMs();
    const { method } = c.req;
    metrics.begin();
    observer?.begin?.({ method });
    const loading = isTracingLoading();
    if (loading !== undefined) await loading;
    const trace = tracing();
    await (trace === undefined ? next() : traced(trace, c, next));
    const { error, route = "none" } = c.var;
    const durationMs = clock.monotonicMs() - begunMs;
    const ended: RequestEnd = { method, route, status: c.res.status, durationMs, ...(error === undefined ? {} : { error }) };
    metrics.end(ended);
    if (log !== undefined) {
      requests += 1;
      const given = c.req.header(REQUEST_ID_HEADER);
      const id = given !== undefined && /^[\w.:-]{1,128}$/.test(given) ? given : `${instance.slice(0, 8)}-${requests.toString(36)}`;
      c.res.headers.set(REQUEST_ID_HEADER, id);
      log.end(ended, id);
    }
    observer?.end?.(ended);
  };
}

function traced(trace: Tracing, c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  const { method } = c.req;
  return trace.serve(
    method,
    (name) => c.req.header(name),
    async (span) => {
      await next();
      const { route = "none" } = c.var;
      const { status } = c.res;
      span.end(`${method} ${route}`, { "http.route": route, "http.response.status_code": status }, status >= 500);
    },
  );
}
