/** A deep queue holds nobody up: what a step makes the server do does not grow with it. Counted in commands, which no busy machine changes. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { RECOVERY_STEP_ITEMS } from "../../src/core/limits.ts";
import { parseQueueName, type QueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const DEEP = parseQueueName("deep");
const SHALLOW = parseQueueName("shallow");
const PENDING = 200_000;
const PROCESSING = 5_000;
const data = new Uint8Array(16);

let server: RedisServer;
let administrator: Redis;
let backend: Backend;

beforeAll(async () => {
  server = await startRedisServer();
  administrator = new Redis(server.url);
  backend = await openRedis({ url: server.url, sweepIntervalMs: 3_600_000 });
  await backend.createQueue(DEEP);
  await backend.createQueue(SHALLOW);
  for (let left = PENDING + PROCESSING; left > 0; left -= 5000)
    await backend.enqueue(
      DEEP,
      Array.from({ length: 5000 }, () => ({ data })),
    );
  await backend.enqueue(
    SHALLOW,
    Array.from({ length: 20 }, () => ({ data })),
  );
});

afterAll(async () => {
  await backend.close();
  administrator.disconnect();
  await server.stop();
});

/** The commands that the server runs for a call, those within scripts included. */
async function commandsOf(call: () => Promise<unknown>): Promise<Record<string, number>> {
  await administrator.config("RESETSTAT");
  await call();
  const counts: Record<string, number> = {};
  for (const [, name, calls] of (await administrator.info("commandstats")).matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
    if (name !== "config|resetstat" && name !== "info") counts[name as string] = Number(calls);
  }
  return counts;
}

/** The same call on the deep and on the shallow queue must make the server do the same. */
async function sameOnBoth(call: (queue: QueueName) => Promise<unknown>): Promise<void> {
  // Once before: the first call of a kind has scripts to load and, at times, a wake time to set.
  await call(SHALLOW);
  await call(DEEP);
  const shallow = await commandsOf(() => call(SHALLOW));
  expect(Object.keys(shallow).length).toBeGreaterThan(0);
  expect(await commandsOf(() => call(DEEP))).toEqual(shallow);
}

test("enqueue, dequeue, ack, nack, extend, status, mark, statistics and peek cost the same in a deep queue", async () => {
  await backend.dequeue(DEEP, { limit: 1000, leaseMs: 3_600_000 });
  for (let held = 1000; held < PROCESSING; held += 1000) await backend.dequeue(DEEP, { limit: 1000, leaseMs: 3_600_000 });
  await backend.dequeue(SHALLOW, { leaseMs: 3_600_000 });
  expect(await backend.status(DEEP)).toEqual({ pending: PENDING, processing: PROCESSING });
  await sameOnBoth((queue) => backend.enqueue(queue, [{ data }]));
  await sameOnBoth((queue) => backend.dequeue(queue));
  await sameOnBoth((queue) => backend.status(queue));
  await sameOnBoth(async (queue) => backend.reached(await backend.mark({ queues: [queue] })));
  await sameOnBoth((queue) => backend.statistics(queue));
  await sameOnBoth((queue) => backend.peek(queue));
  const receipts = new Map<QueueName, string[]>();
  for (const queue of [SHALLOW, DEEP])
    receipts.set(
      queue,
      (await backend.dequeue(queue, { limit: 6 })).map(({ receipt }) => receipt),
    );
  const next = (queue: QueueName) => ({ receipt: receipts.get(queue)?.shift() as never });
  await sameOnBoth((queue) => backend.extend(queue, [{ ...next(queue), leaseMs: 3_600_000 }]));
  await sameOnBoth((queue) => backend.ack(queue, [next(queue)]));
  await sameOnBoth((queue) => backend.nack(queue, [next(queue)]));
});

test("recovery goes through many ended leases in bounded steps", async () => {
  const queue = parseQueueName("ended");
  await backend.createQueue(queue);
  await backend.enqueue(
    queue,
    Array.from({ length: 3000 }, () => ({ data })),
  );
  for (let index = 0; index < 3; index += 1) await backend.dequeue(queue, { limit: 1000, leaseMs: 2000 });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  let recovered = 0;
  for (let more = true; more; ) {
    const step = await backend.recover();
    expect(step.recovered).toBeLessThanOrEqual(RECOVERY_STEP_ITEMS);
    recovered += step.recovered;
    more = step.more;
  }
  expect(recovered).toBe(3000);
  expect((await backend.dequeue(queue, { limit: 3 })).map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2, 2]);
});

test("clear and remove cost the same in a deep queue, and what is enqueued after them is kept", async () => {
  await sameOnBoth((queue) => backend.clear(queue));
  await backend.enqueue(DEEP, [{ data }]);
  expect(await backend.status(DEEP)).toEqual({ pending: 1, processing: 0 });
  for (let left = 20_000; left > 0; left -= 10_000)
    await backend.enqueue(
      DEEP,
      Array.from({ length: 10_000 }, () => ({ data })),
    );
  await backend.createQueue(parseQueueName("warm"));
  await backend.removeQueue(parseQueueName("warm"));
  const shallow = await commandsOf(() => backend.removeQueue(SHALLOW));
  expect(await commandsOf(() => backend.removeQueue(DEEP))).toEqual(shallow);
  await backend.createQueue(DEEP);
  expect(await backend.status(DEEP)).toEqual({ pending: 0, processing: 0 });
});
