/** Enqueue, as a part of a script call. */

import { createHash } from "node:crypto";
import { MAX_TASK_ID_BYTES } from "../../core/limits.ts";
import type { EnqueueAnswer, NewMessage } from "../../core/message.ts";
import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import { type ByteReader, ByteWriter } from "./bytes.ts";
import { KIND, type OperationState, Part } from "./part.ts";
import type { QueueLife } from "./registry.ts";

const OUTCOMES = ["enqueued", "repeated", "conflict"] as const;
/** Bytes that the server puts before each message, and after its flags when it has a task. */
const HEAD_BYTES = 13;
const TASK_NUMBER_BYTES = 6;
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
export function writeTasks(writer: ByteWriter, tasks: ReadonlySet<TaskId> | ReadonlyMap<TaskId, unknown>): void {
  writer.u16(tasks.size);
  for (const task of tasks.keys()) writer.shortText(task);
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
    const added = HEAD_BYTES + (flags < HAS_TASK ? 0 : TASK_NUMBER_BYTES) + (isMade ? 1 + MAX_TASK_ID_BYTES : 0);
    largest = Math.max(largest, length + added);
  }
  return largest;
}

/** Writes a message that has neither a chosen id nor a delay. @param which task it has among those named before, from 1; 0 for none */
function writeOwned(writer: ByteWriter, which: number, data: Uint8Array): void {
  writer.u16(which);
  writer.u32(data.length);
  writer.bytes(data);
}

function isSpecial({ id, delayMs = 0 }: NewMessage): boolean {
  return id !== undefined || delayMs > 0;
}

/** Messages for one queue, as the scripts take them for an enqueue within another operation. */
export interface SpecialBody {
  readonly queue: QueueName;
  readonly kind: number;
  readonly ids: readonly (MessageId | undefined)[];
  readonly bytes: Buffer;
}

/** Writes messages for one queue. */
export function encodeSpecial(queue: QueueName, messages: readonly NewMessage[]): SpecialBody {
  return encodeBatch(queue, messages, false);
}

/** Writes the first messages of a task that is made with them, for one queue; the script puts its id in. */
export function encodeMade(queue: QueueName, messages: readonly NewMessage[]): SpecialBody {
  if (messages.some(isSpecial)) return encodeBatch(queue, messages, true);
  let [bytes, largest] = [0, 0];
  for (const { data } of messages) {
    bytes += data.length + 6;
    if (data.length > largest) largest = data.length;
  }
  const writer = new ByteWriter(bytes + 6);
  writer.u32(largest + HEAD_BYTES + 2 + TASK_NUMBER_BYTES + MAX_TASK_ID_BYTES);
  writer.u16(0);
  for (const { data } of messages) writeOwned(writer, 1, data);
  return { queue, kind: KIND.enqueueOwned, ids: messages.map(() => undefined), bytes: writer.view() };
}

function encodeBatch(queue: QueueName, messages: readonly NewMessage[], isMade: boolean): SpecialBody {
  const writer = new ByteWriter();
  writer.u32(0);
  writer.setU32(0, writeSpecial(writer, messages, isMade));
  return { queue, kind: KIND.enqueueSpecial, ids: messages.map((message) => message.id), bytes: writer.view() };
}

/** Reads the answers of messages that were written with {@link encodeMade}. */
export function readMade(reader: ByteReader, { kind, ids }: SpecialBody, life: QueueLife): EnqueueAnswer[] {
  const state = { next: reader.u48() };
  if (kind === KIND.enqueueSpecial) return readSpecial(reader, ids, life, state);
  return ids.map(() => ({ outcome: "enqueued", id: makeId(life, state.next++) }));
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
  override readonly owner: unknown;
  readonly items: number;
  override readonly weight: number;
  /** Chosen ids; absent when no message has anything that needs the special form. */
  readonly #ids: readonly (MessageId | undefined)[] | undefined;
  /** The tasks that its messages name, each with its number among them, from 1. */
  readonly #tasks: ReadonlyMap<TaskId, number> | undefined;
  #messages: readonly NewMessage[];
  #written: Buffer | undefined;
  #largest = 0;

  constructor(name: QueueName, messages: readonly NewMessage[]) {
    super(name);
    this.#messages = messages;
    this.items = messages.length;
    let weight = 0;
    let hasSpecial = false;
    let tasks: Map<TaskId, number> | undefined;
    for (const message of messages) {
      const { data, task } = message;
      weight += data.length;
      hasSpecial ||= isSpecial(message);
      if (task === undefined) continue;
      tasks ??= new Map();
      if (!tasks.has(task)) tasks.set(task, tasks.size + 1);
    }
    this.weight = weight;
    this.#tasks = tasks;
    if (tasks === undefined) this.kind = hasSpecial ? KIND.enqueueSpecial : KIND.enqueue;
    else this.kind = hasSpecial ? KIND.enqueueAny : KIND.enqueueOwned;
    // It is stored or refused as a whole: with messages of the same task only, or by itself.
    this.owner = this.kind !== KIND.enqueueOwned ? undefined : tasks?.size === 1 ? messages[0]?.task : this;
    this.isAlone = this.kind === KIND.enqueueAny;
    this.#ids = hasSpecial ? messages.map((message) => message.id) : undefined;
  }

  override writeHead(writer: ByteWriter): void {
    if (this.kind === KIND.enqueueOwned && this.#tasks !== undefined) writeTasks(writer, this.#tasks);
  }

  #encode(writer: ByteWriter): void {
    if (this.kind === KIND.enqueueAny) {
      writeTasks(writer, ownersOf(this.#messages));
      writer.bytes(encodeSpecial(this.name, this.#messages).bytes);
    } else if (this.#ids !== undefined) {
      this.#largest = writeSpecial(writer, this.#messages, false);
    } else if (this.#tasks !== undefined) {
      for (const { data, task } of this.#messages) {
        writeOwned(writer, task === undefined ? 0 : (this.#tasks.get(task) ?? 0), data);
        if (data.length > this.#largest) this.#largest = data.length;
      }
      this.#largest += HEAD_BYTES + 2 + TASK_NUMBER_BYTES + MAX_TASK_ID_BYTES;
    } else {
      for (const { data } of this.#messages) {
        writer.u32(data.length + 1);
        writer.u8(0);
        writer.bytes(data);
        if (data.length + 1 + HEAD_BYTES > this.#largest) this.#largest = data.length + 1 + HEAD_BYTES;
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
