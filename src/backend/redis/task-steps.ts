/** What changes tasks themselves, each as one script call. */

import { QueueFSError, queueNotFound, quote, taskNotFound } from "../../core/errors.ts";
import { TASK_STEP_ITEMS } from "../../core/limits.ts";
import type { EnqueueAnswer, Forward } from "../../core/message.ts";
import type { QueueName, TaskId } from "../../core/names.ts";
import { checkMessages } from "../../core/request.ts";
import type { CancelledTask, CreatedTask, ProducerRenewal, RedrivenTask, SealedTask, SealOptions, Task } from "../../core/task.ts";
import type { TaskChangeRequest, TaskRequest } from "../../core/task-request.ts";
import { type ByteReader, ByteWriter } from "./bytes.ts";
import { encodeMade, readMade, type SpecialBody } from "./enqueue-part.ts";
import { isOvertaken, overtaken, translate } from "./failure.ts";
import type { Keys } from "./keys.ts";
import { ANSWER, KIND } from "./part.ts";
import type { QueueLife, Registry } from "./registry.ts";
import { type EncodedKeys, encodeKeys, joinKeys } from "./script-call.ts";
import type { Steps } from "./steps.ts";
import type { TaskReading } from "./task-reading.ts";
import { encodeTexts, makeProducer, readRefusal, readTask, tokenOfProducer, writeChange } from "./task-texts.ts";

/** How often a step is sent anew because queues, or the whole namespace, were made anew meanwhile. */
const MOST_ATTEMPTS = 8;
/** Queues that one step of cancelling looks through. */
const QUEUES_PER_STEP = 20;
const NO_LIVES: readonly QueueLife[] = [];

/** Changes tasks. */
export class TaskSteps {
  readonly #steps: Steps;
  readonly #registry: Registry;
  readonly #reading: TaskReading;
  readonly #metaKey: EncodedKeys;
  readonly #reopen: () => Promise<unknown>;

  /** @param reopen makes the namespace anew after the server was emptied */
  constructor(steps: Steps, registry: Registry, reading: TaskReading, keys: Keys, reopen: () => Promise<unknown>) {
    this.#steps = steps;
    this.#registry = registry;
    this.#reading = reading;
    this.#metaKey = encodeKeys([keys.meta]);
    this.#reopen = reopen;
  }

  /** Sends one operation and gives the answer after its status; `undefined` when one of the queues is gone. */
  async #send(kind: number, lives: readonly QueueLife[], write: (writer: ByteWriter) => void): Promise<ByteReader | undefined> {
    const writer = new ByteWriter();
    writer.u8(kind);
    write(writer);
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      try {
        const keys = joinKeys([...lives.map((life) => life.keys), this.#metaKey]);
        const reader = await this.#steps.runTaskStep(keys, writer.view(), lives.length === 0);
        const status = reader.u8();
        if (status === ANSWER.failed) throw translate(new Error(reader.rest()), this.#steps.location);
        if (status === ANSWER.done) return reader;
        if (status === ANSWER.gone) return undefined;
        throw readRefusal(status, reader);
      } catch (error) {
        if (!isOvertaken(error)) throw error;
        await this.#reopen();
        await this.#registry.look([]);
        if (lives.length > 0) return undefined;
      }
    }
    throw overtaken(MOST_ATTEMPTS);
  }

  async #change(kind: number, write: (writer: ByteWriter) => void): Promise<ByteReader> {
    const reader = await this.#send(kind, NO_LIVES, write);
    if (reader === undefined) throw overtaken(MOST_ATTEMPTS);
    return reader;
  }

  /** Makes a task with its first messages. @param token names its producer */
  async create(request: TaskRequest, batches: readonly Forward[], token: number, maxMessageBytes: number): Promise<CreatedTask> {
    checkBatches(batches, maxMessageBytes);
    const bodies = batches.map(({ queue, messages }) => encodeMade(queue, messages));
    const names = [...new Set(batches.map(({ queue }) => queue))];
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const lives = await this.#livesOf(names, attempt > 1);
      const missing = names.find((name) => !lives.has(name));
      if (missing !== undefined) {
        const existing = request.id === undefined ? undefined : await this.#reading.find(request.id);
        if (existing !== undefined) return { outcome: "exists", task: existing };
        throw queueNotFound(missing);
      }
      const reader = await this.#send(KIND.makeTask, [...lives.values()], (writer) => writeNewTask(writer, request, token, bodies, names));
      if (reader !== undefined) return this.#readCreated(reader, bodies, lives, request.producer === undefined ? undefined : token);
    }
    throw overtaken(MOST_ATTEMPTS);
  }

  async #livesOf(names: readonly QueueName[], isStale: boolean): Promise<Map<QueueName, QueueLife>> {
    let found = names.map((name) => this.#registry.known(name));
    if (isStale || found.includes(undefined)) found = await this.#registry.look(names);
    const lives = new Map<QueueName, QueueLife>();
    for (const [index, name] of names.entries()) {
      const life = found[index];
      if (life !== undefined) lives.set(name, life);
    }
    return lives;
  }

  #readCreated(
    reader: ByteReader,
    bodies: readonly SpecialBody[],
    lives: ReadonlyMap<QueueName, QueueLife>,
    token: number | undefined,
  ): CreatedTask {
    const isThere = reader.u8() === 1;
    const task = readTask(reader, this.#registry.store);
    if (isThere) return { outcome: "exists", task };
    const enqueued = bodies.map((body): EnqueueAnswer[] => {
      const answer = reader.part(reader.u32());
      answer.u8();
      return readMade(answer, body, lives.get(body.queue) as QueueLife);
    });
    return { outcome: "created", task, ...(token === undefined ? {} : { producer: makeProducer(token) }), enqueued };
  }

  /** Changes what is said of a task. */
  async update(id: TaskId, change: TaskChangeRequest): Promise<Task> {
    const reader = await this.#change(KIND.updateTask, (writer) => {
      writer.shortText(id);
      writeChange(writer, change);
    });
    return readTask(reader, this.#registry.store);
  }

  /** Seals a task. */
  async seal(id: TaskId, { producer, error }: SealOptions): Promise<SealedTask> {
    const reader = await this.#change(KIND.sealTask, (writer) => {
      writer.shortText(id);
      writer.u48(producer === undefined ? 0 : tokenOfProducer(producer));
      writer.u8(error === undefined ? 0 : 1);
      writer.text(error ?? "");
    });
    return { outcome: reader.u8() === 0 ? "sealed" : "stale", task: readTask(reader, this.#registry.store) };
  }

  /** Renews leases of producers. */
  async renew(items: readonly ProducerRenewal[]): Promise<("renewed" | "stale")[]> {
    const reader = await this.#change(KIND.renewProducers, (writer) => {
      for (const { task, producer, leaseMs } of items) {
        writer.shortText(task);
        writer.u48(tokenOfProducer(producer));
        writer.u32(leaseMs);
      }
    });
    return items.map(() => (reader.u8() === 1 ? "renewed" : "stale"));
  }

  /** Marks a task as cancelling, or goes on with one that is, and removes pending messages of it. */
  async cancel(id: TaskId, reason: string, marks: boolean): Promise<CancelledTask> {
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const lives = await this.#reading.queuesOf(id, QUEUES_PER_STEP);
      if (lives === undefined) throw taskNotFound(id);
      const reader = await this.#send(KIND.cancelTask, lives, (writer) => {
        writer.shortText(id);
        writer.u8(marks ? 1 : 0);
        writer.u32(TASK_STEP_ITEMS);
        const lengthAt = writer.length;
        writer.u16(0);
        writer.setU16(lengthAt, writer.text(reason));
        for (const { life } of lives) writer.u48(life);
      });
      if (reader === undefined) continue;
      const removed = reader.u32();
      const more = reader.u8() === 1;
      return { task: readTask(reader, this.#registry.store), removed, more };
    }
    throw overtaken(MOST_ATTEMPTS);
  }

  /** Makes dead letters of a task pending again, as messages of another or of the same. */
  async redrive(from: TaskId, into: TaskId): Promise<RedrivenTask> {
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const failures = await this.#reading.failuresOf(from, 0, TASK_STEP_ITEMS);
      if (failures === undefined) throw taskNotFound(from);
      const { entries, lives, groupOf } = failures;
      const reader = await this.#send(KIND.redriveTask, lives, (writer) => {
        writer.shortText(from);
        writer.shortText(into);
        for (const entry of entries) {
          writer.u16(groupOf(entry));
          writer.bytes(entry);
        }
      });
      if (reader === undefined) continue;
      return { redriven: reader.u32(), more: reader.u8() === 1 };
    }
    throw overtaken(MOST_ATTEMPTS);
  }

  /** Removes the record of a task that has ended. */
  async remove(id: TaskId): Promise<void> {
    await this.#change(KIND.removeTask, (writer) => writer.shortText(id));
  }

  /** Does what is due (scripts/tasks.lua says how it is named); answers whether there is more. */
  async recover(due: readonly Buffer[]): Promise<boolean> {
    const others: Buffer[] = [];
    let more = false;
    for (const name of due) {
      const id = name.toString("utf8", 1) as TaskId;
      // Where its task is gone, it is only forgotten.
      if (name.at(0) !== CANCELLING || (await this.#reading.find(id)) === undefined) others.push(name);
      else if ((await this.cancel(id, "", false)).more) more = true;
    }
    if (others.length === 0) return more;
    const reader = await this.#change(KIND.dueTasks, (writer) => {
      for (const name of others) {
        writer.u8(name.length);
        writer.bytes(name);
      }
    });
    return reader.u8() === 1 || more;
  }
}

const CANCELLING = "c".charCodeAt(0);

function checkBatches(batches: readonly Forward[], maxMessageBytes: number): void {
  if (!Array.isArray(batches))
    throw new QueueFSError("invalid-argument", `the messages of a new task must be an array of queues and messages, got ${quote(batches)}`);
  let bytes = 0;
  for (const { messages } of batches) {
    checkMessages(messages, maxMessageBytes);
    for (const { data } of messages) bytes += data.length;
  }
  if (bytes > maxMessageBytes) {
    throw new QueueFSError(
      "message-too-large",
      `the messages of a new task have ${bytes} bytes together, which exceeds the limit of ${maxMessageBytes}; make it with a producer and enqueue the rest`,
    );
  }
}

function writeNewTask(
  writer: ByteWriter,
  { id, producer, keepMs, ...texts }: TaskRequest,
  token: number,
  bodies: readonly SpecialBody[],
  names: readonly QueueName[],
): void {
  writer.shortText(id ?? "");
  writer.u8(producer === undefined ? 1 : 0);
  writer.u48(producer === undefined ? 0 : token);
  writer.u32(producer?.leaseMs ?? 0);
  for (const keptMs of [keepMs.completed, keepMs.failed, keepMs.cancelled]) writer.u48(keptMs);
  const encoded = encodeTexts({ ...texts, keepMs });
  writer.u32(encoded.length);
  writer.bytes(encoded);
  for (const { queue, kind, bytes } of bodies) {
    writer.u16(names.indexOf(queue) + 1);
    writer.u8(kind);
    writer.u32(bytes.length);
    writer.bytes(bytes);
  }
}
