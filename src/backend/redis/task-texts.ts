/** How tasks lie in the store (scripts/tasks.lua says what their records are made of), and how a refused one is told. */

import { QueueFSError, quote, taskActive, taskEnded, taskNotFound } from "../../core/errors.ts";
import { type MessageId, makeMessageId, type QueueName, type TaskId } from "../../core/names.ts";
import type { Task, TaskError, TaskStatus } from "../../core/task.ts";
import { jsonValue, PRODUCER_GONE, REMOVED_BY_CLEAR, type TaskChangeRequest, type TaskRequest } from "../../core/task-request.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import { wordsOf } from "./letter.ts";
import { ANSWER } from "./part.ts";

const RECORD_BYTES = 85;
/** The statuses as the scripts number them. */
const STATUSES = ["pending", "completed", "failed", "cancelled", "cancelling", "pending", "running"] as const satisfies TaskStatus[];
/** What the error of a task is, beyond the causes of dead letters. */
const ERROR = { removed: 4, producerGone: 5 } as const;
const TOKEN = /^p-(0|[1-9a-z][0-9a-z]{0,9})$/;

/** Why a task takes no more work, or goes on where it must have ended. */
export function readRefusal(status: number, reader: ByteReader): QueueFSError {
  const code = reader.u8();
  const id = reader.rest();
  if (code === 0) return taskNotFound(id);
  const word = STATUSES[code] ?? "pending";
  return status === ANSWER.taskActive ? taskActive(id, word) : taskEnded(id, word);
}

/** The name of a producer. */
export function makeProducer(token: number): string {
  return `p-${token.toString(36)}`;
}

/** The token in the name of a producer; one that no producer has for a text that is no such name. */
export function tokenOfProducer(producer: string): number {
  const digits = TOKEN.exec(producer)?.[1];
  const token = digits === undefined ? 0 : Number.parseInt(digits, 36);
  return token > 0 && token < 2 ** 48 ? token : 2 ** 48 - 1;
}

function writeText(writer: ByteWriter, text: string | undefined): void {
  const lengthAt = writer.length;
  writer.u32(0);
  if (text !== undefined) writer.setU32(lengthAt, writer.text(text) + 1);
}

/** The texts of a new task. */
export function encodeTexts({ type, resource, retryOf, stage, meta }: TaskRequest): Buffer {
  const writer = new ByteWriter();
  for (const text of [type, resource, retryOf, stage, meta, undefined, undefined, undefined]) writeText(writer, text);
  return writer.view();
}

/** The texts that change. */
export function writeChange(writer: ByteWriter, { stage, meta, result }: TaskChangeRequest): void {
  for (const text of [stage, meta, result]) writeText(writer, text);
}

function readTexts(reader: ByteReader): (ByteReader | undefined)[] {
  const texts: (ByteReader | undefined)[] = [];
  while (!reader.isAtEnd) {
    const length = reader.u32();
    texts.push(length === 0 ? undefined : reader.part(length - 1));
  }
  return texts;
}

function readError(reader: ByteReader, store: string): TaskError {
  const kind = reader.u8();
  const deliveryCount = reader.u32();
  const life = reader.u48();
  const sequence = reader.u48();
  const chosen = reader.text(reader.u8());
  const queue = reader.text(reader.u16()) as QueueName;
  const text = reader.rest();
  if (kind === ERROR.removed) return { reason: REMOVED_BY_CLEAR, queue };
  if (kind === ERROR.producerGone) return { reason: PRODUCER_GONE };
  if (kind > ERROR.producerGone) return { reason: text };
  const message = chosen === "" ? makeMessageId(store, life, sequence) : (chosen as MessageId);
  return { reason: wordsOf(kind, text, deliveryCount), queue, message };
}

/** Whether a record is one of a task. */
export function isWhole(record: Buffer): boolean {
  return record.length === RECORD_BYTES && record[0] === 1;
}

/** Reads a task. @throws QueueFSError `store-corrupt` for a record that is none */
export function decodeTask(store: string, id: TaskId, record: Buffer, textsOfTask: Buffer): Task {
  if (!isWhole(record)) throw new QueueFSError("store-corrupt", `the record of task ${quote(id)} cannot be read; run queuefs doctor`);
  const reader = new ByteReader(record);
  reader.u8();
  const ended = reader.u8();
  const isSealed = reader.u8() === 1;
  const isCancelling = reader.u8() === 1;
  reader.u8();
  const wasStarted = reader.u8() === 1;
  reader.u8();
  // Its number, and how often a message of it failed.
  reader.u48();
  const [total, done, failed, cancelled] = [reader.u48(), reader.u48(), reader.u48(), reader.u48()];
  reader.u48();
  const [updatedAtMs, finishedAtMs, createdAtMs] = [reader.u48(), reader.u48(), reader.u48()];
  const unacked = total - done - failed - cancelled;
  const [type, resource, retryOf, stage, meta, result, error, producerError] = readTexts(new ByteReader(textsOfTask));
  const shown = error ?? producerError;
  const status =
    ended > 0 ? (STATUSES[ended] ?? "failed") : isCancelling ? "cancelling" : wasStarted && unacked > 0 ? "running" : "pending";
  return {
    id,
    type: type?.rest() ?? "",
    ...(resource === undefined ? {} : { resource: resource.rest() }),
    status,
    ...(stage === undefined ? {} : { stage: stage.rest() }),
    progress: { total, done, failed, cancelled, unacked },
    sealed: isSealed,
    ...(meta === undefined ? {} : { meta: jsonValue(meta.rest()) }),
    ...(result === undefined ? {} : { result: jsonValue(result.rest()) }),
    ...(shown === undefined ? {} : { error: readError(shown, store) }),
    ...(retryOf === undefined ? {} : { retryOf: retryOf.rest() as TaskId }),
    createdAtMs,
    updatedAtMs,
    ...(ended === 0 ? {} : { finishedAtMs }),
  };
}

/** Reads a task in the answer of a step (scripts/task-run.lua). */
export function readTask(reader: ByteReader, store: string): Task {
  const id = reader.text(reader.u8()) as TaskId;
  const record = Buffer.from(reader.copy(reader.u32()));
  return decodeTask(store, id, record, Buffer.from(reader.copy(reader.u32())));
}
