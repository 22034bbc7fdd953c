/** Lets web pages of chosen other origins use the server (CORS). */

import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { INSTANCE_HEADER, REQUEST_HEADER, SESSION_HEADER } from "../core/wire.ts";

/** How long a browser may remember that it was allowed, in seconds: ten minutes. */
const MAX_AGE_SECONDS = 600;

/** Answers preflights, and says to the browser which pages may read answers. */
export function allowOrigins(origins: ReadonlySet<string>): MiddlewareHandler {
  return cors({
    origin: (origin) => (origins.has(origin) ? origin : null),
    allowMethods: ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"],
    allowHeaders: ["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", SESSION_HEADER, REQUEST_HEADER, INSTANCE_HEADER],
    exposeHeaders: [INSTANCE_HEADER],
    maxAge: MAX_AGE_SECONDS,
  });
}
