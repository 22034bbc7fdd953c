/** What a step costs must not depend on how much the store holds: every statement finds its rows by key, and measured times stay level. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { statements } from "../../src/backend/sqlite/statements.generated.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { childProcesses } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openRemote } from "./remote-store.ts";
import { report } from "./report.ts";
import { untilStatus } from "./until.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const [EMPTY, DEEP] = [parseQueueName("empty"), parseQueueName("deep")];
const DEPTH = 200_000;
const HELD = 20_000;

let folder: string;
let backend: Backend;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-cost-"));
  backend = await openSqlite({ path: join(folder, "queue.db"), durability: "normal", sweepIntervalMs: 3_600_000 });
  for (const queue of [EMPTY, DEEP]) await backend.createQueue(queue);
  for (let stored = 0; stored < DEPTH; stored += 10_000) {
    await backend.enqueue(
      DEEP,
      Array.from({ length: 10_000 }, () => ({ data: new Uint8Array(64) })),
    );
  }
  for (let held = 0; held < HELD; held += 1_000) await backend.dequeue(DEEP, { limit: 1_000, leaseMs: 3_600_000 });
});

afterEach(() => children.end());

afterAll(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
});

/**
 * Statements that look at more than the rows they are asked for, and why they may. All others must find them by a key: no scan of a table, no
 * sorting.
 */
const LOOK_AT_ALL: Readonly<Record<string, string>> = {
  allQueues: "every queue was asked for",
  queuesWithin: "every queue under a path was asked for, in order",
  emptyingSlot: "the first entry of an index that holds slots being emptied only",
  names: "a page of the names of all queues, in the order of their index",
  sessions: "one row per process that is alive or died lately",
  countRows: "inspection",
  countOrphans: "inspection",
  wrongParts: "inspection",
  misplacedTasks: "inspection",
  unendedTasks: "inspection",
  countTasks: "inspection",
  endAllLeases: "once per boot",
  rebaseDelays: "once per boot",
  rebaseChosenIds: "once per boot",
  rebaseRequests: "once per boot",
  deleteSessions: "once per boot",
  searchedTasks: "the first entries of an index that holds cancelled tasks with work left only",
  takeSpareSlot: "the first spare slot that is not being emptied; few are",
};

describe("the plan of every statement", () => {
  const database = new Database(":memory:");

  it("finds rows by key, but for those that look at all on purpose", async () => {
    const file = new Database(join(folder, "queue.db"), { readonly: true });
    const scanning: string[] = [];
    for (const [name, sql] of Object.entries(statements)) {
      const parameters = Array.from({ length: (sql.replaceAll(/--.*$/gm, "").match(/\?/g) ?? []).length }, () => 1);
      const plan = file.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
      // A statement without a plan inserts, or touches a constant.
      if (plan.some(({ detail }) => /^SCAN(?! CONSTANT ROW| \d+-ROW VALUES| \(subquery)|TEMP B-TREE/.test(detail)))
        scanning.push(`${name}: ${plan.map(({ detail }) => detail).join("; ")}`);
    }
    file.close();
    database.close();
    expect(scanning.filter((line) => LOOK_AT_ALL[line.split(":")[0] as string] === undefined)).toEqual([]);
    // None is on the list without need.
    expect(Object.keys(LOOK_AT_ALL).filter((name) => !Object.hasOwn(statements, name))).toEqual([]);
  });

  it("reads a status by one search of one row", () => {
    const file = new Database(join(folder, "queue.db"), { readonly: true });
    const plan = file.prepare(`EXPLAIN QUERY PLAN ${statements.statusByName}`).all("deep") as { detail: string }[];
    file.close();
    expect(plan.map(({ detail }) => detail)).toEqual(["SEARCH queue USING INDEX sqlite_autoindex_queue_1 (name=?)"]);
  });
});

/** Medians of two calls that take turns, so that what else the machine does falls on both. In microseconds. */
async function medians(rounds: number, calls: readonly [() => Promise<unknown>, () => Promise<unknown>]): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    for (const which of [0, 1] as const) {
      const begin = process.hrtime.bigint();
      await calls[which]();
      times[which].push(Number(process.hrtime.bigint() - begin) / 1e3);
    }
  }
  const median = (values: number[]): number => values.sort((left, right) => left - right)[values.length >> 1] as number;
  return [median(times[0]), median(times[1])];
}

describe(`with ${DEPTH} messages, ${HELD} of them in processing`, () => {
  it("a status costs what it costs on an empty queue", async () => {
    const [small, large] = await medians(3_000, [() => backend.status(EMPTY), () => backend.status(DEEP)]);
    report(`status: ${small.toFixed(1)} us empty, ${large.toFixed(1)} us deep`);
    expect(large).toBeLessThan(3 * small);
  });

  it("a cycle of enqueue, dequeue and ack costs at most three times what it costs on an empty queue", async () => {
    const cycle = (queue: typeof DEEP) => async (): Promise<void> => {
      await backend.enqueue(queue, [{ data: new Uint8Array(64) }]);
      const [message] = await backend.dequeue(queue, { leaseMs: 3_600_000 });
      await backend.ack(queue, [{ receipt: message?.receipt as never }]);
    };
    const [small, large] = await medians(400, [cycle(EMPTY), cycle(DEEP)]);
    report(`cycle: ${small.toFixed(0)} us empty, ${large.toFixed(0)} us deep`);
    expect(large).toBeLessThan(3 * small);
  });

  it("what a dead process held is found behind all that others hold, in bounded steps", async () => {
    // Its messages lie behind the 20,000 places that one step looks through.
    const [last] = await backend.enqueue(EMPTY, [{ data: new Uint8Array([1]) }]);
    const consumer = await children.start();
    const store = await openRemote(consumer, { kind: "sqlite", path: join(folder, "queue.db"), sweepIntervalMs: 3_600_000 });
    const later = parseQueueName("later");
    await store.createQueue(later);
    await store.enqueue(later, [{ data: new Uint8Array([2]) }]);
    expect((await store.dequeue(later, { leaseMs: 3_600_000 })).length).toBe(1);
    expect(await store.dequeue(EMPTY, { leaseMs: 3_600_000 })).toMatchObject([{ id: last?.id }]);
    await consumer.kill();
    let steps = 0;
    const before = await backend.status(DEEP);
    for (let more = true; more; steps += 1) more = (await backend.recover()).more;
    expect(steps).toBeGreaterThan(1);
    await untilStatus(backend, later, ({ pending }) => pending === 1);
    await untilStatus(backend, EMPTY, ({ pending }) => pending === 1);
    expect(await backend.status(DEEP)).toEqual(before);
  });
});
