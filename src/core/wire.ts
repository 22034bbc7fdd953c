/**
 * The JSON forms that the HTTP server and our client of it share. Messages and tasks look as they do on every surface (codec.ts,
 * task-json.ts); each form has its way back. What the server is sent is not checked here beyond its form: the store does that.
 */

import { formatTimestamp, type MessageJson, type ShownMessage } from "./codec.ts";
import { ERROR_TABLE, type ErrorCode, QueueFSError, quote } from "./errors.ts";
import type { AckItem, DeadLetter, DeliveredMessage, Forward, ListedMessage, Message, NewMessage } from "./message.ts";
import type { QueueName } from "./names.ts";
import type { CreatedTask, Task, TaskFailure } from "./task.ts";
import { describeTask, type TaskJson } from "./task-json.ts";
import { type BytesBeside, type BytesReader, dataFromWire, dataToWire, type WireData } from "./wire-bytes.ts";

/** Where the native API begins. */
export const API_PREFIX = "/api/v1";
/** The media type of errors (RFC 9457). */
export const PROBLEM_TYPE = "application/problem+json";
/**
 * Names the sequence of changing requests that a request belongs to, so that its repeats are known: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
 * Our client has a few such sequences, each with one request in the air at a time: of each only the last answer can be asked for again.
 */
export const SESSION_HEADER = "QueueFS-Session";
/** Numbers the changing requests of a session, ascending from 1; the same number is the same request. A lower one is out of turn. */
export const REQUEST_HEADER = "QueueFS-Request";
/**
 * Sent with every answer: differs between two lives of a server, which remembers no request of an earlier one. A client sends it along when it
 * repeats a request that this life may have carried out; another life then refuses with `outcome-unknown`, before it does anything.
 */
export const INSTANCE_HEADER = "QueueFS-Instance";

/** A new message in a request. Other properties pass through, for the store to refuse. */
export type NewMessageJson = WireData & Pick<NewMessage, "id" | "delayMs" | "task">;

/** A message in an answer: the form of every surface, and what only deliveries and failures have. */
export type WireMessage = Omit<MessageJson, "data" | "encoding"> &
  WireData & {
    /** Only of a delivery. */
    readonly leaseMs?: number;
    /** Only of a task's failure: whose dead letter it is. */
    readonly queue?: QueueName;
  };

/** Messages for another queue in a request. */
export interface ForwardJson {
  readonly queue: QueueName;
  readonly messages: readonly NewMessageJson[];
}

/** One ack in a request. */
export interface AckItemJson {
  readonly receipt: string;
  readonly forward?: readonly ForwardJson[];
}

/** Refuses what is no object, in the words of the checks of requests. */
function objectOf(what: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new QueueFSError("invalid-argument", `each item of ${what} must be an object, got ${quote(value)}`);
  return value as Record<string, unknown>;
}

/** Refuses what is no array. */
function arrayOf(what: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new QueueFSError("invalid-argument", `${what} must be an array, got ${quote(value)}`);
  return value;
}

/** A new message as a request has it. @param beside collects its bytes, for a body in the binary form */
export function newMessageToWire(message: NewMessage, beside?: BytesBeside): NewMessageJson {
  const { data, ...rest } = message;
  return { ...rest, ...dataToWire(data, beside) };
}

/** A new message of a request. Its properties but the data are checked by the store. @throws QueueFSError `invalid-argument` */
export function newMessageFromWire(json: unknown, beside?: BytesReader): NewMessage {
  const { data, encoding, ...rest } = objectOf("messages", json);
  return { ...rest, data: dataFromWire({ data, encoding }, beside) };
}

/** All new messages of a request. @throws QueueFSError `invalid-argument` */
export function newMessagesFromWire(json: unknown, beside?: BytesReader): NewMessage[] {
  return arrayOf("messages", json).map((message) => newMessageFromWire(message, beside));
}

/** Messages for other queues as a request has them. */
export function forwardsToWire(forwards: readonly Forward[], beside?: BytesBeside): ForwardJson[] {
  return forwards.map(({ queue, messages }) => ({ queue, messages: messages.map((message) => newMessageToWire(message, beside)) }));
}

/** Messages for other queues of a request, also the batches of a new task. @throws QueueFSError `invalid-argument` */
export function forwardsFromWire(json: unknown, beside?: BytesReader): Forward[] {
  return arrayOf("forward", json).map((item) => {
    const { messages, ...rest } = objectOf("forward", item);
    return { ...(rest as unknown as Forward), messages: newMessagesFromWire(messages, beside) };
  });
}

/** Acks as a request has them. */
export function acksToWire(items: readonly AckItem[], beside?: BytesBeside): AckItemJson[] {
  return items.map(({ receipt, forward }) => (forward === undefined ? { receipt } : { receipt, forward: forwardsToWire(forward, beside) }));
}

/** Acks of a request. @throws QueueFSError `invalid-argument` */
export function acksFromWire(json: unknown, beside?: BytesReader): AckItem[] {
  return arrayOf("items", json).map((item) => {
    const { forward, ...rest } = objectOf("ack", item);
    return { ...(rest as unknown as AckItem), ...(forward === undefined ? {} : { forward: forwardsFromWire(forward, beside) }) };
  });
}

type Changeable<Shape> = { -readonly [Key in keyof Shape]: Shape[Key] };

// Deliveries come in batches, many times a second: properties are set one by one, since spreading costs several times as much.
/** A message of any shape as an answer has it. @param beside collects its bytes, for a body in the binary form */
export function messageToWire(
  message: ShownMessage & { readonly leaseMs?: number; readonly queue?: QueueName },
  beside?: BytesBeside,
): WireMessage {
  const { id, data, receipt, state, reason, diedAtMs, task, leaseMs, queue } = message;
  const wire = dataToWire(data, beside);
  const json = { id, data: wire.data } as Changeable<WireMessage>;
  if (wire.encoding !== undefined) json.encoding = wire.encoding;
  if (receipt !== undefined) json.receipt = receipt;
  json.timestamp = formatTimestamp(message.enqueuedAtMs);
  json.deliveries = message.deliveryCount;
  if (state !== undefined) json.state = state;
  if (reason !== undefined) json.reason = reason;
  if (diedAtMs !== undefined) json.diedAt = formatTimestamp(diedAtMs);
  if (task !== undefined) json.task = task;
  if (leaseMs !== undefined) json.leaseMs = leaseMs;
  if (queue !== undefined) json.queue = queue;
  return json;
}

/** A message of an answer, with what every shape has. */
export function messageFromWire(json: WireMessage, beside?: BytesReader): Message {
  return plainFromWire<Message>(json, beside);
}

function plainFromWire<Shape extends Message>(json: WireMessage, beside?: BytesReader): Changeable<Shape> {
  const message: Changeable<Message> = {
    id: json.id,
    data: dataFromWire(json, beside),
    enqueuedAtMs: Date.parse(json.timestamp),
    deliveryCount: json.deliveries,
  };
  if (json.task !== undefined) message.task = json.task;
  return message as Changeable<Shape>;
}

/** A delivery of an answer. @throws QueueFSError `store-failed` when it is none */
export function deliveredFromWire(json: WireMessage, beside?: BytesReader): DeliveredMessage {
  const { receipt, leaseMs } = json;
  if (receipt === undefined || leaseMs === undefined) throw badAnswer("a delivery has no receipt or no lease");
  const message = plainFromWire<DeliveredMessage>(json, beside);
  message.receipt = receipt;
  message.leaseMs = leaseMs;
  return message;
}

/** A message of a listing. @throws QueueFSError `store-failed` when it is none */
export function listedFromWire(json: WireMessage, beside?: BytesReader): ListedMessage {
  const { state } = json;
  if (state === undefined) throw badAnswer("a listed message has no state");
  return { ...messageFromWire(json, beside), state };
}

/** A dead letter of an answer. @throws QueueFSError `store-failed` when it is none */
export function deadLetterFromWire(json: WireMessage, beside?: BytesReader): DeadLetter {
  const { reason, diedAt } = json;
  if (reason === undefined || diedAt === undefined) throw badAnswer("a dead letter has no reason or no time");
  return { ...messageFromWire(json, beside), reason, diedAtMs: Date.parse(diedAt) };
}

/** A failure of a task of an answer. @throws QueueFSError `store-failed` when it is none */
export function taskFailureFromWire(json: WireMessage, beside?: BytesReader): TaskFailure {
  const { queue } = json;
  if (queue === undefined) throw badAnswer("a failure of a task has no queue");
  return { ...deadLetterFromWire(json, beside), queue };
}

/** A task as an answer has it: the form of every surface. */
export function taskToWire(task: Task): TaskJson {
  return describeTask(task);
}

/** A task of an answer. */
export function taskFromWire(json: TaskJson): Task {
  const { createdAt, updatedAt, finishedAt, ...rest } = json;
  return {
    ...rest,
    createdAtMs: Date.parse(createdAt),
    updatedAtMs: Date.parse(updatedAt),
    ...(finishedAt === undefined ? {} : { finishedAtMs: Date.parse(finishedAt) }),
  };
}

/** {@link CreatedTask} as an answer has it. */
export type CreatedTaskJson = { readonly [Key in "task"]: TaskJson } & (
  | Omit<Extract<CreatedTask, { outcome: "created" }>, "task">
  | Omit<Extract<CreatedTask, { outcome: "exists" }>, "task">
);

/** What became of making a task, as an answer has it. */
export function createdTaskToWire(created: CreatedTask): CreatedTaskJson {
  return { ...created, task: describeTask(created.task) };
}

/** What became of making a task, of an answer. */
export function createdTaskFromWire(json: CreatedTaskJson): CreatedTask {
  return { ...json, task: taskFromWire(json.task) };
}

/** An error as the body of an answer (RFC 9457). */
export interface Problem {
  /** `urn:queuefs:error:CODE`. */
  readonly type: string;
  /** What the code means. */
  readonly title: string;
  /** The HTTP status. */
  readonly status: number;
  /** What was wrong in this case, with which value, and what to do. */
  readonly detail: string;
  /** The row of the error table. */
  readonly code: ErrorCode;
  /** Whether the very same request may succeed later. */
  readonly retryable: boolean;
}

/** An error as problem details. One that is none of ours is `internal`, and only says so: its words may hold secrets. */
export function problemOf(error: unknown): Problem {
  const own = error instanceof QueueFSError ? error : undefined;
  const code = own?.code ?? "internal";
  const { httpStatus, retryable, meaning } = ERROR_TABLE[code];
  const detail = own?.message ?? "the server failed in a way it has no words for; its log says more";
  return { type: `urn:queuefs:error:${code}`, title: meaning, status: httpStatus, detail, code, retryable };
}

/** The error that problem details tell of, or `undefined` when the body is none, as of a proxy between. */
export function errorOfProblem(body: unknown): QueueFSError | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { code, detail } = body as Partial<Problem>;
  if (typeof code !== "string" || typeof detail !== "string") return undefined;
  // A newer server may have codes that this client does not know.
  return Object.hasOwn(ERROR_TABLE, code) ? new QueueFSError(code, detail) : new QueueFSError("store-failed", `${code}: ${detail}`);
}

/** The error for an answer that is not what the API says. */
export function badAnswer(what: string): QueueFSError {
  return new QueueFSError("store-failed", `the server's answer makes no sense: ${what}; client and server may be of different versions`);
}
