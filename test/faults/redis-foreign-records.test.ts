/** What others write into the namespace: one bad record stops no queue, and a spoilt key loses no message. */

import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { type QueueKey, queueKey } from "../../src/backend/redis/keys.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const JOBS = parseQueueName("jobs");
const OTHER = parseQueueName("other");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (data: Uint8Array): string => new TextDecoder().decode(data);

let server: RedisServer;
let administrator: Redis;
let backend: Backend;
let namespace = "";
let namespaces = 0;

beforeAll(async () => {
  server = await startRedisServer();
  administrator = new Redis(server.url);
});

afterAll(async () => {
  administrator.disconnect();
  await server.stop();
});

beforeEach(async () => {
  namespaces += 1;
  namespace = `foreign-${namespaces}`;
  backend = await openRedis({ url: server.url, namespace, sweepIntervalMs: 3_600_000 });
  await backend.createQueue(JOBS);
  await backend.createQueue(OTHER);
});

afterEach(async () => {
  await backend.close();
});

/** A key of JOBS, which was made first. */
const key = (part: QueueKey): string => queueKey(namespace, 1, part);

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    (answer) => answer,
    (thrown: unknown) => thrown,
  );
  return isQueueFSError(error) ? error.code : `no error of ours: ${JSON.stringify(error)}`;
}

test("records that are none of ours go to the dead letters, and the next ones are delivered", async () => {
  await backend.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  const entry = await administrator.lindexBuffer(key("pending"), 0);
  const strange = [
    "",
    "x",
    "garbage that is longer than any header",
    entry?.subarray(0, 13) ?? "",
    Buffer.concat([Buffer.from([1]), Buffer.alloc(30, 255)]),
  ];
  await administrator.lpush(key("pending"), ...strange);
  await administrator.rpush(key("pending"), "the last");
  await backend.enqueue(JOBS, [{ data: bytes("c") }]);
  expect(textOf((await backend.peek(JOBS))?.data ?? bytes("nothing"))).toBe("a");
  expect((await backend.messages(JOBS)).items.map(({ data }) => textOf(data))).toEqual(["a", "b", "c"]);
  const held = await backend.dequeue(JOBS, { limit: 10 });
  expect(held.map(({ data }) => textOf(data))).toEqual(["a", "b", "c"]);
  const dead = (await backend.deadLetters(JOBS)).items;
  expect(dead.map(({ data }) => Buffer.from(data).toString("latin1")).toSorted()).toEqual(
    [...strange, "the last"].map((one) => Buffer.from(one).toString("latin1")).toSorted(),
  );
  for (const { reason } of dead) expect(reason).toContain("could not be read");
  expect(await backend.status(JOBS)).toEqual({ pending: 0, processing: 3 });
  // They can be looked at and dropped like any other.
  expect(
    await backend.drop(
      JOBS,
      dead.map(({ id }) => id),
    ),
  ).toEqual(dead.map(() => "dropped"));
});

test("a message whose payload is missing goes to the dead letters with that reason", async () => {
  await backend.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  const [first] = await backend.dequeue(JOBS);
  await backend.release(JOBS, [first?.receipt ?? ("" as never)]);
  await administrator.del(key("bodies"));
  expect((await backend.dequeue(JOBS, { limit: 10 })).map(({ data }) => textOf(data))).toEqual(["b"]);
  expect((await backend.deadLetters(JOBS)).items).toMatchObject([{ id: first?.id, reason: expect.stringContaining("missing") }]);
});

const SPOILT: readonly QueueKey[] = [
  "pending",
  "bodies",
  "states",
  "returned",
  "delayed",
  "later",
  "leases",
  "held",
  "dead",
  "graves",
  "memory",
  "forget",
];

test.each(SPOILT)("with another type at %s no call loses a message, other queues go on, and doctor finds it", async (part) => {
  await backend.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  await administrator.rename(key(part), "aside").catch(() => {});
  await administrator.set(key(part), "somebody else's");
  const calls = [
    backend.enqueue(JOBS, [{ data: bytes("c") }]),
    backend.enqueue(JOBS, [{ data: bytes("d"), id: "chosen" as never, delayMs: 1 }]),
    backend.enqueue(OTHER, [{ data: bytes("other") }]),
    backend.dequeue(JOBS),
    backend.dequeue(OTHER),
    backend.clear(parseQueueName("other")),
  ];
  const outcomes = await Promise.allSettled(calls);
  // Whatever is refused is refused as corrupt, and nothing of the other queue is.
  for (const outcome of outcomes)
    if (outcome.status === "rejected") expect(isQueueFSError(outcome.reason, "store-corrupt"), String(outcome.reason)).toBe(true);
  expect([outcomes[2]?.status, outcomes[4]?.status, outcomes[5]?.status]).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  expect((await backend.inspect()).filter(({ severity }) => severity === "error").map(({ check }) => check)).toContain("counters");
  // With the key as it was, all that was stored is there: pending or in somebody's hands.
  const stored = new Set(["a", "b"]);
  if (outcomes[0]?.status === "fulfilled") stored.add("c");
  if (outcomes[1]?.status === "fulfilled") stored.add("d");
  await administrator.del(key(part));
  await administrator.rename("aside", key(part)).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 5));
  const taken = outcomes[3]?.status === "fulfilled" ? (outcomes[3].value as { data: Uint8Array }[]) : [];
  const rest = await backend.dequeue(JOBS, { limit: 10 });
  expect([...taken, ...rest].map(({ data }) => textOf(data)).toSorted()).toEqual([...stored].toSorted());
});

test("a spoilt record of a queue is an error that says so, for this queue only", async () => {
  await backend.enqueue(JOBS, [{ data: bytes("a") }]);
  const record = await administrator.getBuffer(key("queue"));
  for (const spoil of [
    () => administrator.set(key("queue"), Buffer.concat([record?.subarray(0, 20) ?? Buffer.alloc(0)])),
    () => administrator.del(key("queue")).then(() => administrator.lpush(key("queue"), "x")),
  ]) {
    await spoil();
    const [jobs, other] = await Promise.all([
      codeOf(backend.enqueue(JOBS, [{ data: bytes("b") }])),
      backend.enqueue(OTHER, [{ data: bytes("b") }]),
    ]);
    expect(jobs).toBe("store-corrupt");
    expect(other[0]?.outcome).toBe("enqueued");
  }
  await administrator.del(key("queue"));
  await administrator.set(key("queue"), record ?? "");
  expect(await backend.status(JOBS)).toEqual({ pending: 1, processing: 0 });
});

test("keys that belong to no queue are found by doctor", async () => {
  await administrator.set(`{${namespace}}:99:pending`, "x");
  expect(await backend.inspect()).toContainEqual(
    expect.objectContaining({ severity: "warning", check: "orphans", message: expect.stringContaining(":99:pending") }),
  );
  await administrator.del(`{${namespace}}:99:pending`);
  expect(await backend.inspect()).toContainEqual(expect.objectContaining({ severity: "ok", check: "orphans" }));
});
