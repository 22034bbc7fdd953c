/** What of tasks is particular to SQLite: transactions that calls share, several connections with memories of their own, undone transactions. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite, type SqliteOptions } from "../../../src/backend/sqlite/index.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import { type MessageId, parseQueueName, type QueueName, type TaskId } from "../../../src/core/names.ts";
import type { Task } from "../../../src/core/task.ts";
import { ManualClock, SeededRandom } from "../../../src/testing/index.ts";

const [JOBS, NEXT] = [parseQueueName("jobs"), parseQueueName("next")];
const [ONE, TWO] = ["one", "two"] as TaskId[] as [TaskId, TaskId];
let folder: string;
let backends: Backend[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-tasks-"));
  backends = [];
});

afterEach(async () => {
  for (const backend of backends) await backend.close();
  await rm(folder, { recursive: true });
});

async function open(options?: Partial<SqliteOptions>): Promise<Backend> {
  const backend = await openSqlite({ path: join(folder, "queue.db"), durability: "normal", sweepIntervalMs: 3_600_000, ...options });
  backends.push(backend);
  for (const queue of [JOBS, NEXT]) await backend.createQueue(queue);
  return backend;
}

function messages(count: number, task?: TaskId): { data: Uint8Array; task?: TaskId }[] {
  return Array.from({ length: count }, () => ({ data: new Uint8Array(8), ...(task === undefined ? {} : { task }) }));
}

async function makeTask(backend: Backend, id: TaskId, count: number, queue = JOBS): Promise<Task> {
  return (await backend.createTask({ id, type: "import" }, [{ queue, messages: messages(count) }])).task;
}

async function take(backend: Backend, queue = JOBS): Promise<DeliveredMessage> {
  const [taken] = await backend.dequeue(queue);
  if (taken === undefined) throw new Error("nothing to take");
  return taken;
}

async function isSound(backend: Backend): Promise<void> {
  expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
}

describe("calls of one transaction", () => {
  it("end a task once, whatever else happens in it", async () => {
    const backend = await open();
    await makeTask(backend, ONE, 2);
    const held = [await take(backend), await take(backend)];
    const answers = await Promise.allSettled([
      ...held.map(({ receipt }) => backend.ack(JOBS, [{ receipt }])),
      backend.enqueue(parseQueueName("nowhere"), messages(1, ONE)),
      backend.enqueue(JOBS, messages(1, "nobody" as TaskId)),
      backend.updateTask(ONE, { stage: "late" }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(await backend.task(ONE)).toMatchObject({ status: "completed", stage: "late", progress: { total: 2, done: 2 } });
    await isSound(backend);
  });

  it("do not end it when one of them adds a message", async () => {
    const backend = await open();
    await makeTask(backend, ONE, 1);
    const { receipt } = await take(backend);
    await Promise.all([backend.ack(JOBS, [{ receipt }]), backend.enqueue(NEXT, messages(1, ONE))]);
    expect(await backend.task(ONE)).toMatchObject({ progress: { total: 2, done: 1, unacked: 1 } });
    await backend.ack(NEXT, [{ receipt: (await take(backend, NEXT)).receipt }]);
    expect(await backend.task(ONE)).toMatchObject({ status: "completed" });
    await isSound(backend);
  });

  it("answer with what they did, also when another of them made the task", async () => {
    const backend = await open();
    const [made, enqueued, sealed] = await Promise.all([
      backend.createTask({ id: ONE, type: "import", producer: { leaseMs: 60_000 } }),
      backend.enqueue(JOBS, messages(3, ONE)),
      backend.sealTask(ONE),
    ]);
    expect(made).toMatchObject({ outcome: "created", task: { progress: { total: 0 } } });
    expect(enqueued).toHaveLength(3);
    expect(sealed).toMatchObject({ outcome: "sealed", task: { status: "pending", progress: { total: 3 } } });
    await isSound(backend);
  });

  it("are counted once when the transaction was undone at its end and each was tried by itself", async () => {
    const backend = await open();
    for (const id of [ONE, TWO, "stop" as TaskId]) await makeTask(backend, id, 1);
    const [one, , stop] = [await take(backend), await take(backend), await take(backend)];
    const file = new Database(join(folder, "queue.db"));
    file.exec("CREATE TRIGGER stop BEFORE UPDATE OF status ON task WHEN new.id = 'stop' BEGIN SELECT RAISE(ABORT, 'on purpose'); END");
    const answers = await Promise.allSettled([
      backend.enqueue(JOBS, messages(2, TWO)),
      backend.ack(JOBS, [{ receipt: one.receipt }]),
      backend.ack(JOBS, [{ receipt: stop.receipt }]),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect(await backend.task(ONE)).toMatchObject({ status: "completed", progress: { total: 1, done: 1 } });
    expect(await backend.task(TWO)).toMatchObject({ progress: { total: 3, unacked: 3 } });
    expect(await backend.task("stop" as TaskId)).toMatchObject({ status: "running", progress: { total: 1, unacked: 1 } });
    file.exec("DROP TRIGGER stop");
    file.close();
    await backend.ack(JOBS, [{ receipt: stop.receipt }]);
    expect(await backend.task("stop" as TaskId)).toMatchObject({ status: "completed", progress: { total: 1, done: 1 } });
    await isSound(backend);
  });
});

describe("two connections", () => {
  it("learn from each other that a task was sealed, cancelled, ended, removed and made anew", async () => {
    const [left, right] = [await open(), await open()];
    await left.createTask({ id: ONE, type: "import", producer: { leaseMs: 60_000 } });
    await right.enqueue(JOBS, messages(1, ONE));
    await left.sealTask(ONE);
    // The right one knew it as open: its ack must end it all the same.
    await right.ack(JOBS, [{ receipt: (await take(right)).receipt }]);
    expect(await left.task(ONE)).toMatchObject({ status: "completed" });
    await expect(left.enqueue(JOBS, messages(1, ONE))).rejects.toMatchObject({ code: "task-ended" });
    await left.removeTask(ONE);
    await expect(right.enqueue(JOBS, messages(1, ONE))).rejects.toMatchObject({ code: "task-not-found" });
    await left.createTask({ id: ONE, type: "other" }, [{ queue: JOBS, messages: messages(2) }]);
    expect((await take(right)).task).toBe(ONE);
    await right.enqueue(NEXT, messages(1, ONE));
    await left.cancelTask(ONE);
    await expect(right.enqueue(JOBS, messages(1, ONE))).rejects.toMatchObject({ code: "task-ended" });
    expect(await right.task(ONE)).toMatchObject({ status: "cancelling", progress: { total: 3, cancelled: 2, unacked: 1 } });
    await isSound(right);
  });

  it("agree on counters that one of them has folded meanwhile", async () => {
    const [left, right] = [await open(), await open()];
    await left.createTask({ id: ONE, type: "import", producer: { leaseMs: 60_000 } });
    let stored = 0;
    for (const backend of [left, right, left, right, left]) {
      // One change each: more of them than are appended without a fold.
      for (let round = 0; round < 40; round += 1) {
        await Promise.all(Array.from({ length: 2 }, () => backend.enqueue(JOBS, messages(1, ONE))));
        stored += 2;
      }
      await makeTask(backend, `task-${stored}` as TaskId, 1, NEXT);
      await backend.clear(NEXT);
      expect((await left.task(ONE)).progress).toMatchObject({ total: stored, unacked: stored });
      expect((await right.task(ONE)).progress).toMatchObject({ total: stored, unacked: stored });
    }
    await isSound(left);
  });

  it("fold by themselves once many changes were appended", async () => {
    const backend = await open();
    const ids = Array.from({ length: 3_000 }, (_none, index) => `task-${index}` as TaskId);
    for (let start = 0; start < ids.length; start += 500) {
      await Promise.all(
        ids.slice(start, start + 500).map((id) => backend.createTask({ id, type: "import", producer: { leaseMs: 60_000 } })),
      );
    }
    for (let round = 0; round < 6; round += 1) await Promise.all(ids.map((task) => backend.enqueue(JOBS, messages(1, task))));
    const file = new Database(join(folder, "queue.db"), { readonly: true });
    expect(file.prepare("SELECT count(*) FROM task_change").pluck().get()).toBeLessThan(18_000);
    expect(file.prepare("SELECT count(*) FROM task_part").pluck().get()).toBeGreaterThan(0);
    file.close();
    expect((await backend.task(ids[7] as TaskId)).progress).toMatchObject({ total: 6, unacked: 6 });
    const other = await open();
    expect((await other.task(ids[2_999] as TaskId)).progress).toMatchObject({ total: 6, unacked: 6 });
    await isSound(other);
  });
});

describe("a dequeue from a queue full of messages of cancelled tasks", () => {
  it("passes over all of them, however many, and leaves other calls their turn", async () => {
    const backend = await open();
    await makeTask(backend, ONE, 4_000);
    await backend.enqueue(JOBS, messages(1));
    expect(await backend.cancelTask(ONE)).toMatchObject({ removed: 500, more: true });
    const taken = await take(backend);
    expect(taken.task).toBeUndefined();
    expect(await backend.status(JOBS)).toEqual({ pending: 0, processing: 1 });
    expect(await backend.task(ONE)).toMatchObject({ status: "cancelled", progress: { total: 4_000, cancelled: 4_000 } });
    expect(await backend.statistics(JOBS)).toMatchObject({ cleared: 4_000 });
    expect(await backend.dequeue(JOBS)).toEqual([]);
    await isSound(backend);
  });

  it("is not led astray by a peek, which passes over them too", async () => {
    const backend = await open();
    await makeTask(backend, ONE, 600);
    await backend.enqueue(JOBS, [{ data: new Uint8Array(1), id: "mine" as MessageId }]);
    await backend.cancelTask(ONE);
    expect((await backend.peek(JOBS))?.id).toBe("mine");
    expect(await backend.status(JOBS)).toEqual({ pending: 101, processing: 0 });
  });
});

describe("the search for messages of a cancelled task", () => {
  it("goes through a deep queue of others in bounded steps", async () => {
    const backend = await open();
    for (let part = 0; part < 5; part += 1) await backend.enqueue(JOBS, messages(10_000));
    await backend.createTask({ id: ONE, type: "import" }, [{ queue: JOBS, messages: messages(3) }]);
    const first = await backend.cancelTask(ONE);
    expect(first).toMatchObject({ removed: 0, more: true, task: { status: "cancelling" } });
    let steps = 1;
    while ((await backend.cancelTask(ONE)).more) steps += 1;
    expect(steps).toBe(2);
    expect(await backend.task(ONE)).toMatchObject({ status: "cancelled", progress: { cancelled: 3 } });
    await isSound(backend);
  });
});

describe("another boot of the host", () => {
  it("ends the leases of producers", async () => {
    const before = await open({ clock: new ManualClock({ monotonicMs: 900_000_000 }), bootId: "before" });
    await before.createTask({ id: ONE, type: "import", producer: { leaseMs: 3_600_000, owner: "receipt" } });
    await before.close();
    backends = [];
    const after = await open({ clock: new ManualClock({ monotonicMs: 1_000 }), bootId: "after" });
    expect(await after.task(ONE)).toMatchObject({ status: "failed", sealed: true, error: { reason: expect.stringContaining("producer") } });
  });
});

describe("random histories over two connections", () => {
  it.each([1, 2, 3, 4, 5, 6])("leave counters that agree with the messages, seed %d", async (seed) => {
    const clock = new ManualClock();
    const tokens = new SeededRandom(seed);
    const random = new SeededRandom(seed + 1_000);
    const pair = [await open({ clock, random: tokens, bootId: "b" }), await open({ clock, random: tokens, bootId: "b" })];
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random.fraction() * items.length)] as Item;
    const ids = Array.from({ length: 6 }, (_none, index) => `task-${index}` as TaskId);
    const held: { queue: QueueName; taken: DeliveredMessage }[] = [];
    const release = (): { queue: QueueName; taken: DeliveredMessage } | undefined =>
      held.splice(Math.floor(random.fraction() * held.length), 1)[0];
    const actions: ((backend: Backend, queue: QueueName, task: TaskId) => Promise<unknown>)[] = [
      (backend, queue, id) =>
        backend.createTask({ id, type: "t", ...(random.fraction() < 0.5 ? { producer: { leaseMs: 5_000 } } : {}) }, [
          { queue, messages: messages(2) },
        ]),
      (backend, queue, task) => backend.enqueue(queue, messages(3, task)),
      (backend, queue) => backend.enqueue(queue, [{ ...messages(1)[0], delayMs: 300 } as { data: Uint8Array }]),
      async (backend, queue) => {
        for (const taken of await backend.dequeue(queue, { limit: 3, leaseMs: 2_000 })) held.push({ queue, taken });
      },
      async (backend, queue, task) => {
        const one = release();
        if (one !== undefined)
          await backend.ack(one.queue, [{ receipt: one.taken.receipt, forward: [{ queue, messages: messages(1, task) }] }]);
      },
      async (backend) => {
        const one = release();
        if (one !== undefined) await backend.ack(one.queue, [{ receipt: one.taken.receipt }]);
      },
      async (backend) => {
        const one = release();
        if (one !== undefined)
          await backend.nack(one.queue, [{ receipt: one.taken.receipt, giveUp: random.fraction() < 0.5, delayMs: 200 }]);
      },
      async (backend) => {
        const one = release();
        if (one !== undefined) await backend.release(one.queue, [one.taken.receipt]);
      },
      (backend, _queue, task) => backend.sealTask(task, random.fraction() < 0.2 ? { error: "gave up" } : {}),
      (backend, _queue, task) => (random.fraction() < 0.4 ? backend.cancelTask(task) : backend.task(task)),
      (backend, _queue, task) => backend.removeTask(task),
      (backend, queue) => (random.fraction() < 0.2 ? backend.clear(queue) : backend.peek(queue)),
      async (backend, queue) => {
        if (random.fraction() < 0.2) await backend.removeQueue(queue);
        await backend.createQueue(queue, { maxDeliveries: 3 });
      },
      async (backend, queue) => {
        const { items } = await backend.deadLetters(queue);
        if (items.length > 0) await backend.redrive(queue, [pick(items).id]);
      },
      (backend, _queue, task) => backend.redriveTask(task, pick(ids)),
      async (backend) => {
        clock.advance(Math.floor(random.fraction() * 1_500));
        await backend.recover();
      },
    ];
    for (let round = 0; round < 150; round += 1) {
      const backend = pick(pair);
      const together = Array.from({ length: 1 + Math.floor(random.fraction() * 4) }, () =>
        pick(actions)(backend, pick([JOBS, NEXT]), pick(ids)).catch((error: { code?: string }) => {
          expect(["task-ended", "task-active", "task-not-found", "queue-not-found"]).toContain(error.code);
        }),
      );
      await Promise.all(together);
      if (round % 5 === 0) await isSound(pick(pair));
      const [left, right] = await Promise.all(pair.map((one) => one.tasks()));
      expect(left).toEqual(right);
    }
    await isSound(pair[0] as Backend);
  });
});
