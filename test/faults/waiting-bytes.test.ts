/** A producer that never awaits is refused before it fills the memory, on every store that has something to wait for. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openHttp } from "../../src/backend/http/index.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import type { QueueName } from "../../src/core/names.ts";
import { type HttpServer, listen } from "../../src/http/index.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const JOBS = "jobs" as QueueName;
const NEXT = "next" as QueueName;
const MAX_WAITING_BYTES = 64 * 1024;
const DATA = new Uint8Array(1024);
const CALLS = 200;

let folder: string;
let redis: RedisServer;
let served: Backend;
let http: HttpServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-waiting-"));
  redis = await startRedisServer();
  served = await openMemory();
  http = await listen(served, { port: 0 });
});
afterAll(async () => {
  await http.stop();
  await served.close();
  await redis.stop();
  rmSync(folder, { recursive: true });
});

const STORES: Readonly<Record<string, () => Promise<Backend>>> = {
  sqlite: () => openSqlite({ path: join(folder, "queue.db"), maxWaitingBytes: MAX_WAITING_BYTES }),
  redis: () => openRedis({ url: redis.url, maxWaitingBytes: MAX_WAITING_BYTES }),
  http: () => openHttp({ url: http.url, maxWaitingBytes: MAX_WAITING_BYTES }),
};

/** What became of calls made without awaiting any: `done`, or the code of the error. */
async function outcomesOf(call: () => Promise<unknown>): Promise<string[]> {
  return Promise.all(
    Array.from({ length: CALLS }, () =>
      call().then(
        () => "done",
        (error: unknown) => (error as { code: string }).code,
      ),
    ),
  );
}

test.each(Object.keys(STORES))(
  "on %s calls that store messages are refused beyond maxWaitingBytes, and what was taken is stored",
  async (name) => {
    await using store = await (STORES[name] as () => Promise<Backend>)();
    await store.createQueue(JOBS);
    await store.createQueue(NEXT);

    const enqueued = await outcomesOf(() => store.enqueue(JOBS, [{ data: DATA }]));
    const stored = enqueued.filter((outcome) => outcome === "done").length;
    expect(new Set(enqueued)).toEqual(new Set(["done", "store-busy"]));
    expect(stored).toBeGreaterThan(40);
    expect((await store.status(JOBS)).pending).toBe(stored);

    const made = await outcomesOf(() => store.createTask({ type: "import" }, [{ queue: JOBS, messages: [{ data: DATA }] }]));
    const created = made.filter((outcome) => outcome === "done").length;
    expect(new Set(made)).toEqual(new Set(["done", "store-busy"]));
    expect((await store.status(JOBS)).pending).toBe(stored + created);

    // Acks make room: those that forward nothing are always taken.
    const held = await store.dequeue(JOBS, { limit: stored + created });
    let next = 0;
    const forwarded = await outcomesOf(async () => {
      const { receipt } = held[next++ % 40] as (typeof held)[number];
      await store.ack(JOBS, [{ receipt, forward: [{ queue: NEXT, messages: [{ data: DATA }] }] }]);
    });
    expect(new Set(forwarded)).toEqual(new Set(["done", "store-busy"]));
    const waiting = store.enqueue(NEXT, [{ data: new Uint8Array(2 * MAX_WAITING_BYTES) }]);
    expect(await Promise.all(held.slice(40).map(({ receipt }) => store.ack(JOBS, [{ receipt }])))).toEqual(
      held.slice(40).map(() => [{ outcome: "acked", forwarded: [] }]),
    );
    await waiting;

    // It takes more again, in any amount that is awaited.
    for (let count = 0; count < CALLS; count += 1) await store.enqueue(JOBS, [{ data: DATA }]);
  },
);
