/** What only looks at tasks. */

import { assert, taskNotFound } from "../../core/errors.ts";
import { TASK_LISTING_STEP_ITEMS } from "../../core/limits.ts";
import type { Page, PageOptions } from "../../core/message.ts";
import type { QueueName, TaskId } from "../../core/names.ts";
import { checkPage } from "../../core/request.ts";
import type { Task, TaskFailure } from "../../core/task.ts";
import { isListed, type TaskListRequest } from "../../core/task-request.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import type { Keys } from "./keys.ts";
import { readLetter } from "./letter.ts";
import { PROGRAMS } from "./programs.ts";
import { PAGE_BYTES, parseCursor } from "./reading.ts";
import { QueueLife, type Registry } from "./registry.ts";
import { type EncodedKeys, encodeKeys, joinKeys, type ScriptRunner } from "./script-call.ts";
import { decodeTask, isWhole } from "./task-texts.ts";

/** Dead letters of a task: their entries, the queues they are in, and the number of an entry's queue among these, from 1. */
export interface Failures {
  readonly entries: readonly Buffer[];
  readonly lives: readonly QueueLife[];
  groupOf(entry: Buffer): number;
}

/** Bytes of an entry at which the parts stand that are needed here (scripts/tasks.lua tells of all). */
const FAILURE_AT = 6;
const LIFE_AT = 12;
const PLACE_AT = 18;
const PART_BYTES = 6;

function buffers(reply: unknown): Buffer[] {
  assert(Array.isArray(reply) && reply.every((item) => Buffer.isBuffer(item)), "a list of bytes is answered");
  return reply as Buffer[];
}

/** Answers calls about tasks that change nothing. */
export class TaskReading {
  readonly #runner: ScriptRunner;
  readonly #registry: Registry;
  readonly #namespace: string;
  readonly #taskKeys: EncodedKeys;
  readonly #listKeys: EncodedKeys;
  readonly #failureKeys: EncodedKeys;

  constructor(runner: ScriptRunner, registry: Registry, namespace: string, keys: Keys) {
    this.#runner = runner;
    this.#registry = registry;
    this.#namespace = namespace;
    this.#taskKeys = encodeKeys([keys.tasks, keys.taskTexts, keys.taskCounts, keys.taskQueues]);
    this.#listKeys = encodeKeys([keys.taskOrder, keys.tasks, keys.taskTexts, keys.taskCounts, keys.taskQueues]);
    this.#failureKeys = encodeKeys([keys.tasks, keys.taskFailures]);
  }

  async #ask(id: TaskId, mostQueues: number): Promise<Buffer[] | undefined> {
    const reply = await this.#runner.read(PROGRAMS.task, this.#taskKeys, [id, String(mostQueues)]);
    return reply === null ? undefined : buffers(reply);
  }

  /** One task, or `undefined` when there is none of that id. */
  async find(id: TaskId): Promise<Task | undefined> {
    const [record, texts] = (await this.#ask(id, 0)) ?? [];
    return record === undefined || texts === undefined ? undefined : decodeTask(this.#registry.store, id, record, texts);
  }

  /** One task. @throws QueueFSError `task-not-found` */
  async get(id: TaskId): Promise<Task> {
    const task = await this.find(id);
    if (task === undefined) throw taskNotFound(id);
    return task;
  }

  /** Some of the queues in which a task may have pending messages; their names are not known. `undefined` when there is no such task. */
  async queuesOf(id: TaskId, atMost: number): Promise<readonly QueueLife[] | undefined> {
    const [record, , ...lives] = (await this.#ask(id, atMost)) ?? [];
    return record === undefined ? undefined : lives.map((life) => this.#lifeOf("" as QueueName, life.readUIntBE(0, PART_BYTES)));
  }

  #lifeOf(name: QueueName, life: number): QueueLife {
    return new QueueLife(this.#namespace, this.#registry.store, name, life);
  }

  /** A page of tasks, newest first. */
  async list(request: TaskListRequest): Promise<Page<Task>> {
    const { after, limit, type, status, resource, fromMs, toMs } = request;
    const isFiltered = [type, status, resource, fromMs, toMs].some((asked) => asked !== undefined);
    const from = after === undefined ? "+inf" : `(${parseCursor(after)}`;
    const looked = String(isFiltered ? TASK_LISTING_STEP_ITEMS : limit);
    const reply = await this.#runner.read(PROGRAMS.taskList, this.#listKeys, [from, looked, String(PAGE_BYTES)]);
    assert(Array.isArray(reply), "a list is answered");
    const [hasMore, ...rest] = reply as [number, ...Buffer[]];
    const items: Task[] = [];
    let last: Buffer | undefined;
    for (let index = 0; index + 2 < rest.length; index += 3) {
      if (items.length === limit) return { items, next: numberOf(last) };
      const [id, record, texts] = rest.slice(index, index + 3) as [Buffer, Buffer, Buffer];
      // Somebody took the record away, or spoilt it, and left its number: doctor finds it.
      if (!isWhole(record)) continue;
      last = record;
      const task = decodeTask(this.#registry.store, id.toString() as TaskId, record, texts);
      if (isListed(task, request)) items.push(task);
    }
    return hasMore === 1 && last !== undefined ? { items, next: numberOf(last) } : { items };
  }

  /** Which dead letters a task has, those after a failure of this number. `undefined` when there is no such task. */
  async failuresOf(id: TaskId, after: number, atMost: number): Promise<Failures | undefined> {
    const from = new ByteWriter(PART_BYTES);
    from.u48(after);
    const reply = await this.#runner.read(PROGRAMS.taskFailures, this.#failureKeys, [id, from.view(), String(atMost)]);
    if (reply === null) return undefined;
    const entries = buffers(reply);
    const groups = new Map<number, number>();
    for (const entry of entries) {
      const life = entry.readUIntBE(LIFE_AT, PART_BYTES);
      if (!groups.has(life)) groups.set(life, groups.size + 1);
    }
    return {
      entries,
      lives: [...groups.keys()].map((life) => this.#lifeOf("" as QueueName, life)),
      groupOf: (entry) => groups.get(entry.readUIntBE(LIFE_AT, PART_BYTES)) as number,
    };
  }

  /** A page of the messages of a task that are dead letters. @throws QueueFSError `task-not-found` */
  async failures(id: TaskId, options?: PageOptions): Promise<Page<TaskFailure>> {
    const { after, limit } = checkPage(options);
    const items: TaskFailure[] = [];
    let last = after === undefined ? 0 : parseCursor(after);
    for (let from = last; ; ) {
      const asked = limit - items.length + 1;
      const found = await this.failuresOf(id, from, asked);
      if (found === undefined) throw taskNotFound(id);
      const letters = await this.#lettersOf(found);
      for (const [index, letter] of letters.entries()) {
        from = (found.entries[index] as Buffer).readUIntBE(FAILURE_AT, PART_BYTES);
        if (letter === undefined) continue;
        if (items.length === limit) return { items, next: String(last) };
        items.push(letter);
        last = from;
      }
      if (letters.length === found.entries.length && found.entries.length < asked) return { items };
      // They were large.
      if (letters.length < found.entries.length && items.length > 0) return { items, next: String(last) };
    }
  }

  /** The first of these dead letters, `undefined` for those that are gone. */
  async #lettersOf({ entries, lives, groupOf }: Failures): Promise<(TaskFailure | undefined)[]> {
    if (entries.length === 0) return [];
    const wanted = new ByteWriter(entries.length * 26);
    for (const entry of entries) {
      wanted.u16(groupOf(entry));
      wanted.bytes(entry);
    }
    const keys = joinKeys(lives.map((life) => life.some("queue", "graves")));
    const reply = buffers(await this.#runner.read(PROGRAMS.taskLetters, keys, [this.#registry.store, String(PAGE_BYTES), wanted.view()]));
    const letters: (TaskFailure | undefined)[] = [];
    for (let index = 0; index + 1 < reply.length; index += 2) {
      const [name, letter] = [reply[index] as Buffer, reply[index + 1] as Buffer];
      const entry = entries[letters.length] as Buffer;
      const queue = name.toString() as QueueName;
      const life = this.#lifeOf(queue, entry.readUIntBE(LIFE_AT, PART_BYTES));
      const sequence = entry.readUIntBE(PLACE_AT, PART_BYTES);
      letters.push(letter.length === 0 ? undefined : { ...readLetter(new ByteReader(letter), sequence, life, true), queue });
    }
    return letters;
  }
}

/** The number of a task, by which a listing goes on. */
function numberOf(record: Buffer | undefined): string {
  return record === undefined ? "0" : String(record.readUIntBE(7, PART_BYTES));
}
