/** What fails after a commit (starting the checkpoint thread, looking at the log) must not be taken for a failure of the commit. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openDatabase } from "../../src/backend/sqlite/connection.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { prepareStatements } from "../../src/backend/sqlite/statements.ts";
import { TaskMemory } from "../../src/backend/sqlite/task-memory.ts";
import { Writer } from "../../src/backend/sqlite/writer.ts";
import { systemClock, systemRandom } from "../../src/core/clock.ts";
import { parseQueueName } from "../../src/core/names.ts";

const QUEUE = parseQueueName("jobs");
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-after-commit-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

it.each(["onCommit", "onChange"] as const)("an error of %s is told, and no call is done a second time", async (hook) => {
  const path = join(folder, "queue.db");
  await (await openSqlite({ path })).close();
  const told: unknown[] = [];
  const settings = {
    path,
    durability: "normal",
    busyTimeoutMs: 100,
    maxMessageBytes: 1_000,
    maxWaitingBytes: 10_000,
    rememberMs: 1_000,
    sweepIntervalMs: 1_000,
    minFreeBytes: 0,
    clock: systemClock,
    random: systemRandom,
    bootId: "same",
    onError: (error: unknown) => void told.push(error),
  } as const;
  const database = await openDatabase(settings, (opened) => opened);
  const context = {
    sql: prepareStatements(database),
    clock: systemClock,
    random: systemRandom,
    storeId: "store",
    rememberMs: 1_000,
    tasks: new TaskMemory(),
  };
  const failure = new Error("no thread may be started");
  const fail = (): never => {
    throw failure;
  };
  const hooks = { onCommit: () => {}, onChange: () => {}, makeRoom: () => false, [hook]: fail };
  const writer = new Writer(database, context, settings, hooks);
  database.exec("CREATE TEMP TABLE done (number INTEGER)");
  const insert = database.prepare("INSERT INTO done VALUES (?)");
  const call = (number: number) =>
    writer.run((step) => {
      step.changedQueues.add(QUEUE);
      return insert.run(number).changes;
    });
  expect(await Promise.all([call(1), call(2), call(3)])).toEqual([1, 1, 1]);
  await writer.close();
  expect(database.prepare("SELECT number FROM done ORDER BY number").pluck().all()).toEqual([1, 2, 3]);
  expect(told).toEqual([failure]);
  database.close();
});
