/** Checks of what a caller asks of tasks, shared by all backends. Each function returns the checked value with its defaults filled in. */

import { QueueFSError, quote } from "./errors.ts";
import {
  DEFAULT_FAILED_TASK_KEEP_MS,
  DEFAULT_PAGE_ITEMS,
  DEFAULT_TASK_KEEP_MS,
  MAX_LEASE_MS,
  MAX_PAGE_ITEMS,
  MAX_TASK_JSON_BYTES,
  MAX_TASK_KEEP_MS,
  MAX_TASK_RESOURCE_CHARACTERS,
  MAX_TASK_WORD_BYTES,
  MIN_LEASE_MS,
} from "./limits.ts";
import { parseChosenTaskId, parseTaskId, type TaskId, utf8Length } from "./names.ts";
import { checkInteger, type OptionTable, readOptions } from "./options.ts";
import { checkBatch, storableReason } from "./request.ts";
import {
  type Json,
  type NewTask,
  type ProducerRenewal,
  type SealOptions,
  TASK_STATUSES,
  type TaskChange,
  type TaskListOptions,
  type TaskRetention,
  type TaskStatus,
} from "./task.ts";

/** Options of a new task, as a table. */
export const NEW_TASK_OPTIONS = {
  id: { type: "text", meaning: "an id chosen by the caller, which makes a repeat safe" },
  type: { type: "text", meaning: "what kind of work it is" },
  resource: { type: "text", meaning: "what it is about" },
  stage: { type: "text", meaning: "the step it begins with" },
  meta: { type: "json", meaning: "whatever its maker keeps with it" },
  keepMs: { type: "object", meaning: "how long it is kept after its end, by status" },
  producer: { type: "object", meaning: "who adds more messages until it is sealed" },
  retryOf: { type: "text", meaning: "the task whose dead letters it tries again" },
} as const satisfies OptionTable;

const keepRow = (keepMs: number, status: string) =>
  ({
    type: "integer",
    minimum: 0,
    maximum: MAX_TASK_KEEP_MS,
    default: keepMs,
    meaning: `how long a ${status} task is kept, in milliseconds`,
  }) as const;

/** How long tasks are kept after their end, as a table. */
export const TASK_KEEP_OPTIONS = {
  completed: keepRow(DEFAULT_TASK_KEEP_MS, "completed"),
  failed: keepRow(DEFAULT_FAILED_TASK_KEEP_MS, "failed"),
  cancelled: keepRow(DEFAULT_TASK_KEEP_MS, "cancelled"),
} as const satisfies OptionTable;

/** Options of a producer, as a table. */
export const PRODUCER_OPTIONS = {
  leaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    meaning: "how long it counts as alive without a renewal, in milliseconds",
  },
  owner: { type: "choice", choices: ["process", "receipt"], default: "process", meaning: "whether it is also gone when its process is" },
} as const satisfies OptionTable;

/** Changes of a task, as a table. */
export const TASK_CHANGE_OPTIONS = {
  stage: { type: "text", meaning: "the step it is in" },
  meta: { type: "json", meaning: "whatever is kept with it" },
  result: { type: "json", meaning: "what came out of it" },
} as const satisfies OptionTable;

/** Options of sealing, as a table. */
export const SEAL_OPTIONS = {
  producer: { type: "text", meaning: "the producer that seals" },
  error: { type: "text", meaning: "why the producer failed" },
} as const satisfies OptionTable;

/** Options of a listing of tasks, as a table. */
export const TASK_LIST_OPTIONS = {
  after: { type: "text", meaning: "`next` of the page before" },
  limit: { type: "integer", minimum: 1, maximum: MAX_PAGE_ITEMS, default: DEFAULT_PAGE_ITEMS, meaning: "tasks at most" },
  type: { type: "text", meaning: "only of this type" },
  status: { type: "choice", choices: TASK_STATUSES, meaning: "only with this status" },
  resource: { type: "text", meaning: "only about this" },
  fromMs: {
    type: "integer",
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    meaning: "made at or after this time, in milliseconds since 1970-01-01 UTC",
  },
  toMs: {
    type: "integer",
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    meaning: "made before this time, in milliseconds since 1970-01-01 UTC",
  },
} as const satisfies OptionTable;

/** A new task, complete; `meta` as JSON text. */
export interface TaskRequest {
  readonly id?: TaskId;
  readonly type: string;
  readonly resource?: string;
  readonly stage?: string;
  readonly meta?: string;
  readonly keepMs: TaskRetention;
  readonly producer?: { readonly leaseMs: number; readonly owner: "process" | "receipt" };
  readonly retryOf?: TaskId;
}

/** A change of a task; `meta` and `result` as JSON text. */
export interface TaskChangeRequest {
  readonly stage?: string;
  readonly meta?: string;
  readonly result?: string;
}

/** Which tasks are listed. */
export interface TaskListRequest {
  readonly after?: string;
  readonly limit: number;
  readonly type?: string;
  readonly status?: TaskStatus;
  readonly resource?: string;
  readonly fromMs?: number;
  readonly toMs?: number;
}

function checkWord(what: string, word: string, shortest: number): string {
  const bytes = utf8Length(word);
  if (bytes < shortest || bytes > MAX_TASK_WORD_BYTES || /\p{Cc}|[\ud800-\udfff]/u.test(word)) {
    throw new QueueFSError(
      "invalid-argument",
      `the ${what} of a task must have ${shortest} to ${MAX_TASK_WORD_BYTES} bytes of UTF-8 and no control characters, got ${quote(word)}`,
    );
  }
  return word;
}

/** A value as JSON text. @throws QueueFSError `invalid-argument` for what JSON cannot have, and what is too large */
function jsonText(what: string, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new QueueFSError("invalid-argument", `${what} of a task must be a JSON value, got one that is not: ${String(error)}`);
  }
  if (text === undefined) throw new QueueFSError("invalid-argument", `${what} of a task must be a JSON value, got ${quote(value)}`);
  // Well-formed JSON.stringify writes lone surrogates as escapes, and a NUL too: so the text can be kept by any store.
  const bytes = utf8Length(text);
  if (bytes > MAX_TASK_JSON_BYTES) {
    throw new QueueFSError(
      "message-too-large",
      `${what} of a task has ${bytes} bytes as JSON, more than ${MAX_TASK_JSON_BYTES}; keep the content elsewhere and a reference here`,
    );
  }
  return text;
}

/** The value of a JSON text that {@link checkNewTask} or {@link checkTaskChange} made. */
export function jsonValue(text: string): Json {
  return JSON.parse(text) as Json;
}

/** Checks a new task. @throws QueueFSError `invalid-argument`, `invalid-name`, `message-too-large` */
export function checkNewTask(task: NewTask): TaskRequest {
  const values = readOptions("a new task", NEW_TASK_OPTIONS, task);
  const { id, type, resource, stage, meta, retryOf } = values;
  if (type === undefined) throw new QueueFSError("invalid-argument", `a new task needs a type, such as "import", got ${quote(task)}`);
  if (resource !== undefined && (resource.length > MAX_TASK_RESOURCE_CHARACTERS || /\0|[\ud800-\udfff]/u.test(resource))) {
    throw new QueueFSError(
      "invalid-argument",
      `the resource of a task must have at most ${MAX_TASK_RESOURCE_CHARACTERS} characters of valid Unicode without NUL, got ${quote(resource)}`,
    );
  }
  return {
    ...(id === undefined ? {} : { id: parseChosenTaskId(id) }),
    type: checkWord("type", type, 1),
    ...(resource === undefined ? {} : { resource }),
    ...(stage === undefined ? {} : { stage: checkWord("stage", stage, 0) }),
    ...(meta === undefined ? {} : { meta: jsonText("meta", meta) }),
    keepMs: readOptions("keepMs of a task", TASK_KEEP_OPTIONS, values.keepMs),
    ...(values.producer === undefined ? {} : { producer: checkProducer(values.producer) }),
    ...(retryOf === undefined ? {} : { retryOf: parseTaskId(retryOf) }),
  };
}

function checkProducer(producer: unknown): { readonly leaseMs: number; readonly owner: "process" | "receipt" } {
  const { leaseMs, owner } = readOptions("the producer of a task", PRODUCER_OPTIONS, producer);
  return { leaseMs: checkInteger("leaseMs of the producer of a task", leaseMs, MIN_LEASE_MS, MAX_LEASE_MS), owner };
}

/** Checks a change of a task. @throws QueueFSError `invalid-argument`, `message-too-large` */
export function checkTaskChange(change: TaskChange): TaskChangeRequest {
  const { stage, meta, result } = readOptions("a change of a task", TASK_CHANGE_OPTIONS, change);
  return {
    ...(stage === undefined ? {} : { stage: checkWord("stage", stage, 0) }),
    ...(meta === undefined ? {} : { meta: jsonText("meta", meta) }),
    ...(result === undefined ? {} : { result: jsonText("result", result) }),
  };
}

/** Checks how a task is sealed; an empty error is none. @throws QueueFSError `invalid-argument` */
export function checkSeal(options: SealOptions | undefined): SealOptions {
  const { producer, error } = readOptions("sealing a task", SEAL_OPTIONS, options);
  return {
    ...(producer === undefined ? {} : { producer }),
    ...(error === undefined ? {} : { error: storableReason(error) || "its producer failed without a reason" }),
  };
}

/** Checks renewals. @throws QueueFSError `invalid-argument`, `invalid-name` */
export function checkRenewals(items: readonly ProducerRenewal[]): readonly ProducerRenewal[] {
  checkBatch("renewProducers", items);
  for (const item of items) {
    parseTaskId(item?.task);
    if (typeof item.producer !== "string")
      throw new QueueFSError("invalid-argument", `producer must be a text, got ${quote(item.producer)}`);
    checkInteger("leaseMs", item.leaseMs, MIN_LEASE_MS, MAX_LEASE_MS);
  }
  return items;
}

/** Checks which tasks are asked for. @throws QueueFSError `invalid-argument` */
export function checkTaskList(options: TaskListOptions | undefined): TaskListRequest {
  return readOptions("a listing of tasks", TASK_LIST_OPTIONS, options);
}

/** Whether a task belongs into a listing. */
export function isListed(
  task: { readonly type: string; readonly status: TaskStatus; readonly resource?: string; readonly createdAtMs: number },
  request: TaskListRequest,
): boolean {
  return (
    (request.type === undefined || task.type === request.type) &&
    (request.status === undefined || task.status === request.status) &&
    (request.resource === undefined || task.resource === request.resource) &&
    (request.fromMs === undefined || task.createdAtMs >= request.fromMs) &&
    (request.toMs === undefined || task.createdAtMs < request.toMs)
  );
}

/** Why a task failed whose producer went away before sealing it. */
export const PRODUCER_GONE = "its producer ended, or did not renew its lease, before it sealed the task";

/** Why a message that was removed with its queue counts as failed. */
export const REMOVED_BY_CLEAR = "it was removed by a clear or with its queue before it was done";
