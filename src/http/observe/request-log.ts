/** Structured logs of requests, without what they carry: no payloads, receipts, tokens, names in paths, or queries. */

import { isQueueFSError } from "../../core/errors.ts";
import type { RequestEnd } from "../exchange.ts";

/** What logs are written to; a pino logger is one. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** An error as fields: with its words, so only for what is no fault of a request, which those would quote. */
export function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { error: { message: String(error) } };
  const { name, message, stack } = error;
  return {
    error: { type: name, ...(isQueueFSError(error) ? { code: error.code } : {}), message, ...(stack === undefined ? {} : { stack }) },
  };
}

/** Writes one line for each request. */
export class RequestLog {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The answer of a request is ready. */
  end({ method, route, status, durationMs, error }: RequestEnd, requestId: string): void {
    const fields = {
      requestId,
      method: method.slice(0, 16),
      route,
      status,
      durationMs: Math.round(durationMs * 1_000) / 1_000,
      ...(error === undefined ? {} : { code: isQueueFSError(error) ? error.code : "internal" }),
    };
    if (status === 503) this.#logger.warn(fields, "request");
    else if (status >= 500) this.#logger.error(fields, "request");
    // Looks and probes are many, and change nothing.
    else if (status < 400 && (method === "GET" || method === "HEAD")) this.#logger.debug(fields, "request");
    else this.#logger.info(fields, "request");
  }
}
