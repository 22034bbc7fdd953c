/** Options: every option of every table with any value is taken or refused by its name, and what the table does not have is refused. */

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { HTTP_OPTIONS, readHttpOptions } from "../../src/backend/http/options.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { MEMORY_OPTIONS } from "../../src/backend/memory/options.ts";
import { REDIS_OPTIONS, readRedisOptions } from "../../src/backend/redis/options.ts";
import { SQLITE_OPTIONS } from "../../src/backend/sqlite/options.ts";
import { BACKOFF_OPTIONS, checkBackoff } from "../../src/core/backoff.ts";
import { parseTaskId } from "../../src/core/names.ts";
import { type OptionTable, readOptions } from "../../src/core/options.ts";
import {
  checkChangedSettings,
  checkDequeue,
  checkNewSettings,
  checkPage,
  DEQUEUE_OPTIONS,
  PAGE_OPTIONS,
  QUEUE_SETTINGS,
} from "../../src/core/request.ts";
import {
  checkNewTask,
  checkSeal,
  checkTaskChange,
  checkTaskList,
  NEW_TASK_OPTIONS,
  PRODUCER_OPTIONS,
  SEAL_OPTIONS,
  TASK_CHANGE_OPTIONS,
  TASK_KEEP_OPTIONS,
  TASK_LIST_OPTIONS,
} from "../../src/core/task-request.ts";
import { EXTEND_KEYS, NACK_KEYS } from "../../src/fs/control-writes.ts";
import { OPEN_OPTIONS, QUEUE_FS_OPTIONS, QueueFS, READ_OPTIONS, REMOVE_OPTIONS, WRITE_OPTIONS } from "../../src/fs/queue-fs.ts";
import { createApp } from "../../src/http/app.ts";
import { APP_OPTIONS, LISTEN_OPTIONS } from "../../src/http/options.ts";
import { readQuery } from "../../src/http/route.ts";
import { ENQUEUE_QUERY, PAGE_QUERY } from "../../src/http/routes/messages.ts";
import { CONSUME_OPTIONS } from "../../src/queue/consume.ts";
import { NAMED_QUEUE_OPTIONS, NamedQueue } from "../../src/queue/named-queue.ts";
import { REPEAT_OPTIONS, repeat } from "../../src/queue/schedule.ts";
import { WAIT_OPTIONS, waitComplete } from "../../src/queue/wait.ts";
import { Worker } from "../../src/queue/worker.ts";
import { WORKER_OPTIONS } from "../../src/queue/worker-options.ts";
import { TASKS_OPTIONS, Tasks } from "../../src/task/tasks.ts";
import { TASK_WAIT_OPTIONS, waitTask } from "../../src/task/wait.ts";
import { endingAsync, hold, holdAsync } from "./fuzzing.ts";
import { anyText, anyValue } from "./values.ts";

/** Who takes the options of a table, and what it needs beside the one that is tried. */
interface Taker {
  readonly table: OptionTable;
  readonly needed?: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: what is passed is wrong on purpose.
  readonly take: (options: any) => unknown;
}

let backend: Backend;
let files: QueueFS;
let queue: NamedQueue<unknown>;
const task = parseTaskId("done");
beforeAll(async () => {
  backend = await openMemory();
  files = new QueueFS(backend);
  queue = new NamedQueue(backend, "q");
  await queue.ensure();
  await backend.createTask({ id: task, type: "t" });
  await backend.sealTask(task);
});
afterAll(async () => {
  await files.close();
  await backend.close();
});

/** Objects with methods are taken as they are; what is tried on them is everything that is no object. */
const noObject = anyValue.filter((value) => value === null || (typeof value !== "object" && typeof value !== "function"));

const TAKERS: Readonly<Record<string, Taker>> = {
  openMemory: { table: MEMORY_OPTIONS, take: async (options) => (await openMemory(options)).close() },
  openSqlite: { table: SQLITE_OPTIONS, take: (options) => readOptions("openSqlite", SQLITE_OPTIONS, options) },
  openRedis: { table: REDIS_OPTIONS, take: readRedisOptions },
  openHttp: { table: HTTP_OPTIONS, take: readHttpOptions },
  dequeue: { table: DEQUEUE_OPTIONS, take: checkDequeue },
  "new settings": { table: QUEUE_SETTINGS, take: checkNewSettings },
  "changed settings": { table: QUEUE_SETTINGS, take: checkChangedSettings },
  page: { table: PAGE_OPTIONS, take: checkPage },
  "new task": { table: NEW_TASK_OPTIONS, needed: { type: "t" }, take: checkNewTask },
  "keepMs of a task": { table: TASK_KEEP_OPTIONS, take: (keepMs) => checkNewTask({ type: "t", keepMs }) },
  "producer of a task": { table: PRODUCER_OPTIONS, needed: { leaseMs: 1_000 }, take: (producer) => checkNewTask({ type: "t", producer }) },
  "change of a task": { table: TASK_CHANGE_OPTIONS, take: checkTaskChange },
  "sealing a task": { table: SEAL_OPTIONS, take: checkSeal },
  "listing of tasks": { table: TASK_LIST_OPTIONS, take: checkTaskList },
  backoff: { table: BACKOFF_OPTIONS, needed: { firstMs: 1, maximumMs: 86_400_000 }, take: checkBackoff },
  NamedQueue: { table: NAMED_QUEUE_OPTIONS, take: (options) => new NamedQueue(backend, "q", options) },
  Worker: { table: WORKER_OPTIONS, take: (options) => new Worker(queue, () => {}, options) },
  waitComplete: { table: WAIT_OPTIONS, take: (options) => waitComplete(backend, { queues: [queue.name] }, options) },
  consume: { table: CONSUME_OPTIONS, needed: { signal: AbortSignal.abort() }, take: (options) => queue.consume(options).next() },
  repeat: {
    table: REPEAT_OPTIONS,
    needed: { signal: AbortSignal.abort() },
    take: async (options) => (await repeat(queue, "s", { everyMs: 86_400_000 }, () => 1, options)).stop(),
  },
  Tasks: { table: TASKS_OPTIONS, take: (options) => new Tasks(backend, options) },
  waitTask: { table: TASK_WAIT_OPTIONS, take: (options) => waitTask(backend, task, options) },
  createApp: { table: APP_OPTIONS, take: (options) => createApp(backend, options) },
  listen: { table: LISTEN_OPTIONS, take: (options) => readOptions("listen", LISTEN_OPTIONS, options) },
  QueueFS: { table: QUEUE_FS_OPTIONS, take: (options) => new QueueFS(backend, options).close() },
  "files.open": { table: OPEN_OPTIONS, needed: { mode: "read" }, take: async (options) => (await files.open("/q/size", options)).close() },
  "files.read": { table: READ_OPTIONS, take: (options) => files.read("/q/dequeue", options) },
  "files.rm": { table: REMOVE_OPTIONS, take: async (options) => files.mkdir("/gone").then(() => files.rm("/gone", options)) },
  "files.write": { table: WRITE_OPTIONS, take: (options) => files.write("/q/clear", new Uint8Array(), options) },
  ".nack": { table: NACK_KEYS, take: (options) => readOptions(".nack", NACK_KEYS, options) },
  ".extend": { table: EXTEND_KEYS, take: (options) => readOptions(".extend", EXTEND_KEYS, options) },
};

/** Codes with which an option may be refused. */
const REFUSALS = ["invalid-argument", "invalid-name", "message-too-large"];

describe.each(Object.entries(TAKERS))("options of %s", (_name, { table, needed, take }) => {
  const names = Object.keys(table);

  test("take any value or refuse it by name", async () => {
    const pair = fc
      .constantFrom(...names)
      .chain((name) => fc.tuple(fc.constant(name), table[name]?.type === "object" ? noObject : anyValue));
    await holdAsync<[[string, unknown]]>([pair], 2, async ([name, value]) => {
      const { error } = await endingAsync(async () => take({ ...needed, ...(value === undefined ? {} : { [name]: value }) }));
      if (error === undefined) return;
      // An option may be good in itself and not go with the others.
      expect(REFUSALS.concat("unsupported", "wrong-mode", "timed-out")).toContain(error.code);
      if (error.code === "invalid-argument") expect(error.message.toLowerCase()).toContain(name.replace("Ms", "").toLowerCase());
    });
  });

  test("refuse what the table does not have, and what is no object of options", async () => {
    await holdAsync<[string, unknown]>(
      [anyText.filter((name) => !names.includes(name) && name !== "timeoutMs"), anyValue],
      1,
      async (name, value) => {
        const stranger = Object.defineProperty({ ...needed }, name, { value, enumerable: true, configurable: true, writable: true });
        expect((await endingAsync(async () => take(stranger))).error?.code).toBe("invalid-argument");
      },
    );
    await holdAsync<[unknown]>(
      [anyValue.filter((value) => value !== undefined && (typeof value !== "object" || value === null))],
      1,
      async (value) => {
        expect((await endingAsync(async () => take(value))).error?.code).toBe("invalid-argument");
      },
    );
  });
});

test("a query says each name once, in the types of its table", () => {
  const row = fc.tuple(
    fc.oneof(fc.constantFrom(...Object.keys(PAGE_QUERY), ...Object.keys(ENQUEUE_QUERY)), anyText),
    fc.oneof(fc.string({ unit: "binary", maxLength: 10 }), fc.integer().map(String)),
  );
  hold<[[string, string][]]>([fc.array(row, { maxLength: 4 })], 10, (pairs) => {
    for (const table of [PAGE_QUERY, ENQUEUE_QUERY, REMOVE_OPTIONS]) {
      let read: Record<string, unknown>;
      try {
        read = readQuery(table as OptionTable, new URLSearchParams(pairs));
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid-argument" });
        continue;
      }
      expect(new Set(pairs.map(([name]) => name)).size).toBe(pairs.length);
      for (const [name, text] of pairs)
        expect(String(read[name])).toBe((table as OptionTable)[name]?.type === "integer" ? String(Number(text)) : text);
    }
  });
});
