/** What an answer that is none, or an error of the server, means. */

import { isQueueFSError, QueueFSError } from "../../core/errors.ts";
import { errorOfProblem } from "../../core/wire.ts";
import type { Received } from "./transport.ts";

/**
 * What is to be done about a failed attempt: `unsent` it did not reach the server, or nothing happened there, try again after a pause; `lost`
 * it may have happened, send it again, which is recognised; `refused` it will not get better, and says nothing of an attempt before; `final`
 * the request has its answer, which is this error.
 */
export type Failure = "unsent" | "lost" | "refused" | "final";

/** Sorts an answer that is an error, with the error that it tells of. */
export function readFailure(answer: Received, location: string): { readonly failure: Failure; readonly error: QueueFSError } {
  const error = errorOfProblem(parsed(answer.body));
  if (error !== undefined) {
    // A server that stops, or has enough to do, says so before it does anything.
    if (isQueueFSError(error, "closed") || isQueueFSError(error, "overloaded")) return { failure: "unsent", error };
    // The token is looked at first, and may be another one since the attempt before.
    const isRefusal = isQueueFSError(error, "unauthenticated") || isQueueFSError(error, "forbidden");
    return { failure: isRefusal ? "refused" : "final", error };
  }
  // Words of something between, or of a server that is none of ours.
  const { status } = answer;
  if (status === 429 || status === 503) return { failure: "unsent", error: unreachable(location, new Error(`HTTP status ${status}`)) };
  if (status === 502 || status === 504) return { failure: "lost", error: unreachable(location, new Error(`HTTP status ${status}`)) };
  return { failure: "refused", error: foreign(status, location) };
}

function foreign(status: number, location: string): QueueFSError {
  if (status === 413)
    return new QueueFSError(
      "message-too-large",
      `something before the server at ${location} takes no body so large; raise its limit, or send less at once`,
    );
  if (status === 401 || status === 407)
    return new QueueFSError(
      "unauthenticated",
      `something before the server at ${location} asks for a user that it knows (HTTP status ${status})`,
    );
  if (status === 403) return new QueueFSError("forbidden", `something before the server at ${location} does not let the request pass`);
  const what = status >= 300 && status < 400 ? "sends its clients elsewhere" : "does not answer as a QueueFS server does";
  return new QueueFSError("store-unsuitable", `what is at ${location} ${what} (HTTP status ${status}); check the address`);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** The error for a server that could not be reached in the time allowed. */
export function unreachable(location: string, cause: unknown): QueueFSError {
  return new QueueFSError(
    "store-unreachable",
    `no answer from the server at ${location}: ${textOf(cause)}; nothing changed; start it, or check the address`,
    { cause },
  );
}

/** The error for a step that was sent and whose answer never came. */
export function unknownOutcome(location: string, cause: unknown): QueueFSError {
  return new QueueFSError(
    "outcome-unknown",
    `the connection to ${location} broke after the step was sent, and no answer could be had: it may or may not have happened (${textOf(cause)})`,
    { cause },
  );
}
