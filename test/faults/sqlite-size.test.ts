/** The size of the file: near its payload while full, small again after a drain, whoever reads meanwhile. */

import { existsSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { report } from "./report.ts";

const QUEUE = parseQueueName("jobs");
const MEBIBYTE = 1024 * 1024;
const MESSAGES = 12_000;
/** Where the size is not what matters. */
const FEWER_MESSAGES = 6_000;
const MESSAGE_BYTES = 4_096;

let folder: string;
let path: string;
let backend: Backend;
const errors: unknown[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-size-"));
  path = join(folder, "queue.db");
});

afterEach(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
  expect(errors.splice(0)).toEqual([]);
});

async function open(): Promise<void> {
  backend = await openSqlite({ path, durability: "normal", sweepIntervalMs: 10, onError: (error) => void errors.push(error) });
  await backend.createQueue(QUEUE);
}

function bytesOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

/** The file and its log. */
function storedBytes(): number {
  return bytesOf(path) + bytesOf(`${path}-wal`);
}

async function fill(messages: number): Promise<void> {
  for (let stored = 0; stored < messages; stored += 500) {
    await backend.enqueue(
      QUEUE,
      Array.from({ length: 500 }, () => ({ data: new Uint8Array(MESSAGE_BYTES).fill(stored) })),
    );
  }
}

async function drain(): Promise<void> {
  for (;;) {
    const messages = await backend.dequeue(QUEUE, { limit: 500 });
    if (messages.length === 0) return;
    await backend.ack(
      QUEUE,
      messages.map(({ receipt }) => ({ receipt })),
    );
  }
}

/** Lets the sweeps do their work until the file and its log are small; the test's own timeout bounds it. Answers the longest pause, in milliseconds. */
async function untilSmall(bytes: number): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  while (storedBytes() >= bytes) await new Promise((resolve) => setImmediate(resolve));
  delay.disable();
  return delay.max / 1e6;
}

describe("a file that is filled and drained", () => {
  it("costs at most a tenth more than its payload while full, and is small again after the drain, without being opened anew", async () => {
    await open();
    await fill(MESSAGES);
    expect(storedBytes() - bytesOf(`${path}-wal`)).toBeLessThan(1.1 * MESSAGES * MESSAGE_BYTES);
    await drain();
    const pauseMs = await untilSmall(2 * MEBIBYTE);
    report(`longest pause of the event loop while shrinking: ${pauseMs.toFixed(0)} ms`);
    expect(pauseMs).toBeLessThan(1_000);
    // A queue that works on a little needs no more of it.
    await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }]);
    expect(storedBytes()).toBeLessThan(2 * MEBIBYTE);
    expect((await backend.inspect()).filter(({ severity }) => severity !== "ok")).toEqual([]);
  });

  it("is small again too when it was made without incremental vacuum", async () => {
    const database = new Database(path);
    database.pragma("auto_vacuum = NONE");
    database.exec("CREATE TABLE first (a); DROP TABLE first");
    database.close();
    await open();
    expect((await backend.inspect()).find(({ check }) => check === "vacuum")?.severity).toBe("warning");
    await fill(FEWER_MESSAGES);
    await drain();
    expect(await untilSmall(2 * MEBIBYTE)).toBeLessThan(1_000);
    expect((await backend.inspect()).filter(({ severity }) => severity !== "ok")).toEqual([]);
  });

  it("is small again once a reader that held an old state lets go of it, and grows no more than what was written meanwhile", async () => {
    await open();
    await fill(FEWER_MESSAGES);
    const reader = new Database(path, { readonly: true });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM message").get();
    await drain();
    expect(storedBytes()).toBeGreaterThan(2 * MEBIBYTE);
    expect(await backend.status(QUEUE)).toEqual({ pending: 0, processing: 0 });
    reader.close();
    await untilSmall(2 * MEBIBYTE);
  });

  it("keeps its log short under a reader that never rests", async () => {
    await open();
    let isReading = true;
    const reading = (async () => {
      while (isReading) await backend.statuses({ under: "" });
    })();
    await fill(FEWER_MESSAGES);
    await drain();
    isReading = false;
    await reading;
    expect(bytesOf(`${path}-wal`)).toBeLessThan(16 * MEBIBYTE);
    await untilSmall(2 * MEBIBYTE);
  });
});

describe("clearing and removing", () => {
  async function fillSmall(count: number): Promise<void> {
    for (let stored = 0; stored < count; stored += 10_000) {
      await backend.enqueue(
        QUEUE,
        Array.from({ length: 10_000 }, () => ({ data: new Uint8Array(16) })),
      );
    }
  }

  function read(sql: string): number {
    const database = new Database(path, { readonly: true });
    const value = database.prepare(sql).pluck().get() as number;
    database.close();
    return value;
  }

  const EMPTYING: readonly (readonly [string, number, () => Promise<void>])[] = [
    ["clear", 200_000, async () => void (await backend.clear(QUEUE))],
    [
      "remove",
      50_000,
      async () => {
        await backend.removeQueue(QUEUE);
        await backend.createQueue(QUEUE);
      },
    ],
  ];

  it.each(EMPTYING)(
    "%s of %i messages answers at once, its rows vanish in steps, and what comes after is kept",
    async (_what, count, empty) => {
      await open();
      await fillSmall(count);
      const held = await backend.dequeue(QUEUE, { limit: 1_000 });
      const begin = performance.now();
      await empty();
      const tookMs = performance.now() - begin;
      const left: number = read("SELECT count(*) FROM message");
      const [after] = await backend.enqueue(QUEUE, [{ data: new Uint8Array([1]) }]);
      expect(await backend.status(QUEUE)).toEqual({ pending: 1, processing: 0 });
      expect(
        await backend.ack(
          QUEUE,
          held.slice(0, 10).map(({ receipt }) => ({ receipt })),
        ),
      ).toEqual(held.slice(0, 10).map(() => ({ outcome: "stale" })));
      // Hardly any had been deleted by then: they go later, a few at a time, while the queue is in use.
      expect(left).toBeGreaterThan(count / 2);
      expect(tookMs).toBeLessThan(500);
      const [message] = await backend.dequeue(QUEUE, { leaseMs: 3_600_000 });
      expect(message?.id).toBe(after?.id);
      let calls = 0;
      let longestCallMs = 0;
      while (read("SELECT count(*) FROM spare_slot WHERE emptying = 1") > 0) {
        const called = performance.now();
        await backend.enqueue(QUEUE, [{ data: new Uint8Array([2]) }]);
        longestCallMs = Math.max(longestCallMs, performance.now() - called);
        calls += 1;
      }
      report(`answered in ${tookMs.toFixed(1)} ms; ${calls} calls while the rows went, the longest took ${longestCallMs.toFixed(0)} ms`);
      // In a hundred steps or more, between which everybody has a turn.
      expect(calls).toBeGreaterThan(50);
      expect(read("SELECT count(*) FROM message")).toBe(calls + 1);
      expect(read("SELECT count(*) FROM place")).toBe(1);
      expect(await backend.ack(QUEUE, [{ receipt: message?.receipt as never }])).toMatchObject([{ outcome: "acked" }]);
      expect((await backend.inspect()).filter(({ severity }) => severity !== "ok")).toEqual([]);
      await untilSmall(4 * MEBIBYTE);
    },
  );
});
