/** Tasks on Redis where things go wrong: lost replies, a full memory, spoilt keys, deep queues, an emptied server. */

import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis, type RedisOptions } from "../../src/backend/redis/index.ts";
import { keysOf } from "../../src/backend/redis/keys.ts";
import { PROGRAMS } from "../../src/backend/redis/programs.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { TASK_STEP_ITEMS } from "../../src/core/limits.ts";
import { parseQueueName, parseTaskId } from "../../src/core/names.ts";
import type { Task } from "../../src/core/task.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const JOBS = parseQueueName("jobs");
const NEXT = parseQueueName("next");
const KIND = { type: "import" };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = ({ data }: { readonly data: Uint8Array }): string => new TextDecoder().decode(data);
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
  namespace = `tasks-${namespaces}`;
  proxy = await startTcpProxy(server.port);
  direct = await open(server.port);
  await direct.createQueue(JOBS);
  await direct.createQueue(NEXT);
  backend = await open(proxy.port);
  await backend.statuses({ queues: [JOBS, NEXT] });
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

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    (answer) => answer,
    (thrown: unknown) => thrown,
  );
  return isQueueFSError(error) ? error.code : `no error of ours: ${JSON.stringify(error)}`;
}

const only = async (): Promise<Task | undefined> => (await direct.tasks()).items[0];

test("each step of a task whose reply is lost is done once and answers as it did", async () => {
  const made = await losing(
    "taskStep",
    () => backend.createTask({ ...KIND, producer: { leaseMs: 60_000 } }, [{ queue: JOBS, messages: messages("a", "b") }]),
    async () => (await only()) !== undefined,
  );
  expect((await direct.tasks()).items).toHaveLength(1);
  if (made.outcome !== "created" || made.producer === undefined) throw new Error("made, with a producer");
  const { task, producer, enqueued } = made;
  expect(task.progress).toMatchObject({ total: 2, unacked: 2 });
  expect((await direct.messages(JOBS)).items.map(({ id }) => id)).toEqual(enqueued[0]?.map(({ id }) => id));

  await losing(
    "plainEnqueueOwned",
    () => backend.enqueue(NEXT, [{ data: bytes("c"), task: task.id }]),
    async () => (await only())?.progress.total === 3,
  );
  expect((await only())?.progress).toMatchObject({ total: 3, unacked: 3 });

  const changed = await losing(
    "taskStep",
    () => backend.updateTask(task.id, { stage: "two" }),
    async () => (await only())?.stage === "two",
  );
  expect(changed.stage).toBe("two");
  const [a, b] = await losing(
    "dequeue",
    () => backend.dequeue(JOBS, { limit: 2 }),
    async () => (await direct.status(JOBS)).processing === 2,
  );
  if (!a || !b) throw new Error("two messages");
  expect([a.task, b.task]).toEqual([task.id, task.id]);
  const forward = [{ queue: NEXT, messages: [{ data: bytes("d"), task: task.id }] }];
  const [acked] = await losing(
    "step",
    () => backend.ack(JOBS, [{ receipt: a.receipt, forward }]),
    async () => (await only())?.progress.done === 1,
  );
  expect(acked?.outcome).toBe("acked");
  expect((await only())?.progress).toEqual({ total: 4, done: 1, failed: 0, cancelled: 0, unacked: 3 });
  expect(
    await losing(
      "step",
      () => backend.nack(JOBS, [{ receipt: b.receipt, giveUp: true }]),
      async () => (await only())?.progress.failed === 1,
    ),
  ).toEqual(["dead"]);
  expect(
    await losing(
      "taskStep",
      () => backend.redriveTask(task.id, task.id),
      async () => (await only())?.progress.failed === 0,
    ),
  ).toEqual({ redriven: 1, more: false });
  expect(
    await losing(
      "taskStep",
      () => backend.sealTask(task.id, { producer }),
      async () => (await only())?.sealed === true,
    ),
  ).toMatchObject({ outcome: "sealed" });
  const cancelled = await losing(
    "taskStep",
    () => backend.cancelTask(task.id, { reason: "enough" }),
    async () => (await only())?.status === "cancelled",
  );
  expect(cancelled).toMatchObject({ removed: 3, more: false, task: { status: "cancelled", progress: { done: 1, cancelled: 3 } } });
  await losing(
    "taskStep",
    () => backend.removeTask(task.id),
    async () => (await only()) === undefined,
  );
  expect(await direct.statuses({ queues: [JOBS, NEXT] })).toMatchObject([
    { pending: 0, processing: 0 },
    { pending: 0, processing: 0 },
  ]);
});

test("cancelling takes the task's messages out of a deep queue in bounded steps; the others keep their order, and the counts fit at each step", async () => {
  const OTHERS = 2_000;
  const { task } = await direct.createTask(KIND, [{ queue: NEXT, messages: [{ data: bytes("delayed"), delayMs: 3_600_000 }] }]);
  for (let from = 0; from < OTHERS; from += 500) {
    const texts = Array.from({ length: 500 }, (_, index) => from + index);
    await direct.enqueue(
      JOBS,
      texts.map((number) => ({ data: bytes(String(number)), ...(number % 7 === 0 ? { id: `id-${number}` as never } : {}) })),
    );
    await direct.enqueue(
      JOBS,
      texts.map((number) => ({ data: bytes(`of the task ${number}`), task: task.id })),
    );
  }
  await direct.enqueue(JOBS, messages("last"));
  const held = await direct.dequeue(JOBS, { limit: 10 });
  await direct.nack(
    JOBS,
    held.map(({ receipt }) => ({ receipt, reason: "again" })),
  );
  let steps = 0;
  for (let more = true; more; steps += 1) {
    const step = await direct.cancelTask(task.id);
    more = step.more;
    expect(step.removed).toBeLessThanOrEqual(TASK_STEP_ITEMS);
    const { total, cancelled, unacked } = step.task.progress;
    expect([total, cancelled + unacked]).toEqual([OTHERS + 1, OTHERS + 1]);
    const [jobs, next] = await direct.statuses({ queues: [JOBS, NEXT] });
    expect((jobs?.pending ?? 0) + (next?.pending ?? 0)).toBe(OTHERS + 1 + unacked);
    // Others go on meanwhile, and never meet a message of the task.
    const held = await direct.dequeue(JOBS, { limit: 2 });
    expect(held.map((message) => message.task)).toEqual([undefined, undefined]);
    await direct.ack(
      JOBS,
      held.map(({ receipt }) => ({ receipt })),
    );
    await direct.enqueue(JOBS, messages("late", "later"));
  }
  expect(steps).toBeGreaterThan(3);
  expect(await direct.task(task.id)).toMatchObject({ status: "cancelled", progress: { cancelled: OTHERS + 1 } });
  const left: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await direct.messages(JOBS, after === undefined ? { limit: 1000 } : { limit: 1000, after });
    left.push(...page.items.map(textOf));
    if (page.next === undefined) break;
    after = page.next;
  }
  const numbers = left.filter((text) => /^\d+$/.test(text)).map(Number);
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => OTHERS - numbers.length + index));
  expect(left.length).toBe(OTHERS + 1);
  const inOrder = await direct.dequeue(JOBS, { limit: 5 });
  expect(inOrder.map(textOf)).toEqual(left.slice(0, 5));
});

test("what lies behind the last message of a cancelled task stays where it is", async () => {
  const { task } = await direct.createTask(KIND, [{ queue: JOBS, messages: messages("a", "b") }]);
  await direct.enqueue(JOBS, messages(...Array.from({ length: 300 }, (_, index) => String(index))));
  expect(await direct.cancelTask(task.id)).toMatchObject({ removed: 2, more: false, task: { status: "cancelled" } });
  expect(await administrator.zcard(`{${namespace}}:1:returned`)).toBe(0);
  expect(await administrator.llen(`{${namespace}}:1:pending`)).toBe(300);
});

test("two tasks that are cancelled at once, message by message in turn, leave nothing of each other behind", async () => {
  const made = await Promise.all([1, 2, 3].map(() => direct.createTask({ ...KIND, producer: { leaseMs: 60_000 } })));
  const [a, b, other] = made.map(({ task }) => task.id);
  if (!a || !b || !other) throw new Error("three tasks");
  const owners = [a, b, other, undefined];
  await direct.enqueue(
    JOBS,
    Array.from({ length: 4_000 }, (_, index) => {
      const task = owners[index % 4];
      return { data: bytes(String(index)), ...(task === undefined ? {} : { task }) };
    }),
  );
  // Some came back, some wait.
  const held = await direct.dequeue(JOBS, { limit: 400 });
  await direct.nack(
    JOBS,
    held.map(({ receipt }, index) => ({ receipt, delayMs: index % 2 === 0 ? 0 : 3_600_000 })),
  );
  for (let more = true; more; ) more = [await direct.cancelTask(a), await direct.cancelTask(b)].some((step) => step.more);
  for (const id of [a, b]) expect(await direct.task(id)).toMatchObject({ status: "cancelled", progress: { cancelled: 1_000, unacked: 0 } });
  expect(await direct.task(other)).toMatchObject({ progress: { total: 1_000, unacked: 1_000 } });
  expect(await direct.status(JOBS)).toEqual({ pending: 2_000, processing: 0 });
  const { items } = await direct.messages(JOBS, { limit: 1000 });
  expect(items.map((message) => Number(textOf(message)))).toEqual(
    Array.from({ length: 1_000 }, (_, index) => Math.floor(index / 2) * 4 + 2 + (index % 2)),
  );
});

test("many failures of a removed task are forgotten in bounded steps", async () => {
  await direct.configureQueue(JOBS, { maxDeliveries: 1 });
  const texts = Array.from({ length: 1_700 }, (_, index) => String(index));
  const { task } = await direct.createTask(KIND, [{ queue: JOBS, messages: messages(...texts) }]);
  for (let left = 1_700; left > 0; left -= 850) {
    const held = await direct.dequeue(JOBS, { limit: 850 });
    await direct.nack(
      JOBS,
      held.map(({ receipt }) => ({ receipt })),
    );
  }
  expect(await direct.task(task.id)).toMatchObject({ status: "failed", progress: { failed: 1_700 } });
  await direct.removeTask(task.id);
  const { taskFailures, taskDue } = keysOf(namespace);
  expect(await administrator.zcard(taskFailures)).toBe(1_200);
  for (let more = true; more; ) more = (await direct.recover()).more;
  expect(await administrator.exists(taskFailures, taskDue)).toBe(0);
  expect((await direct.statistics(JOBS)).dead).toBe(1_700);
});

test("recovery goes on with a cancelled task that nobody calls for again", async () => {
  const texts = Array.from({ length: 1_300 }, (_, index) => String(index));
  const { task } = await direct.createTask(KIND, [{ queue: JOBS, messages: messages(...texts) }]);
  expect(await direct.cancelTask(task.id)).toMatchObject({ removed: TASK_STEP_ITEMS, more: true, task: { status: "cancelling" } });
  const other = await open(server.port);
  for (let more = true; more; ) more = (await other.recover()).more;
  expect(await direct.task(task.id)).toMatchObject({ status: "cancelled", progress: { cancelled: 1_300 } });
  expect(await direct.status(JOBS)).toEqual({ pending: 0, processing: 0 });
});

test("a full server makes no task and stores nothing for one, and still settles, seals, cancels and removes", async () => {
  const large = { data: new Uint8Array(16 * 1024) };
  const { task, producer } = await direct
    .createTask({ ...KIND, producer: { leaseMs: 60_000 } }, [{ queue: JOBS, messages: [large, large, large, large] }])
    .then((made) => (made.outcome === "created" ? made : Promise.reject(new Error("made"))));
  const { task: other } = await direct.createTask(KIND, [{ queue: NEXT, messages: [large, large] }]);
  const [a, b, c] = await direct.dequeue(JOBS, { limit: 3 });
  if (!a || !b || !c) throw new Error("three messages");
  const used = Number(/used_memory:(\d+)/.exec(await administrator.info("memory"))?.[1]);
  await administrator.config("SET", "maxmemory", String(used - 1024));
  try {
    expect(await codeOf(direct.createTask(KIND))).toBe("store-full");
    expect(await codeOf(direct.enqueue(JOBS, [{ ...large, task: task.id }]))).toBe("store-full");
    expect(await codeOf(direct.updateTask(task.id, { stage: "x" }))).toBe("store-full");
    expect(await direct.ack(JOBS, [{ receipt: a.receipt }])).toMatchObject([{ outcome: "acked" }]);
    await administrator.config("SET", "maxmemory", String(Math.floor(used / 2)));
    expect(await direct.nack(JOBS, [{ receipt: b.receipt, giveUp: true, reason: "no" }])).toEqual(["dead"]);
    expect(await direct.renewProducers([{ task: task.id, producer: producer ?? "", leaseMs: 60_000 }])).toEqual(["renewed"]);
    expect(await direct.sealTask(task.id, { producer: producer ?? "", error: "stopped" })).toMatchObject({ outcome: "sealed" });
    expect(await direct.cancelTask(other.id, { reason: "no room" })).toMatchObject({ removed: 2, task: { status: "cancelled" } });
    expect(await direct.clear(JOBS)).toEqual({ pending: 1, processing: 1 });
    expect(await direct.task(task.id)).toMatchObject({ status: "failed", progress: { done: 1, failed: 3 }, error: { reason: "no" } });
    await direct.removeTask(other.id);
  } finally {
    await administrator.config("SET", "maxmemory", "0");
  }
  expect((await direct.tasks()).items.map(({ id }) => id)).toEqual([task.id]);
});

test("after tasks have ended and were removed nothing is left of them but their dead letters", async () => {
  const keys = Object.entries(keysOf(namespace)).filter(([name]) => name.startsWith("task"));
  for (let round = 0; round < 3; round += 1) {
    const { task } = await direct.createTask({ ...KIND, keepMs: { completed: 0, failed: 0, cancelled: 0 }, meta: [round] }, [
      { queue: JOBS, messages: messages("a", "b") },
      { queue: NEXT, messages: messages("c") },
    ]);
    if (round === 2) await direct.cancelTask(task.id);
    for (const queue of [JOBS, NEXT]) {
      for (const { receipt } of await direct.dequeue(queue, { limit: 9 })) {
        if (round === 0) await direct.ack(queue, [{ receipt }]);
        else await direct.nack(queue, [{ receipt, giveUp: true }]);
      }
    }
    expect((await direct.task(task.id)).finishedAtMs).toBeDefined();
    await new Promise((resolve) => setTimeout(resolve, 2));
    for (let more = true; more; ) more = (await direct.recover()).more;
    expect(await codeOf(direct.task(task.id))).toBe("task-not-found");
  }
  for (const [name, key] of keys) expect(await administrator.exists(key), name).toBe(0);
  for (const life of [1, 2])
    for (const part of ["owners", "states"]) expect(await administrator.exists(`{${namespace}}:${life}:${part}`)).toBe(0);
  const dead = (await direct.deadLetters(JOBS)).items;
  expect(dead.map(textOf)).toEqual(["a", "b"]);
  for (const letter of dead) expect(letter.task).toBeUndefined();
});

test("a task made anew with the id of one that was removed does not get its dead letters", async () => {
  const id = parseTaskId("nightly");
  const begin = () => direct.createTask({ ...KIND, id }, [{ queue: JOBS, messages: messages("a") }]);
  await begin();
  const [held] = await direct.dequeue(JOBS);
  await direct.nack(JOBS, [{ receipt: held?.receipt ?? ("" as never), giveUp: true }]);
  await direct.removeTask(id);
  expect((await begin()).outcome).toBe("created");
  expect((await direct.deadLetters(JOBS)).items[0]?.task).toBeUndefined();
  expect((await direct.taskFailures(id)).items).toEqual([]);
  await direct.redrive(JOBS, [held?.id ?? ("" as never)]);
  expect((await direct.task(id)).progress).toMatchObject({ total: 1, unacked: 1, failed: 0 });
  expect((await direct.dequeue(JOBS, { limit: 2 })).map(({ task }) => task)).toEqual([undefined, id]);
});

test.each(["tasks", "taskTexts", "taskOrder", "taskDue", "taskFailures", "taskQueues", "taskCounts", "taskSearches"] as const)(
  "with another type at %s nothing is lost or counted twice, and plain messages go on",
  async (name) => {
    const { task } = await direct.createTask(KIND, [{ queue: JOBS, messages: messages("a") }]);
    const key = keysOf(namespace)[name];
    await administrator.rename(key, "aside").catch(() => {});
    await administrator.set(key, "somebody else's");
    const calls = await Promise.allSettled([
      direct.createTask(KIND, [{ queue: JOBS, messages: messages("b") }]),
      direct.enqueue(JOBS, [{ data: bytes("c"), task: task.id }]),
      direct.cancelTask(task.id),
      direct.dequeue(JOBS),
      direct.clear(JOBS),
    ]);
    // What is refused is refused as corrupt; what needs none of that key may go on.
    for (const outcome of calls)
      if (outcome.status === "rejected") expect(isQueueFSError(outcome.reason, "store-corrupt"), String(outcome.reason)).toBe(true);
    expect(calls.map(({ status }) => status).filter((_status, index) => index !== 1 && index !== 3)).toEqual(Array(3).fill("rejected"));
    await direct.enqueue(NEXT, messages("plain"));
    const [plain] = await direct.dequeue(NEXT);
    expect(await direct.ack(NEXT, [{ receipt: plain?.receipt ?? ("" as never) }])).toMatchObject([{ outcome: "acked" }]);
    await administrator.del(key);
    await administrator.rename("aside", key).catch(() => {});
    const total = calls[1]?.status === "fulfilled" ? 2 : 1;
    const held = calls[3]?.status === "fulfilled" ? calls[3].value : [];
    expect(await direct.status(JOBS)).toEqual({ pending: total - held.length, processing: held.length });
    expect((await direct.task(task.id)).progress).toMatchObject({ total, unacked: total });
    const rest = await direct.dequeue(JOBS, { limit: 9 });
    expect(rest.map((message) => message.task)).toEqual(Array(total - held.length).fill(task.id));
    await direct.ack(
      JOBS,
      [...held, ...rest].map(({ receipt }) => ({ receipt })),
    );
    expect(await direct.task(task.id)).toMatchObject({ status: "completed" });
  },
);

test("after the server was emptied a task can be made again, and the old ones are not found", async () => {
  const { task } = await direct.createTask(KIND);
  await administrator.flushall();
  expect(await codeOf(direct.task(task.id))).toBe("task-not-found");
  expect(await codeOf(direct.cancelTask(task.id))).toBe("task-not-found");
  expect(await codeOf(direct.updateTask(task.id, { stage: "x" }))).toBe("task-not-found");
  const again = await direct.createTask(KIND);
  expect(again.outcome).toBe("created");
  expect(again.task.id).not.toBe(task.id);
  await direct.createQueue(JOBS);
  await direct.enqueue(JOBS, messages("a"));
});
