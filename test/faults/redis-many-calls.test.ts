/** Calls of one turn, too many or too mixed for one script: in how many scripts they travel, and that each has its own answer, in their order. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const QUEUE = parseQueueName("many");

let server: RedisServer;
let administrator: Redis;
let backend: Backend;

beforeAll(async () => {
  server = await startRedisServer();
  administrator = new Redis(server.url);
  backend = await openRedis({ url: server.url, sweepIntervalMs: 3_600_000 });
});

beforeEach(async () => {
  await backend.createQueue(QUEUE);
  await backend.clear(QUEUE);
  // The scripts are loaded, and the queue knows when to be looked after.
  await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }]);
  for (let turn = 0; turn < 2; turn += 1) {
    for (const { receipt } of await backend.dequeue(QUEUE)) await backend.ack(QUEUE, [{ receipt }]);
    await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }]);
  }
  await backend.clear(QUEUE);
});

afterAll(async () => {
  await backend.close();
  administrator.disconnect();
  await server.stop();
});

function numbered(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => Uint8Array.of(index >> 8, index & 255));
}

async function scriptsOf<Answer>(call: () => Promise<Answer>): Promise<{ scripts: number; answer: Answer }> {
  await administrator.config("RESETSTAT");
  const answer = await call();
  const counts = /cmdstat_evalsha:calls=(\d+)/.exec(await administrator.info("commandstats"));
  return { scripts: Number(counts?.[1] ?? 0), answer };
}

test.each([1, 15, 16, 64, 1_000])("%i enqueues, dequeues and acks of one turn each are answered in their order", async (count) => {
  const payloads = numbered(count);
  const stored = await scriptsOf(() => Promise.all(payloads.map((data) => backend.enqueue(QUEUE, [{ data }]))));
  const ids = stored.answer.map(([answer]) => answer?.id);
  expect(new Set(ids).size).toBe(count);
  const taken = await scriptsOf(() => Promise.all(payloads.map(() => backend.dequeue(QUEUE))));
  const messages = taken.answer.flat();
  expect(messages.map(({ id }) => id)).toEqual(ids);
  expect(messages.map(({ data }) => data)).toEqual(payloads);
  expect(await backend.status(QUEUE)).toEqual({ pending: 0, processing: count });
  const acked = await scriptsOf(() => Promise.all(messages.map(({ receipt }) => backend.ack(QUEUE, [{ receipt }]))));
  expect(acked.answer.flat()).toEqual(messages.map(() => ({ outcome: "acked", forwarded: [] })));
  expect(await backend.status(QUEUE)).toEqual({ pending: 0, processing: 0 });
  // A few scripts, which grow, never one for each call.
  const most = count < 32 ? 1 : 2 + Math.log2(count);
  for (const { scripts } of [stored, taken, acked]) expect(scripts).toBeLessThanOrEqual(most);
});

test("dequeues of one turn that want more than there is share it in their order, and the rest get nothing", async () => {
  await backend.enqueue(
    QUEUE,
    numbered(50).map((data) => ({ data })),
  );
  const answers = await Promise.all(Array.from({ length: 20 }, () => backend.dequeue(QUEUE, { limit: 7 })));
  expect(answers.map(({ length }) => length)).toEqual([7, 7, 7, 7, 7, 7, 7, 1, ...Array(12).fill(0)]);
  expect(answers.flat().map(({ data }) => data)).toEqual(numbered(50));
  expect(answers.flat().map(({ deliveryCount }) => deliveryCount)).toEqual(Array(50).fill(1));
});

test("kinds of calls that change again and again in one turn share scripts, and each finds what was sent before it", async () => {
  const sent = await scriptsOf(() =>
    Promise.all(
      numbered(40).flatMap((data, index) =>
        // Ten of a kind, then one and one.
        index < 10 ? [backend.enqueue(QUEUE, [{ data }])] : [backend.dequeue(QUEUE), backend.enqueue(QUEUE, [{ data }])],
      ),
    ),
  );
  const messages = sent.answer.flat().flatMap((answer) => ("receipt" in answer ? [answer] : []));
  expect(messages.map(({ data }) => data)).toEqual(numbered(30));
  expect(sent.scripts).toBeLessThanOrEqual(8);
});
