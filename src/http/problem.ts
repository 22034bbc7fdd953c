/** Errors as answers: problem details (RFC 9457) with the status of the error table, or that of a row of HTTP's own. */

import { type ErrorCode, QueueFSError } from "../core/errors.ts";
import { PROBLEM_TYPE, problemOf } from "../core/wire.ts";

/** A failure that HTTP has a status of its own for, where the error table has only a wider one. */
export class RequestError extends QueueFSError {
  override readonly name = "RequestError";
  readonly #status: number;
  /** Headers that the answer must have. */
  readonly headers: Readonly<Record<string, string>>;

  /** @param status the HTTP status, which takes the place of that of the code */
  constructor(code: ErrorCode, status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(code, message);
    this.#status = status;
    this.headers = headers;
  }

  override get httpStatus(): number {
    return this.#status;
  }
}

/** The answer to a path that nothing is at. */
export function noSuchRoute(path: string): RequestError {
  return new RequestError(
    "path-not-found",
    404,
    `there is nothing at ${JSON.stringify(path.slice(0, 200))}; /openapi.json lists what there is`,
  );
}

/** The answer to a method that a path does not have. @param allowed those that it has */
export function wrongMethod(method: string, allowed: readonly string[]): RequestError {
  const list = allowed.join(", ");
  return new RequestError("unsupported", 405, `${method.slice(0, 40)} cannot be used here; use ${list}`, { allow: list });
}

/** How long a client should wait before it asks an overloaded server again, in seconds. */
const RETRY_AFTER_SECONDS = "1";

/** An error as the status, headers and body of an answer. @param more what the body says beside */
export function problemParts(
  error: unknown,
  more: (detail: string) => object = () => ({}),
): { readonly status: number; readonly headers: Record<string, string>; readonly body: string } {
  const problem = problemOf(error);
  const status = error instanceof RequestError ? error.httpStatus : problem.status;
  return {
    status,
    headers: {
      "content-type": PROBLEM_TYPE,
      ...(error instanceof RequestError ? error.headers : {}),
      ...(status === 503 ? { "retry-after": RETRY_AFTER_SECONDS } : {}),
    },
    body: JSON.stringify({ ...problem, status, ...more(problem.detail) }),
  };
}

/** An error as an answer. */
export function problemAnswer(error: unknown): Response {
  const { status, headers, body } = problemParts(error);
  return new Response(body, { status, headers });
}
