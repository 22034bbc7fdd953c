/**
 * The one error table of QueueFS. Every surface (library, files, HTTP, command line) derives what it tells from a row of
 * this table, so that the same failure keeps its meaning everywhere.
 */

/** What one kind of failure is called on each surface. */
export interface ErrorRow {
  /** POSIX name of the error, as file systems report it. */
  readonly errno: string;
  /** HTTP status code. */
  readonly httpStatus: number;
  /** Exit code of the command line, 1 to 125. */
  readonly exitCode: number;
  /** Whether the very same call may succeed later without anything being changed by the caller. */
  readonly retryable: boolean;
  /** What the code means, for the documentation. */
  readonly meaning: string;
}

function row(errno: string, httpStatus: number, exitCode: number, retryable: boolean, meaning: string): ErrorRow {
  return { errno, httpStatus, exitCode, retryable, meaning };
}

/** All errors, by code. The order is the order of docs/errors.md. */
export const ERROR_TABLE = {
  "invalid-argument": row("EINVAL", 400, 2, false, "an argument or option is missing, unknown, of the wrong type or out of bounds"),
  "invalid-name": row("EINVAL", 400, 2, false, "a queue name, message id, receipt or path is malformed"),
  "reserved-name": row("EINVAL", 400, 2, false, "a queue name uses a component that QueueFS keeps for itself"),
  "queue-not-found": row("ENOENT", 404, 4, false, "there is no queue of that name"),
  "path-not-found": row("ENOENT", 404, 4, false, "there is no file or directory at that path"),
  "message-not-found": row("ENOENT", 404, 4, false, "there is no such message or dead letter"),
  "task-not-found": row("ENOENT", 404, 4, false, "there is no task of that id, or it was removed after its end"),
  "task-ended": row("EPERM", 409, 20, false, "the task has ended or is being cancelled, so it takes no more work; nothing changed"),
  "task-active": row("EBUSY", 409, 21, false, "the task has not ended, so it can be neither removed nor tried again"),
  "task-failed": row("EIO", 500, 22, false, "the task that was waited for ended as failed"),
  "task-cancelled": row("ECANCELED", 500, 23, false, "the task that was waited for ended as cancelled"),
  "not-in-processing": row("ENOENT", 409, 5, false, "the receipt is stale, or no message of that id is in processing; nothing changed"),
  "wrong-mode": row("EACCES", 403, 13, false, "a control file was read although it is for writing, or the other way round"),
  "is-a-directory": row("EISDIR", 400, 14, false, "the path is a directory, where a file is needed"),
  "not-a-directory": row("ENOTDIR", 400, 14, false, "the path is a file, where a directory is needed"),
  "not-empty": row("ENOTEMPTY", 409, 15, false, "queues lie under the one to be removed and removal was not recursive"),
  "id-conflict": row(
    "EEXIST",
    422,
    6,
    false,
    "the same message id was used before with other bytes, or the same request id with other arguments",
  ),
  "message-too-large": row("EFBIG", 413, 7, false, "a message, or all of one call, exceeds the size limit"),
  "store-full": row("ENOSPC", 507, 10, true, "a limit of the store (messages, bytes, disk space, server memory) is reached"),
  "store-busy": row("EAGAIN", 503, 9, true, "other writers held the store for longer than the time allowed; nothing changed"),
  "store-unreachable": row("ENETUNREACH", 503, 9, true, "the store does not answer; nothing was sent, or nothing changed"),
  "outcome-unknown": row("EIO", 504, 11, false, "the connection broke after the step was sent: it may or may not have happened"),
  "store-read-only": row("EROFS", 503, 12, false, "the store can be read but not written"),
  "store-corrupt": row("EIO", 500, 16, false, "the store is damaged, or holds what QueueFS did not write"),
  "store-failed": row("EIO", 500, 16, false, "the store answered with an error that has no code of its own"),
  "store-unsuitable": row("ENOTSUP", 500, 17, false, "the store's version, schema or configuration cannot keep the promises of QueueFS"),
  "dependency-missing": row("ENOTSUP", 500, 17, false, "an optional package that this backend needs is not installed"),
  unsupported: row("ENOTSUP", 501, 17, false, "this backend or surface does not offer the operation"),
  "timed-out": row("ETIMEDOUT", 504, 8, true, "the wait ended before its condition came true"),
  unauthenticated: row("EACCES", 401, 24, false, "the server asks for a token, and none that it knows was sent"),
  forbidden: row(
    "EACCES",
    403,
    24,
    false,
    "the token, the host or the origin of the request does not allow the operation; nothing changed",
  ),
  overloaded: row("EAGAIN", 503, 9, true, "the server has as much to do at once as it takes; nothing changed"),
  aborted: row("ECANCELED", 499, 18, false, "the caller ended the operation"),
  closed: row("ESHUTDOWN", 503, 19, false, "the object was closed before the call"),
  internal: row("EIO", 500, 70, false, "an invariant of QueueFS is broken: a bug, please report it"),
} as const satisfies Record<string, ErrorRow>;

/** The code of an error, a key of {@link ERROR_TABLE}. */
export type ErrorCode = keyof typeof ERROR_TABLE;

/** Exit code of the command line when a queue had nothing to give; an expected end, not an error. */
export const EXIT_CODE_EMPTY = 3;

/** The only class of error that QueueFS throws on purpose. Surfaces choose their answer by {@link QueueFSError.code}. */
export class QueueFSError extends Error {
  override readonly name: string = "QueueFSError";
  /** Which row of the error table this is. */
  readonly code: ErrorCode;

  /**
   * @param code the row of {@link ERROR_TABLE}
   * @param message what was wrong, with which value, and what to do
   * @param options `cause`: the error underneath, if any
   */
  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  /** POSIX name of the error, for file surfaces. */
  get errno(): string {
    return ERROR_TABLE[this.code].errno;
  }

  /** HTTP status of the error. */
  get httpStatus(): number {
    return ERROR_TABLE[this.code].httpStatus;
  }

  /** Exit code of the command line. */
  get exitCode(): number {
    return ERROR_TABLE[this.code].exitCode;
  }

  /** Whether the very same call may succeed later. */
  get retryable(): boolean {
    return ERROR_TABLE[this.code].retryable;
  }
}

/** Whether `error` is a {@link QueueFSError}, and of `code` if one is given. */
export function isQueueFSError(error: unknown, code?: ErrorCode): error is QueueFSError {
  return error instanceof QueueFSError && (code === undefined || error.code === code);
}

/** The error for a queue that does not exist, with the words every surface uses ("not found"). */
export function queueNotFound(queue: string): QueueFSError {
  return new QueueFSError("queue-not-found", `queue ${quote(queue)} not found; create it first (mkdir, createQueue)`);
}

/** The error for a task that does not exist. */
export function taskNotFound(task: string): QueueFSError {
  return new QueueFSError("task-not-found", `task ${quote(task)} not found; it never was, or was removed after its end`);
}

/** The error for work that a task takes no more. @param status what it is instead of pending or running */
export function taskEnded(task: string, status: string): QueueFSError {
  return new QueueFSError("task-ended", `task ${quote(task)} is ${status} and takes no more work; make a new task`);
}

/** The error for a producer that is no longer its task's. @param reason what the task says of it */
export function producerLost(task: string, reason: string): QueueFSError {
  return new QueueFSError("task-ended", `task ${quote(task)} takes nothing more from this producer: ${reason}; make a new task`);
}

/** The error for removing or trying again a task that goes on. */
export function taskActive(task: string, status: string): QueueFSError {
  return new QueueFSError("task-active", `task ${quote(task)} is ${status}, not ended; wait for its end, or cancel it`);
}

/** The error for a producer that makes calls faster than the store answers, without awaiting any. @param bytes that wait already */
export function tooManyWaiting(store: string, bytes: number): QueueFSError {
  return new QueueFSError(
    "store-busy",
    `${store}: ${bytes} bytes of earlier calls wait for the store, so that no more are taken; await some of them, then try again`,
  );
}

/** The error for any call on an object that was closed. */
export function closedError(what: string): QueueFSError {
  return new QueueFSError("closed", `${what} is closed; open a new one`);
}

/** A broken invariant fails the operation, never the process around it. */
export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new QueueFSError("internal", `broken invariant: ${what}; this is a bug of QueueFS, please report it`);
}

/** A value as it may appear in a message: JSON, shortened to 100 characters, never throwing. */
export function quote(value: unknown): string {
  let text: string;
  try {
    text = typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? String(value));
  } catch {
    text = Object.prototype.toString.call(value);
  }
  return text.length > 100 ? `${text.slice(0, 97)}...` : text;
}
