/** Enqueue, as a part of a script call. */

import { createHash } from "node:crypto";
import { MAX_TASK_ID_BYTES } from "../../core/limits.ts";
import type { EnqueueAnswer, NewMessage } from "../../core/message.ts";
import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import { type ByteReader, ByteWriter } from "./bytes.ts";
import { KIND, type OperationState, Part } from "./part.ts";
import type { QueueLife } from "./registry.ts";

const OUTCOMES = ["enqueued", "repeated", "conflict"] as const;
/** Bytes that the server puts before each message. */
const HEAD_BYTES = 13;
const HAS_CHOSEN_ID = 1;
const HAS_TASK = 2;
const NO_FINGERPRINT = Buffer.alloc(20);

/** What tells the bytes of a message with a chosen id from others. */
function fingerprintOf(data: Uint8Array): Buffer {
  return createHash("sha256").update(data).digest().subarray(0, NO_FINGERPRINT.length);
}

/** The tasks that messages name. */
export function ownersOf(messages: readonly NewMessage[]): ReadonlySet<TaskId> {
  const owners = new Set<TaskId>();
  for (const { task } of messages) if (task !== undefined) owners.add(task);
  return owners;
}

/** Writes the tasks that must take work. */
export function writeTasks(writer: ByteWriter, tasks: ReadonlySet<TaskId>): void {
  writer.u16(tasks.size);
  for (const task of tasks) writer.shortText(task);
}

/**
 * Writes messages with everything they may have: chosen ids, delays, tasks. Answers with the bytes of the largest.
 *
 * @param isMade that they are the first of a task whose id is not known yet, which the script puts in
 */
function writeSpecial(writer: ByteWriter, messages: readonly NewMessage[], isMade: boolean): number {
  let largest = 0;
  for (const { id, data, delayMs = 0, task } of messages) {
    const flags = (id === undefined ? 0 : HAS_CHOSEN_ID) + (isMade || task !== undefined ? HAS_TASK : 0);
    writer.u8(flags);
    writer.u48(delayMs);
    writer.bytes(id === undefined ? NO_FINGERPRINT : fingerprintOf(data));
    const lengthAt = writer.length;
    writer.u32(0);
    writer.u8(flags);
    if (id !== undefined) writer.shortText(id);
    if (!isMade && task !== undefined) writer.shortText(task);
    writer.bytes(data);
    const length = writer.length - lengthAt - 4;
    writer.setU32(lengthAt, length);
    largest = Math.max(largest, length + HEAD_BYTES + (isMade ? 1 + MAX_TASK_ID_BYTES : 0));
  }
  return largest;
}

/** Messages for one queue, as the scripts take them for an enqueue within another operation. */
export interface SpecialBody {
  readonly queue: QueueName;
  readonly ids: readonly (MessageId | undefined)[];
  readonly bytes: Buffer;
}

/** Writes messages for one queue. @param isMade that they are the first of a task, which the script puts in */
export function encodeSpecial(queue: QueueName, messages: readonly NewMessage[], isMade = false): SpecialBody {
  const writer = new ByteWriter();
  writer.u32(0);
  writer.setU32(0, writeSpecial(writer, messages, isMade));
  return { queue, ids: messages.map((message) => message.id), bytes: writer.view() };
}

/** Reads the answers of messages that were written with {@link encodeSpecial}. */
export function readSpecial(
  reader: ByteReader,
  ids: readonly (MessageId | undefined)[],
  life: QueueLife,
  state: Pick<OperationState, "next">,
): EnqueueAnswer[] {
  return ids.map((id) => {
    const outcome = OUTCOMES[reader.u8()] ?? "conflict";
    const made = outcome === "enqueued" ? makeId(life, state.next++) : undefined;
    return { outcome, id: id ?? (made as MessageId) };
  });
}

function makeId(life: QueueLife, sequence: number): MessageId {
  return (life.idPrefix + sequence.toString(36)) as MessageId;
}

/** One enqueue. */
export class EnqueuePart extends Part<EnqueueAnswer[]> {
  readonly kind: number;
  override readonly isAlone: boolean;
  override readonly owner: TaskId | undefined;
  readonly items: number;
  override readonly weight: number;
  /** Chosen ids; absent when no message has anything that needs the special form. */
  readonly #ids: readonly (MessageId | undefined)[] | undefined;
  #messages: readonly NewMessage[];
  #written: Buffer | undefined;
  #largest = 0;

  constructor(name: QueueName, messages: readonly NewMessage[]) {
    super(name);
    this.#messages = messages;
    this.items = messages.length;
    let weight = 0;
    for (const { data } of messages) weight += data.length;
    this.weight = weight;
    const isSpecial = messages.some((message) => message.id !== undefined || (message.delayMs ?? 0) > 0);
    const task = messages[0]?.task;
    if (messages.every((message) => message.task === undefined)) this.kind = isSpecial ? KIND.enqueueSpecial : KIND.enqueue;
    else this.kind = !isSpecial && messages.every((message) => message.task === task) ? KIND.enqueueOwned : KIND.enqueueAny;
    this.owner = this.kind === KIND.enqueueOwned ? task : undefined;
    this.isAlone = this.kind === KIND.enqueueAny;
    this.#ids = this.kind === KIND.enqueueSpecial || this.kind === KIND.enqueueAny ? messages.map((message) => message.id) : undefined;
  }

  #encode(writer: ByteWriter): void {
    if (this.kind === KIND.enqueueAny) {
      writeTasks(writer, ownersOf(this.#messages));
      writer.bytes(encodeSpecial(this.name, this.#messages).bytes);
    } else if (this.#ids !== undefined) {
      this.#largest = writeSpecial(writer, this.#messages, false);
    } else {
      for (const { data, task } of this.#messages) {
        const lengthAt = writer.length;
        writer.u32(0);
        writer.u8(task === undefined ? 0 : HAS_TASK);
        if (task !== undefined) writer.shortText(task);
        writer.bytes(data);
        const length = writer.length - lengthAt - 4;
        writer.setU32(lengthAt, length);
        if (length + HEAD_BYTES > this.#largest) this.#largest = length + HEAD_BYTES;
      }
    }
    this.#messages = [];
  }

  write(writer: ByteWriter, _life: QueueLife, state: OperationState): void {
    if (this.#written === undefined) this.#encode(writer);
    else writer.bytes(this.#written);
    if (this.#largest > state.largest) state.largest = this.#largest;
  }

  override detach(): void {
    if (this.#written !== undefined) return;
    const writer = new ByteWriter();
    this.#encode(writer);
    this.#written = writer.view();
  }

  override keep(written: Buffer): void {
    this.#written = written;
  }

  read(reader: ByteReader, life: QueueLife, state: OperationState): EnqueueAnswer[] {
    if (this.#ids !== undefined) return readSpecial(reader, this.#ids, life, state);
    const answers: EnqueueAnswer[] = [];
    for (let index = 0; index < this.items; index += 1) answers.push({ outcome: "enqueued", id: makeId(life, state.next++) });
    return answers;
  }
}
