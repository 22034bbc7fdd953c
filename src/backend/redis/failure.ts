/** What an error of the server or of the connection means. */

import { QueueFSError } from "../../core/errors.ts";

/**
 * What is to be done about a failed attempt: `load` the script was not known, send it whole; `wait` nothing happened, try again after a
 * pause; `lost` it may have happened, send it again, which is recognised; `unsent` it was not even sent; `final` it will not get better.
 */
export type Failure = "load" | "wait" | "lost" | "unsent" | "final";

// Errors by which the server says that nothing happened and that it will be better soon.
const PASSING = /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|READONLY|UNBLOCKED)\b/;

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the error is one that the server answered with. Those begin with a word in capitals. */
function isReply(error: unknown): boolean {
  return error instanceof Error && (error.name === "ReplyError" || /^[A-Z]{3,}[A-Z0-9]* /.test(error.message));
}

/** Sorts an error of an attempt. */
export function classify(error: unknown): Failure {
  const text = textOf(error);
  if (!isReply(error)) return text.includes("isn't writeable") ? "unsent" : "lost";
  if (text.startsWith("NOSCRIPT")) return "load";
  return PASSING.test(text) ? "wait" : "final";
}

/** Whether our own scripts raised it, which they do after they have looked for an earlier run and before they change anything. */
export function isCertain(error: unknown): boolean {
  return /^-?(OOM|WRONGTYPE|CORRUPT|CHANGED)\b/.test(textOf(error));
}

/** Whether the server refuses the user, which no waiting changes. */
export function isRefusal(error: unknown): boolean {
  return /^(NOAUTH|WRONGPASS|NOPERM|ERR invalid password|ERR AUTH|ERR DB index)/.test(textOf(error));
}

/** An error of the server in the words of QueueFS, for one that will not get better, or did not in the time allowed. */
export function translate(error: unknown, location: string): QueueFSError {
  if (error instanceof QueueFSError) return error;
  const text = textOf(error);
  const options = { cause: error };
  if (/^-?OOM\b/.test(text)) {
    return new QueueFSError(
      "store-full",
      `the memory of the server at ${location} is full; raise its maxmemory, or ack and drop messages`,
      options,
    );
  }
  if (/^(MISCONF|NOREPLICAS|READONLY)\b/.test(text))
    return new QueueFSError("store-read-only", `the server at ${location} takes no writes: ${text}`, options);
  if (/^(WRONGTYPE|CORRUPT)\b/.test(text)) {
    return new QueueFSError(
      "store-corrupt",
      `the namespace at ${location} holds what QueueFS did not write: ${text}; run queuefs doctor`,
      options,
    );
  }
  if (/^(UNCERTAIN|SUPERSEDED)\b/.test(text)) return unknownOutcome(location, error);
  if (/^(BUSY|TRYAGAIN)\b/.test(text))
    return new QueueFSError("store-busy", `the server at ${location} stayed busy, nothing changed: ${text}`, options);
  if (/^(LOADING|MASTERDOWN|CLUSTERDOWN|UNBLOCKED)\b/.test(text)) return unreachable(location, error);
  if (isRefusal(error)) {
    return new QueueFSError(
      "store-failed",
      `the server at ${location} refuses this user: ${text}; check user, password, database and the user's ACL rules`,
      options,
    );
  }
  return new QueueFSError("store-failed", `the server at ${location} answered with an error: ${text}`, options);
}

/** The error for a server that could not be reached in the time allowed. */
export function unreachable(location: string, cause: unknown): QueueFSError {
  const reason = cause === undefined ? "" : `: ${textOf(cause)}`;
  return new QueueFSError(
    "store-unreachable",
    `no answer from the server at ${location}${reason}; nothing changed; start it, or check the address`,
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

/** Whether a script found that the registry of queues, or the whole namespace, is not the one that it was called for; nothing happened. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof QueueFSError && error.cause instanceof Error && error.cause.message.startsWith("CHANGED");
}

/** The error for a call that was overtaken so often. */
export function overtaken(attempts: number): QueueFSError {
  return new QueueFSError(
    "store-busy",
    `queues were made and removed so fast that ${attempts} attempts came too late; nothing changed, try again`,
  );
}
