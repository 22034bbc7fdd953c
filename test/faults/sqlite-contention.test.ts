/** Several processes on one SQLite file at once, and one that holds the write lock as long as it likes. */

import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseQueueName } from "../../src/core/names.ts";
import { childProcesses } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openRemote } from "./remote-store.ts";
import { report } from "./report.ts";
import { sqliteStores } from "./store-kinds.ts";
import { openStore } from "./store-spec.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUE = parseQueueName("jobs");
const stores = sqliteStores();

beforeAll(() => stores.begin());
afterAll(() => stores.end());
afterEach(() => children.end());

describe("several processes on one file", () => {
  it("4 of them, 2,500 cycles each, beside one that holds the write lock 800 ms at a time: no error, exact totals, and event loops that turn", async () => {
    const spec = stores.fresh();
    const backend = await openStore(spec, () => {});
    await backend.createQueue(QUEUE);
    const holder = await children.start();
    const workers = await Promise.all([children.start(), children.start(), children.start(), children.start()]);
    const working = workers.map((worker, index) => worker.call("contend", spec, QUEUE, `${index}`, 2_500, 8));
    await Promise.all(workers.map((worker) => worker.whenTold(1)));
    const holding = holder.call("holdAgainAndAgain", spec.path, 2, 800, 200);
    const results = await Promise.all(working);
    await holding;
    for (const { delayP99Ms, delayMaxMs, longestCallMs } of results) {
      report(
        `event loop delay: p99 ${delayP99Ms.toFixed(1)} ms, longest ${delayMaxMs.toFixed(1)} ms; longest call ${longestCallMs.toFixed(0)} ms`,
      );
    }
    const acked = results.flatMap((result) => result.acked);
    expect(acked.length).toBe(10_000);
    expect(new Set(acked).size).toBe(10_000);
    expect(await backend.status(QUEUE)).toEqual({ pending: 0, processing: 0 });
    expect(await backend.statistics(QUEUE)).toMatchObject({ enqueued: 10_000, delivered: 10_000, acked: 10_000, returned: 0 });
    // The lock was held while they worked, for longer than any busy handler inside SQLite could have waited without blocking the loop.
    expect(Math.max(...results.map(({ longestCallMs }) => longestCallMs))).toBeGreaterThan(400);
    // 40 to 60 ms on a machine with more work than cores, far less on an idle one. A busy handler that blocks would show as 800 ms.
    for (const { delayP99Ms } of results) {
      // A loop that waited for the lock would stand still for 800 ms again and again. How long it waits for a core of a busy machine is
      // printed and not judged.
      expect(delayP99Ms).toBeLessThan(700);
    }
    await backend.close();
  });

  it("a process that stands still inside a write transaction: others fail as busy after their time, readers go on, its death frees them", async () => {
    const spec = { ...stores.fresh(), busyTimeoutMs: 300 };
    const backend = await openStore(spec, () => {});
    await backend.createQueue(QUEUE);
    await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }]);
    const holder = await children.start();
    await holder.call("holdWriteLock", spec.path);
    holder.signal("SIGSTOP");
    const begin = performance.now();
    const refused = backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }]);
    // Calls that come later have their own time.
    const later = new Promise((resolve) => setImmediate(resolve)).then(() => backend.dequeue(QUEUE));
    expect(await backend.status(QUEUE)).toEqual({ pending: 1, processing: 0 });
    expect((await backend.messages(QUEUE)).items.length).toBe(1);
    await expect(refused).rejects.toMatchObject({ code: "store-busy", retryable: true });
    expect(performance.now() - begin).toBeGreaterThanOrEqual(300);
    await expect(later).rejects.toMatchObject({ code: "store-busy" });
    // A process that comes now can look, too.
    const reader = await openRemote(await children.start(), { ...spec, busyTimeoutMs: 100 });
    expect(await reader.status(QUEUE)).toEqual({ pending: 1, processing: 0 });
    const patient = backend.enqueue(QUEUE, [{ data: new Uint8Array(2) }]);
    await holder.kill();
    expect(await patient).toMatchObject([{ outcome: "enqueued" }]);
    expect((await backend.dequeue(QUEUE, { limit: 10 })).map(({ data }) => data.byteLength)).toEqual([1, 2]);
    await backend.close();
  });

  it("a process with nothing to do never holds the lock: stopped at any instant, it keeps nobody waiting, 40 times", async () => {
    const spec = { ...stores.fresh(), busyTimeoutMs: 2_000, sweepIntervalMs: 3_600_000 };
    const backend = await openStore(spec, () => {});
    await backend.createQueue(QUEUE);
    const idle = await children.start();
    const store = await openRemote(idle, { ...spec, sweepIntervalMs: 10 });
    // Something in hand and something delayed, neither of them due.
    await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }, { data: new Uint8Array(1), delayMs: 600_000 }]);
    expect((await store.dequeue(QUEUE, { leaseMs: 600_000 })).length).toBe(1);
    for (let round = 0; round < 40; round += 1) {
      idle.signal("SIGSTOP");
      expect(await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }])).toMatchObject([{ outcome: "enqueued" }]);
      idle.signal("SIGCONT");
      // It answers, so it has run again, and its sweep with it.
      expect(await store.status(QUEUE)).toEqual({ pending: round + 2, processing: 1 });
    }
    await backend.close();
  });

  it("opening a new file all at once makes one store, 15 times", async () => {
    const openers = await Promise.all([children.start(), children.start(), children.start(), children.start()]);
    for (let round = 0; round < 15; round += 1) {
      const spec = stores.fresh();
      const opened = await Promise.all(openers.map((child) => openRemote(child, spec)));
      const made = await Promise.all(opened.map((store) => store.createQueue(QUEUE)));
      expect(made.filter((answer) => answer === "created").length).toBe(1);
      const ids = (await Promise.all(opened.map((store) => store.enqueue(QUEUE, [{ data: new Uint8Array(round) }]))))
        .flat()
        .map(({ id }) => id);
      expect(new Set(ids).size).toBe(4);
      // All made their ids from one store's name.
      expect(new Set(ids.map((id) => id.split("-")[1])).size).toBe(1);
      expect(await (opened[round % 4] as (typeof opened)[number]).status(QUEUE)).toEqual({ pending: 4, processing: 0 });
      await Promise.all(opened.map((store) => store.close()));
      const file = new Database(spec.path, { readonly: true });
      expect(file.prepare("SELECT count(*) FROM store WHERE name = 'store'").pluck().get()).toBe(1);
      expect(file.pragma("auto_vacuum", { simple: true })).toBe(2);
      file.close();
    }
  });

  it("opening a file of another boot all at once, while others write: each comes in, leases end once", async () => {
    const spec = stores.fresh();
    const openers = await Promise.all([children.start(), children.start(), children.start()]);
    const backend = await openStore({ ...spec, bootId: "boot-0" }, () => {});
    await backend.createQueue(QUEUE, { maxDeliveries: 0 });
    await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }]);
    await backend.close();
    for (let boot = 1; boot <= 10; boot += 1) {
      const opened = await Promise.all(openers.map((child) => openRemote(child, { ...spec, bootId: `boot-${boot}` })));
      const deliveries = (await Promise.all(opened.map((store) => store.dequeue(QUEUE, { leaseMs: 600_000 })))).flat();
      expect(deliveries.map(({ deliveryCount }) => deliveryCount)).toEqual([boot]);
      await Promise.all(opened.map((store) => store.close()));
    }
  });
});
