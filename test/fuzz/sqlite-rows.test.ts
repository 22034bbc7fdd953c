/**
 * SQLite files whose rows somebody changed: every call answers, or says by an error of the table that the store is damaged, in bounded time;
 * none fails in a raw way. What the counters say is theirs to say: that somebody changed them is for doctor to find.
 */

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { parseChosenMessageId, parseQueueName, parseTaskId } from "../../src/core/names.ts";
import { endingAsync, holdAsync } from "./fuzzing.ts";

const Q = parseQueueName("q");
const OTHER = parseQueueName("a/b");
const TASK = parseTaskId("task");
let folder: string;
let original: string;
let columns: readonly { readonly table: string; readonly column: string }[];

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A store with something in every table. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-rows-"));
  original = join(folder, "original.db");
  const backend = await openSqlite({ path: original, sweepIntervalMs: 3_600_000 });
  for (const queue of [Q, OTHER]) await backend.createQueue(queue);
  await backend.createTask({ id: TASK, type: "t", meta: { a: 1 }, producer: { leaseMs: 600_000 } }, [
    { queue: Q, messages: [{ data: bytes("of a task") }] },
  ]);
  await backend.enqueue(Q, [
    { data: bytes("one"), id: parseChosenMessageId("chosen") },
    { data: bytes("two") },
    { data: bytes("late"), delayMs: 600_000 },
    { data: bytes("three") },
    { data: bytes("four") },
  ]);
  const [first, second, third] = await backend.dequeue(Q, { limit: 3, leaseMs: 600_000, owner: "receipt", requestId: "r" });
  if (first === undefined || second === undefined || third === undefined) throw new Error("three messages are there");
  await backend.nack(Q, [{ receipt: second.receipt, giveUp: true, reason: "why" }]);
  await backend.release(Q, [third.receipt]);
  await backend.enqueue(OTHER, [{ data: bytes("other") }]);
  await backend.close();
  const database = new Database(original);
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all() as string[];
  columns = tables.flatMap((table) =>
    (database.pragma(`table_info(${table})`) as { readonly name: string }[]).map(({ name }) => ({ table, column: name })),
  );
  database.close();
  expect(columns.length).toBeGreaterThan(60);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const cell = fc.oneof(
  fc.constant(null),
  fc.constantFrom(
    0n,
    1n,
    -1n,
    2n,
    3n,
    2n ** 31n,
    2n ** 45n,
    2n ** 46n,
    2n ** 48n,
    2n ** 52n,
    2n ** 53n,
    2n ** 60n,
    2n ** 63n - 1n,
    -(2n ** 63n),
  ),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom("", "x", "completed", "{}", "{", "\ud800", "a\0b", "../x"),
  fc.uint8Array({ maxLength: 20 }).map((part) => Buffer.from(part)),
);
const change = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("set" as const), where: fc.nat(), row: fc.nat({ max: 5 }), cell }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete" as const), where: fc.nat(), row: fc.nat({ max: 5 }), cell }) },
);
type Change = { readonly kind: "set" | "delete"; readonly where: number; readonly row: number; readonly cell: unknown };

/** Changes rows as far as the types and keys of the tables let it. Returns how many changes there were. */
function spoil(path: string, changes: readonly Change[]): number {
  const database = new Database(path);
  let done = 0;
  try {
    for (const { kind, where, row, cell: value } of changes) {
      const { table, column } = columns[where % columns.length] as { table: string; column: string };
      const key = (database.pragma(`table_info(${table})`) as { readonly name: string; readonly pk: number }[])
        .filter(({ pk }) => pk > 0)
        .map(({ name }) => name);
      const place = `(${key.join(", ")}) IN (SELECT ${key.join(", ")} FROM ${table} LIMIT 1 OFFSET ${row})`;
      try {
        const statement =
          kind === "set"
            ? database.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${place}`)
            : database.prepare(`DELETE FROM ${table} WHERE ${place}`);
        done += kind === "set" ? statement.run(value).changes : statement.run().changes;
      } catch (error) {
        // A type or key of the table, which SQLite itself keeps up.
        if (!/^SQLITE_(?:CONSTRAINT|MISMATCH)/.test(String((error as { code?: unknown }).code))) throw error;
      }
    }
  } finally {
    database.close();
  }
  return done;
}

/** All that can be asked of a store. */
function calls(backend: Backend): readonly (() => Promise<unknown>)[] {
  return [
    () => backend.inspect(),
    () => backend.statuses({ under: "" }),
    () => backend.status(Q),
    () => backend.statistics(Q),
    () => backend.listQueues(),
    () => backend.peek(Q),
    () => backend.nextDue(Q),
    () => backend.messages(Q, { limit: 2 }),
    () => backend.deadLetters(Q),
    () => backend.task(TASK),
    () => backend.tasks(),
    () => backend.taskFailures(TASK),
    () => backend.recover(),
    () => backend.dequeue(Q, { limit: 3, leaseMs: 600_000, owner: "receipt", requestId: "r" }),
    () =>
      backend.enqueue(Q, [
        { data: bytes("one"), id: parseChosenMessageId("chosen") },
        { data: bytes("new"), task: TASK },
      ]),
    async () => {
      const [message] = await backend.dequeue(Q);
      if (message !== undefined)
        await backend.ack(Q, [{ receipt: message.receipt, forward: [{ queue: OTHER, messages: [{ data: message.data }] }] }]);
    },
    async () => {
      const [message] = await backend.dequeue(Q);
      if (message !== undefined) await backend.nack(Q, [{ receipt: message.receipt, reason: "no" }]);
    },
    async () =>
      backend.redrive(
        Q,
        (await backend.deadLetters(Q)).items.map(({ id }) => id),
      ),
    () => backend.mark({ under: "" }).then((mark) => backend.reached(mark)),
    () => backend.updateTask(TASK, { stage: "s" }),
    () => backend.redriveTask(TASK, TASK),
    () => backend.cancelTask(TASK),
    () => backend.clear(OTHER),
    () => backend.removeQueue(OTHER),
    () => backend.recover(),
  ];
}

/** Codes that tell of the damage; others are answers to what was asked. */
const TOLD = new Set([
  "store-corrupt",
  "store-failed",
  "store-unsuitable",
  "queue-not-found",
  "task-not-found",
  "task-ended",
  "invalid-argument",
  "id-conflict",
  "internal",
  "task-active",
]);

let copies = 0;

/** Opens a copy with changed rows, or says why that was refused. */
async function openSpoilt(changes: readonly Change[]): Promise<{ readonly backend?: Backend; readonly path: string }> {
  copies += 1;
  const path = join(folder, `copy-${copies}.db`);
  copyFileSync(original, path);
  spoil(path, changes);
  const opened = await endingAsync(() => openSqlite({ path, busyTimeoutMs: 1_000, sweepIntervalMs: 3_600_000, onError: () => {} }));
  if (opened.error !== undefined) expect(TOLD).toContain(opened.error.code);
  return { path, ...(opened.result === undefined ? {} : { backend: opened.result }) };
}

test("counts of a task at a slot that no number can name end a cancel with words, where it went on for ever", async () => {
  const where = columns.findIndex(({ table, column }) => table === "task_change" && column === "slot");
  const { backend } = await openSpoilt([{ kind: "set", where, row: 0, cell: 2n ** 61n }]);
  await expect(backend?.cancelTask(TASK)).rejects.toMatchObject({ code: "store-corrupt" });
  await backend?.close();
});

test("every call on a file with changed rows answers, or says what is wrong", async () => {
  await holdAsync<[Change[]]>([fc.array(change, { minLength: 1, maxLength: 3 })], 1, async (changes) => {
    const { backend, path } = await openSpoilt(changes);
    try {
      for (const call of backend === undefined ? [] : calls(backend)) {
        try {
          await call();
        } catch (error) {
          expect(isQueueFSError(error), `${call}: ${error instanceof Error ? error.stack : error}`).toBe(true);
          expect(TOLD, `${call}: ${error}`).toContain((error as { code: string }).code);
        }
      }
    } finally {
      await backend?.close();
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
    }
  });
});
