/** A reply that is lost must not double a step, nor make it look undone: the same call is recognised when it comes again. */

import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis, type RedisOptions } from "../../src/backend/redis/index.ts";
import { PROGRAMS } from "../../src/backend/redis/programs.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { type MessageId, parseChosenTaskId, parseQueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const JOBS = parseQueueName("jobs");
const NEXT = parseQueueName("next");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

let server: RedisServer;
let proxy: TcpProxy;
let namespaces = 0;
/** Sees the store as it is, past the proxy. */
let direct: Backend;
/** Talks through the proxy. */
let backend: Backend;
const opened: Backend[] = [];

async function open(port: number, options?: RedisOptions): Promise<Backend> {
  const store = await openRedis({
    url: `redis://127.0.0.1:${port}`,
    namespace: `lost-${namespaces}`,
    sweepIntervalMs: 3_600_000,
    onError: () => {},
    ...options,
  });
  opened.push(store);
  return store;
}

beforeAll(async () => {
  server = await startRedisServer();
  // Loaded scripts, so that what is sent first is the call itself and not the question for its script.
  const client = new Redis(server.url);
  for (const { text } of Object.values(PROGRAMS)) await client.script("LOAD", text);
  client.disconnect();
});

afterAll(async () => {
  await server.stop();
});

beforeEach(async () => {
  namespaces += 1;
  proxy = await startTcpProxy(server.port);
  direct = await open(server.port);
  await direct.createQueue(JOBS);
  await direct.createQueue(NEXT);
  backend = await open(proxy.port);
  // A known name is not looked up first.
  await backend.status(JOBS);
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await proxy.stop();
});

/** Waits until something holds; it is looked at by another client, so there is no event to wait for. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`still not so after ten seconds: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function pending(count: number, processing: number): Promise<boolean> {
  const status = await direct.status(JOBS);
  return status.pending === count && status.processing === processing;
}

/** Makes a call whose reply is lost after the server did it, and gives the answer to its repeat. */
async function losing<Answer>(program: keyof typeof PROGRAMS, call: () => Promise<Answer>, done: () => Promise<boolean>): Promise<Answer> {
  proxy.loseRepliesTo = PROGRAMS[program].sha;
  const answer = call();
  // Its rejection is the caller's to see, also when it comes early.
  answer.catch(() => {});
  await until("the server did what was asked", async () => proxy.loseRepliesTo === undefined && (await done()));
  proxy.losesReplies = false;
  proxy.cut();
  return answer;
}

test("an enqueue is stored once, and its answer names the message that is there", async () => {
  const [answer] = await losing(
    "plainEnqueue",
    () => backend.enqueue(JOBS, [{ data: bytes("a") }]),
    () => pending(1, 0),
  );
  expect(answer?.outcome).toBe("enqueued");
  expect((await direct.messages(JOBS)).items.map(({ id }) => id)).toEqual([answer?.id]);
  const chosen = { data: bytes("b"), id: "chosen" as MessageId };
  // "enqueued", not "repeated": the first answer.
  expect(
    await losing(
      "step",
      () => backend.enqueue(JOBS, [chosen]),
      () => pending(2, 0),
    ),
  ).toEqual([{ outcome: "enqueued", id: "chosen" }]);
  expect(await direct.status(JOBS)).toEqual({ pending: 2, processing: 0 });
});

test("a dequeue hands the same messages to the caller, and no more", async () => {
  await direct.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }, { data: bytes("c") }]);
  const held = await losing(
    "dequeue",
    () => backend.dequeue(JOBS, { limit: 2 }),
    () => pending(1, 2),
  );
  expect(held.map(({ data }) => new TextDecoder().decode(data))).toEqual(["a", "b"]);
  expect(await direct.statistics(JOBS)).toMatchObject({ pending: 1, processing: 2, delivered: 2 });
  expect(
    await direct.ack(
      JOBS,
      held.map(({ receipt }) => ({ receipt })),
    ),
  ).toEqual([
    { outcome: "acked", forwarded: [] },
    { outcome: "acked", forwarded: [] },
  ]);
  // The first dequeue of a queue goes another way than those after it.
  await direct.enqueue(JOBS, [{ data: bytes("d") }, { data: bytes("e") }]);
  const more = await losing(
    "plainDequeue",
    () => Promise.all([backend.dequeue(JOBS, { limit: 2 }), backend.dequeue(JOBS), backend.dequeue(JOBS, { limit: 9 })]),
    () => pending(0, 3),
  );
  expect(more.map((held) => held.map(({ data }) => new TextDecoder().decode(data)))).toEqual([["c", "d"], ["e"], []]);
  const receipts = more.flat().map(({ receipt }) => ({ receipt }));
  expect((await direct.ack(JOBS, receipts)).map(({ outcome }) => outcome)).toEqual(["acked", "acked", "acked"]);
});

test("a dequeue whose lease ended before its repeat does not say empty while messages are there", async () => {
  await direct.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  const recovered = async (): Promise<boolean> => {
    await direct.recover();
    return (await direct.statistics(JOBS)).returned === 1;
  };
  const held = await losing("dequeue", () => backend.dequeue(JOBS, { limit: 1, leaseMs: 20 }), recovered);
  expect(held.map(({ data }) => new TextDecoder().decode(data))).toEqual(["a"]);
  expect(await direct.statistics(JOBS)).toMatchObject({ pending: 1, processing: 1, delivered: 2 });
});

test("a dequeue whose messages were recovered before its repeat does not get them: they are others' now", async () => {
  await direct.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  const held = await losing(
    "dequeue",
    () => backend.dequeue(JOBS, { limit: 2, leaseMs: 20 }),
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 25));
      return (await direct.dequeue(JOBS)).length === 1;
    },
  );
  // Not the first, which another has now, but the second, which nobody has.
  expect(held.map(({ data }) => new TextDecoder().decode(data))).toEqual(["b"]);
  expect(await direct.statistics(JOBS)).toMatchObject({ pending: 0, processing: 2 });
});

test("ack, nack, release and forward answer as they did the first time", async () => {
  await direct.enqueue(
    JOBS,
    ["a", "b", "c", "d"].map((text) => ({ data: bytes(text) })),
  );
  const [a, b, c, d] = (await backend.dequeue(JOBS, { limit: 4 })).map(({ receipt }) => receipt);
  if (!a || !b || !c || !d) throw new Error("four messages");
  expect(
    await losing(
      "plainAck",
      () => backend.ack(JOBS, [{ receipt: a }]),
      () => pending(0, 3),
    ),
  ).toEqual([{ outcome: "acked", forwarded: [] }]);
  expect(
    await losing(
      "step",
      () => backend.nack(JOBS, [{ receipt: b, giveUp: true }]),
      () => pending(0, 2),
    ),
  ).toEqual(["dead"]);
  expect(
    await losing(
      "step",
      () => backend.release(JOBS, [c]),
      () => pending(1, 1),
    ),
  ).toEqual(["released"]);
  const forward = [{ queue: NEXT, messages: [{ data: bytes("e") }] }];
  const [answer] = await losing(
    "step",
    () => backend.ack(JOBS, [{ receipt: d, forward }]),
    () => pending(1, 0),
  );
  const [message, ...more] = (await direct.messages(NEXT)).items;
  expect(more).toEqual([]);
  expect(answer).toEqual({ outcome: "acked", forwarded: [[{ outcome: "enqueued", id: message?.id }]] });
});

test("making, clearing and removing queues, redrive and drop answer as they did the first time", async () => {
  const other = parseQueueName("other/queue");
  const exists = async (): Promise<boolean> => (await direct.listQueues()).items.includes(other);
  expect(await losing("create", () => backend.createQueue(other), exists)).toBe("created");
  expect(
    await losing(
      "remove",
      () => backend.removeQueue(parseQueueName("other"), { recursive: true }),
      async () => !(await exists()),
    ),
  ).toBe(1);
  await direct.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  expect(
    await losing(
      "care",
      () => backend.clear(JOBS),
      () => pending(0, 0),
    ),
  ).toEqual({ pending: 2, processing: 0 });
  await direct.enqueue(JOBS, [{ data: bytes("c") }, { data: bytes("d") }]);
  const held = await direct.dequeue(JOBS, { limit: 2 });
  await direct.nack(
    JOBS,
    held.map(({ receipt }) => ({ receipt, giveUp: true })),
  );
  const [c, d] = held.map(({ id }) => id);
  if (!c || !d) throw new Error("two messages");
  expect(
    await losing(
      "care",
      () => backend.redrive(JOBS, [c]),
      () => pending(1, 0),
    ),
  ).toEqual(["redriven"]);
  const dead = async (count: number): Promise<boolean> => (await direct.statistics(JOBS)).dead === count;
  expect(
    await losing(
      "care",
      () => backend.drop(JOBS, [d]),
      () => dead(0),
    ),
  ).toEqual(["dropped"]);
});

test("many calls of one turn whose replies are lost together are each done once", async () => {
  const calls = Array.from({ length: 200 }, (_, index) => bytes(String(index)));
  const answers = await losing(
    "plainEnqueue",
    () => Promise.all(calls.map((data) => backend.enqueue(JOBS, [{ data }]))),
    async () => (await direct.status(JOBS)).pending > 0,
  );
  const ids = answers.flat().map(({ id }) => id);
  expect(new Set(ids).size).toBe(200);
  expect((await direct.messages(JOBS, { limit: 1000 })).items.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
});

test("calls of many kinds of one turn answer as they did the first time", async () => {
  await direct.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }, { data: bytes("c") }]);
  const [a, b] = (await backend.dequeue(JOBS, { limit: 2 })).map(({ receipt }) => receipt);
  if (!a || !b) throw new Error("two messages");
  const [enqueued, taken, acked, nacked, again] = await losing(
    "step",
    () =>
      Promise.all([
        backend.enqueue(JOBS, [{ data: bytes("d") }]),
        backend.dequeue(JOBS),
        backend.ack(JOBS, [{ receipt: a }]),
        backend.nack(JOBS, [{ receipt: b }]),
        backend.dequeue(JOBS),
      ]),
    async () => (await direct.statistics(JOBS)).enqueued === 4,
  );
  expect([taken, again].map((held) => held.map(({ data, deliveryCount }) => [new TextDecoder().decode(data), deliveryCount]))).toEqual([
    [["c", 1]],
    [["b", 2]],
  ]);
  expect([acked, nacked]).toEqual([[{ outcome: "acked", forwarded: [] }], ["pending"]]);
  expect((await direct.dequeue(JOBS)).map(({ id }) => id)).toEqual(enqueued.map(({ id }) => id));
});

test("a request that reaches the server after its repeat, and after the next one, changes nothing", async () => {
  proxy.keepsRequests = true;
  const first = backend.enqueue(JOBS, [{ data: bytes("first") }]);
  first.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 50));
  proxy.keepsRequests = false;
  proxy.cut();
  expect((await first)[0]?.outcome).toBe("enqueued");
  // Each lane of the session goes on, so that the late request is older than what was answered on it.
  for (let index = 0; index < 8; index += 1) await backend.enqueue(JOBS, [{ data: bytes(`later ${index}`) }]);
  await proxy.deliverLate();
  expect((await direct.messages(JOBS)).items.map(({ data }) => new TextDecoder().decode(data))).toEqual([
    "first",
    ...Array.from({ length: 8 }, (_, index) => `later ${index}`),
  ]);
});

test("a dequeue that reaches the server after its repeat has found nothing hands out nothing", async () => {
  for (const isKnown of [false, true]) {
    // The first dequeue of a queue goes another way than those after it; and a queue to which something comes back, too.
    if (isKnown) await backend.dequeue(JOBS);
    proxy.keepsRequests = true;
    const first = backend.dequeue(JOBS);
    first.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    proxy.keepsRequests = false;
    proxy.cut();
    expect(await first).toEqual([]);
    await direct.enqueue(JOBS, [{ data: bytes("a") }]);
    await proxy.deliverLate();
    expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 0 });
    const [message] = await backend.dequeue(JOBS);
    expect(message).toMatchObject({ deliveryCount: 1 });
    await backend.ack(JOBS, [{ receipt: (message as NonNullable<typeof message>).receipt }]);
  }
});

test("an enqueue that reaches the server after its repeat was refused stores nothing", async () => {
  const task = (await direct.createTask({ type: "import", id: parseChosenTaskId("one") })).task.id;
  proxy.keepsRequests = true;
  const first = backend.enqueue(JOBS, [{ data: bytes("a"), task }]);
  first.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 50));
  proxy.keepsRequests = false;
  proxy.cut();
  await expect(first).rejects.toMatchObject({ code: "task-ended" });
  await direct.removeTask(task);
  await direct.createTask({ type: "import", id: task, producer: { leaseMs: 60_000 } });
  await proxy.deliverLate();
  expect(await direct.status(JOBS)).toEqual({ pending: 0, processing: 0 });
});

test("a reply that never comes is an unknown outcome, not an empty one; the lease heals it", async () => {
  const impatient = await open(proxy.port, { outageMs: 300, commandTimeoutMs: 100 });
  await direct.enqueue(JOBS, [{ data: bytes("a") }]);
  await impatient.status(JOBS);
  const lost = async (call: () => Promise<unknown>): Promise<void> => {
    proxy.loseRepliesTo = PROGRAMS.dequeue.sha;
    const error: unknown = await call().then(
      (answer) => new Error(`it answered ${JSON.stringify(answer)}`),
      (thrown: unknown) => thrown,
    );
    proxy.losesReplies = false;
    proxy.cut();
    expect(isQueueFSError(error, "outcome-unknown"), String(error)).toBe(true);
  };
  await lost(() => impatient.dequeue(JOBS, { leaseMs: 1000 }));
  expect(await direct.status(JOBS)).toEqual({ pending: 0, processing: 1 });
  await until("the lease has ended and was recovered", async () => (await direct.recover()).recovered === 1);
  const [again] = await direct.dequeue(JOBS);
  expect(again).toMatchObject({ deliveryCount: 2, data: bytes("a") });
  // A call that changes nothing cannot be in doubt.
  proxy.losesReplies = true;
  await expect(impatient.status(JOBS)).rejects.toMatchObject({ code: "store-unreachable" });
  proxy.losesReplies = false;
  proxy.cut();
  expect(await impatient.status(JOBS)).toEqual({ pending: 0, processing: 1 });
});
