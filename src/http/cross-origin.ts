/** Lets web pages of chosen other origins use the server (CORS). */

import { INSTANCE_HEADER, REQUEST_HEADER, SESSION_HEADER } from "../core/wire.ts";

/** How long a browser may remember that it was allowed, in seconds: ten minutes. */
const MAX_AGE_SECONDS = "600";
const METHODS = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"].join(",");
const HEADERS = ["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", SESSION_HEADER, REQUEST_HEADER, INSTANCE_HEADER].join(
  ",",
);

/** What a browser must be told of which pages may read the answer, and of what they may send where it asks before (a preflight). */
export function originHeaders(
  origins: ReadonlySet<string>,
  request: { readonly method: string; header(name: string): string | undefined },
): Record<string, string> {
  if (origins.size === 0) return {};
  const origin = request.header("origin");
  const headers: Record<string, string> = { "access-control-expose-headers": INSTANCE_HEADER, vary: "Origin" };
  if (origin !== undefined && origins.has(origin)) headers["access-control-allow-origin"] = origin;
  if (request.method !== "OPTIONS") return headers;
  return {
    ...headers,
    vary: "Origin, Access-Control-Request-Headers",
    "access-control-max-age": MAX_AGE_SECONDS,
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": HEADERS,
  };
}
