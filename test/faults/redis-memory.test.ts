/** A server whose memory is full, or that would rather forget: nothing is lost, and what drains a queue still works. */

import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis, type RedisOptions } from "../../src/backend/redis/index.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { type MessageId, parseQueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const JOBS = parseQueueName("jobs");
const NEXT = parseQueueName("next");
const PAYLOAD = new Uint8Array(16 * 1024).fill(120);

let server: RedisServer;
let administrator: Redis;
const opened: Backend[] = [];

async function open(options?: RedisOptions): Promise<Backend> {
  const store = await openRedis({ url: server.url, sweepIntervalMs: 3_600_000, onError: () => {}, ...options });
  opened.push(store);
  return store;
}

beforeEach(async () => {
  server = await startRedisServer();
  administrator = new Redis(server.url);
});

afterEach(async () => {
  administrator.disconnect();
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await server.stop();
});

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    (answer) => answer,
    (thrown: unknown) => thrown,
  );
  return isQueueFSError(error) ? error.code : `no error of ours: ${JSON.stringify(error)}`;
}

/** Lets the server have only as much memory as it uses now. */
async function fill(): Promise<void> {
  const used = Number(/used_memory:(\d+)/.exec(await administrator.info("memory"))?.[1]);
  await administrator.config("SET", "maxmemory", String(used - 1024));
}

test("a full server refuses what grows, and keeps doing all that gives back and removes", async () => {
  const backend = await open();
  await backend.createQueue(JOBS, { maxDeliveries: 2 });
  await backend.createQueue(NEXT);
  await backend.enqueue(JOBS, [{ data: PAYLOAD, id: "chosen" as MessageId }]);
  for (let index = 0; index < 40; index += 1) await backend.enqueue(JOBS, [{ data: PAYLOAD }]);
  const [given, released, nacked, kept, ended, chained] = await backend.dequeue(JOBS, { limit: 6 });
  if (!given || !released || !nacked || !kept || !ended || !chained) throw new Error("six messages");
  await fill();
  expect(await codeOf(backend.enqueue(JOBS, [{ data: PAYLOAD }]))).toBe("store-full");
  expect(await codeOf(backend.enqueue(JOBS, [{ data: PAYLOAD, id: "other" as MessageId }]))).toBe("store-full");
  expect(await codeOf(backend.createQueue(parseQueueName("more")))).toBe("store-full");
  const forward = [{ queue: NEXT, messages: [{ data: PAYLOAD }] }];
  expect(await codeOf(backend.ack(JOBS, [{ receipt: chained.receipt, forward }]))).toBe("store-full");
  expect(await backend.status(JOBS)).toEqual({ pending: 35, processing: 6 });

  expect(await backend.release(JOBS, [released.receipt])).toEqual(["released"]);
  expect(await backend.nack(JOBS, [{ receipt: nacked.receipt, delayMs: 60_000, reason: "not now" }])).toEqual(["pending"]);
  expect(await backend.nack(JOBS, [{ receipt: given.receipt, giveUp: true }])).toEqual(["dead"]);
  expect(await backend.extend(JOBS, [{ receipt: kept.receipt, leaseMs: 60_000 }])).toEqual(["extended"]);
  expect(await backend.extend(JOBS, [{ receipt: ended.receipt, leaseMs: 10 }])).toEqual(["extended"]);
  await new Promise((resolve) => setTimeout(resolve, 15));
  expect(await backend.recover()).toMatchObject({ recovered: 1, dead: 0 });
  expect(await backend.status(JOBS)).toEqual({ pending: 38, processing: 2 });
  expect(await backend.ack(JOBS, [{ receipt: kept.receipt }])).toEqual([{ outcome: "acked", forwarded: [] }]);
  expect(await backend.drop(JOBS, [given.id])).toEqual(["dropped"]);

  // Draining works while it is full, and makes room.
  await fill();
  for (let index = 0; index < 30; index += 1) {
    const [message] = await backend.dequeue(JOBS);
    expect(await backend.ackById(JOBS, [message?.id ?? ("" as never)])).toEqual(["acked"]);
  }
  expect((await backend.enqueue(JOBS, [{ data: PAYLOAD }]))[0]?.outcome).toBe("enqueued");
  expect(await backend.clear(JOBS)).toMatchObject({ processing: 1 });
});

test("calls of one turn: what grows is refused although an ack of the same turn makes room", async () => {
  const backend = await open();
  await backend.createQueue(JOBS);
  await backend.enqueue(JOBS, [{ data: PAYLOAD }, { data: PAYLOAD }]);
  const [held] = await backend.dequeue(JOBS);
  await fill();
  const [acked, refused] = await Promise.all([
    backend.ack(JOBS, [{ receipt: held?.receipt ?? ("" as never) }]),
    codeOf(
      backend.enqueue(
        JOBS,
        Array.from({ length: 20 }, () => ({ data: PAYLOAD })),
      ),
    ),
  ]);
  expect(acked).toEqual([{ outcome: "acked", forwarded: [] }]);
  expect(refused).toBe("store-full");
  expect(await backend.status(JOBS)).toEqual({ pending: 1, processing: 0 });
});

test("a server that evicts keys is refused, unless asked for, and doctor says so", async () => {
  await administrator.config("SET", "maxmemory", "100mb");
  await administrator.config("SET", "maxmemory-policy", "allkeys-lru");
  expect(await codeOf(openRedis({ url: server.url }))).toBe("store-unsuitable");
  const backend = await open({ allowEviction: true });
  expect(await backend.inspect()).toContainEqual(expect.objectContaining({ severity: "error", check: "eviction-policy" }));
  await administrator.config("SET", "maxmemory-policy", "noeviction");
  expect(await backend.inspect()).toContainEqual(expect.objectContaining({ severity: "ok", check: "eviction-policy" }));
});

test("after all is acked only what belongs to queues is left, whatever was chosen, delayed, nacked or forwarded", async () => {
  const backend = await open({ rememberMs: 20 });
  await backend.createQueue(JOBS);
  await backend.createQueue(NEXT);
  const keysThen = (await administrator.keys("*")).length;
  for (let round = 0; round < 5; round += 1) {
    await backend.enqueue(
      JOBS,
      Array.from({ length: 50 }, (_, index) => ({ data: PAYLOAD, id: `${round}-${index}` as MessageId })),
    );
    await backend.enqueue(
      JOBS,
      Array.from({ length: 50 }, (_, index) => ({ data: PAYLOAD, delayMs: index % 2 })),
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    const again = await backend.dequeue(JOBS, { limit: 30, requestId: `request-${round}` });
    await backend.nack(
      JOBS,
      again.map(({ receipt }) => ({ receipt, reason: "again" })),
    );
    const held = await backend.dequeue(JOBS, { limit: 1000 });
    expect(held).toHaveLength(100);
    const forward = [{ queue: NEXT, messages: [{ data: PAYLOAD }] }];
    await backend.ack(
      JOBS,
      held.map(({ receipt }, index) => (index === 0 ? { receipt, forward } : { receipt })),
    );
    const [next] = await backend.dequeue(NEXT);
    await backend.ack(NEXT, [{ receipt: next?.receipt ?? ("" as never) }]);
  }
  await new Promise((resolve) => setTimeout(resolve, 30));
  for (let more = true; more; ) more = (await backend.recover()).more;
  // Beside what an empty queue has: the answers of the one session.
  expect((await administrator.keys("*")).filter((key) => !key.includes(":session:")).length).toBeLessThanOrEqual(keysThen);
  for (const key of await administrator.keys("*")) expect(await administrator.memory("USAGE", key), key).toBeLessThan(4096);
});
