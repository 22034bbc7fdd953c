/** Messages of tasks on Redis in the scripts for what happens most: lost replies, receipts, and calls of many tasks that travel together. */

import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis, type RedisOptions } from "../../src/backend/redis/index.ts";
import { keysOf } from "../../src/backend/redis/keys.ts";
import { PROGRAMS } from "../../src/backend/redis/programs.ts";
import { deliveryOf, makeDeliveryReceipt } from "../../src/backend/redis/receipt.ts";
import { parseQueueName, type TaskId } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const JOBS = parseQueueName("jobs");
const KIND = { type: "import" };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const messages = (...texts: readonly string[]) => texts.map((text) => ({ data: bytes(text) }));

let server: RedisServer;
let administrator: Redis;
let proxy: TcpProxy;
let namespaces = 0;
let namespace = "";
/** Sees the store as it is, past the proxy. */
let direct: Backend;
/** Talks through the proxy. */
let backend: Backend;
const opened: Backend[] = [];

async function open(port: number, options?: RedisOptions): Promise<Backend> {
  const store = await openRedis({
    url: `redis://127.0.0.1:${port}`,
    namespace,
    sweepIntervalMs: 3_600_000,
    onError: () => {},
    ...options,
  });
  opened.push(store);
  return store;
}

beforeAll(async () => {
  server = await startRedisServer();
  administrator = new Redis(server.url);
  for (const { text } of Object.values(PROGRAMS)) await administrator.script("LOAD", text);
});

afterAll(async () => {
  administrator.disconnect();
  await server.stop();
});

beforeEach(async () => {
  namespaces += 1;
  namespace = `plain-${namespaces}`;
  proxy = await startTcpProxy(server.port);
  direct = await open(server.port);
  await direct.createQueue(JOBS);
  backend = await open(proxy.port);
  await backend.statuses({ queues: [JOBS] });
});

afterEach(async () => {
  for (const finding of await direct.inspect()) if (finding.check === "tasks") expect(finding).toMatchObject({ severity: "ok" });
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await proxy.stop();
});

/** Makes a call whose reply is lost after the server did it, and gives the answer to its repeat. */
async function losing<Answer>(program: keyof typeof PROGRAMS, call: () => Promise<Answer>, done: () => Promise<boolean>): Promise<Answer> {
  proxy.loseRepliesTo = PROGRAMS[program].sha;
  const answer = call();
  answer.catch(() => {});
  const deadline = performance.now() + 10_000;
  while (proxy.loseRepliesTo !== undefined || !(await done())) {
    if (performance.now() > deadline) throw new Error("the server did not do what was asked");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  proxy.losesReplies = false;
  proxy.cut();
  return answer;
}

test("an ack that ends tasks, and a delivery before it, are done once when their replies are lost", async () => {
  // From the first delivery on, a plain script knows when to look after the queue.
  await direct.enqueue(JOBS, messages("plain"));
  await direct.dequeue(JOBS);
  const made = await Promise.all([1, 2].map(() => direct.createTask(KIND, [{ queue: JOBS, messages: messages("a", "b") }])));
  const ids = made.map(({ task }) => task.id);
  const statuses = async () => Promise.all(ids.map(async (id) => (await direct.task(id)).status));
  expect(await statuses()).toEqual(["pending", "pending"]);
  const held = await losing(
    "plainDequeue",
    () => backend.dequeue(JOBS, { limit: 3 }),
    async () => (await direct.status(JOBS)).processing === 4,
  );
  expect(held.map(({ task }) => task)).toEqual([ids[0], ids[0], ids[1]]);
  expect(await statuses()).toEqual(["running", "running"]);
  const acked = await losing(
    "plainAckOwned",
    () =>
      backend.ack(
        JOBS,
        held.map(({ receipt }) => ({ receipt })),
      ),
    async () => (await direct.status(JOBS)).processing === 1,
  );
  expect(acked.map(({ outcome }) => outcome)).toEqual(["acked", "acked", "acked"]);
  expect(await statuses()).toEqual(["completed", "running"]);
  expect(await direct.task(ids[1] ?? ("" as never))).toMatchObject({ progress: { total: 2, done: 1, unacked: 1 } });
  expect(await direct.ack(JOBS, [{ receipt: held[0]?.receipt ?? ("" as never) }])).toEqual([{ outcome: "stale" }]);
});

test("a receipt with the number of another task, or of none, is stale", async () => {
  const [one, other] = await Promise.all([1, 2].map(() => direct.createTask(KIND, [{ queue: JOBS, messages: messages("a") }])));
  const [first] = await direct.dequeue(JOBS);
  if (!one || !other || !first) throw new Error("two tasks and a message");
  const place = deliveryOf(first.receipt);
  if (!place) throw new Error("a receipt");
  for (const task of [0, place.task + 1, place.task === 1 ? 2 : 1]) {
    const receipt = makeDeliveryReceipt(place.slot, place.sequence, place.token, task);
    expect(await direct.ack(JOBS, [{ receipt }])).toEqual([{ outcome: "stale" }]);
    expect(await direct.nack(JOBS, [{ receipt }])).toEqual(["stale"]);
    expect(await direct.extend(JOBS, [{ receipt, leaseMs: 60_000 }])).toEqual(["stale"]);
  }
  expect(await direct.ack(JOBS, [{ receipt: first.receipt }])).toMatchObject([{ outcome: "acked" }]);
});

test("calls of many tasks at once are each stored or refused by themselves, and tasks are running once handed out", async () => {
  const made = await Promise.all(Array.from({ length: 40 }, () => direct.createTask({ ...KIND, producer: { leaseMs: 60_000 } })));
  const ids = made.map(({ task }) => task.id);
  const [ended, cancelled] = ids.splice(0, 2);
  if (!ended || !cancelled) throw new Error("forty tasks");
  await Promise.all([direct.sealTask(ended), direct.cancelTask(cancelled)]);
  const enqueue = (...owners: readonly (TaskId | undefined)[]) =>
    direct.enqueue(
      JOBS,
      owners.map((task, index) => ({ data: bytes(String(index)), ...(task === undefined ? {} : { task }) })),
    );
  const stored = await Promise.all([...ids.map((id) => enqueue(id)), enqueue(undefined), enqueue(...ids, undefined, ...ids)]);
  expect(new Set(stored.flat().map(({ id }) => id)).size).toBe(38 * 3 + 2);
  const outcomes = await Promise.allSettled([
    enqueue(ids[0]),
    enqueue(ended),
    enqueue(ids[1], cancelled),
    enqueue(undefined),
    enqueue(ids[1]),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled", "fulfilled"]);
  const totals = async () => Promise.all(ids.map(async (id) => (await direct.task(id)).progress.total));
  expect(await totals()).toEqual([4, 4, ...Array(36).fill(3)]);
  const statuses = async () => (await Promise.all(ids.map(async (id) => (await direct.task(id)).status))).join();
  const seen: TaskId[] = [];
  for (const limit of [1, 4, 10, 60, 44]) {
    const held = await direct.dequeue(JOBS, { limit });
    expect(held).toHaveLength(limit);
    for (const { task } of held) if (task !== undefined) seen.push(task);
    expect(await statuses()).toBe(ids.map((id) => (seen.includes(id) ? "running" : "pending")).join());
    const answers = await direct.ack(
      JOBS,
      held.slice(1).map(({ receipt }) => ({ receipt })),
    );
    expect(answers.every(({ outcome }) => outcome === "acked")).toBe(true);
    await direct.nack(JOBS, [{ receipt: held[0]?.receipt ?? ("" as never), giveUp: true }]);
  }
  await Promise.all(ids.map((id) => direct.sealTask(id)));
  await direct.ack(
    JOBS,
    (await direct.dequeue(JOBS, { limit: 9 })).map(({ receipt }) => ({ receipt })),
  );
  for (const id of ids) {
    const { status, progress } = await direct.task(id);
    expect([status, progress.unacked]).toEqual([progress.failed > 0 ? "failed" : "completed", 0]);
    expect(progress.done + progress.failed).toBe(progress.total);
  }
  expect(await administrator.exists(keysOf(namespace).taskCounts, keysOf(namespace).taskQueues)).toBe(0);
});
