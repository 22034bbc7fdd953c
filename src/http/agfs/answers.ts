/** Answers in the forms that AGFS clients read: JSON objects, raw bytes, and errors as `{"error": text}`. */

import { type ErrorCode, QueueFSError } from "../../core/errors.ts";
import { problemOf } from "../../core/wire.ts";
import { RequestError } from "../problem.ts";
import type { Step } from "./call.ts";

/**
 * Words of which the text of an error must hold one: the text is all that pyagfs passes on, and agfs-shell looks for these words in it.
 */
const WORDS: { readonly [Code in ErrorCode]?: string } = {
  "queue-not-found": "not found",
  "path-not-found": "not found",
  "message-not-found": "not found",
  "task-not-found": "not found",
  "not-in-processing": "not found",
  "wrong-mode": "permission denied",
  forbidden: "permission denied",
  unauthenticated: "permission denied",
  "store-read-only": "permission denied",
  "is-a-directory": "is a directory",
  "not-a-directory": "not a directory",
  "not-empty": "not empty",
  unsupported: "not supported",
};

/** A JSON object. There is no answer without a body: pyagfs reads each as JSON. */
export function jsonAnswer(value: object, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", ...headers } });
}

/** The content of a file. */
export function bytesAnswer(content: Uint8Array | ReadableStream<Uint8Array>): Response {
  return new Response(content as ConstructorParameters<typeof Response>[0], { headers: { "content-type": "application/octet-stream" } });
}

/**
 * An error as an answer. Clients repeat writes by themselves: pyagfs after 502, 503 and 504, the Go SDK after any 5xx. So 503 says that
 * nothing was done, and a step that may have been done already, and would be done twice, is a conflict (409).
 */
export function errorAnswer(error: unknown, step: Step): Response {
  const { code, detail } = problemOf(error);
  const status = statusOf(error, code, step);
  const words = WORDS[code];
  const text = words === undefined || detail.toLowerCase().includes(words) ? detail : `${words}: ${detail}`;
  const headers = error instanceof RequestError ? error.headers : {};
  return jsonAnswer({ error: text, code }, status, status === 503 ? { ...headers, "retry-after": "1" } : headers);
}

function statusOf(error: unknown, code: ErrorCode, step: Step): number {
  const mayBeDone = code === "outcome-unknown" || code === "timed-out";
  if (mayBeDone && step === "once") return 409;
  // No 503, after which a client would try in vain: it stays like this until somebody changes it.
  if (code === "store-read-only") return 403;
  return error instanceof QueueFSError ? error.httpStatus : 500;
}
