/** Tasks as programs hold them, over every store: what handlers do belongs to their task, and its end tells the truth. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  batch,
  detached,
  giveUp,
  NamedQueue,
  type Task,
  type TaskStatus,
  Tasks,
  TaskTimeoutError,
  textCodec,
  Worker,
} from "../../src/index.ts";
import { type OpenStore, STORES } from "../support/stores.ts";

describe.each(STORES)("tasks over $name", (kind) => {
  let store: OpenStore;
  let tasks: Tasks;
  let pages: NamedQueue<string>;
  let images: NamedQueue<string>;
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    store = await kind.open();
    tasks = new Tasks(store.backend);
    pages = new NamedQueue<string>(store.backend, "import/pages", { codec: textCodec });
    images = new NamedQueue<string>(store.backend, "import/images", { codec: textCodec });
  });
  afterEach(() => store.close());

  const create = (...values: string[]): Promise<Task> => tasks.create({ type: "import", resource: "docs" }, [batch(pages, values)]);

  test("what a handler enqueues and forwards belongs to its task, through all that it awaits", async () => {
    const { id } = await create("one");
    const outcome = await pages.dequeue(async (value, context) => {
      expect(context.task?.id).toBe(id);
      await new Promise((resolve) => setImmediate(resolve));
      await images.enqueue(`${value}/a`);
      await Promise.all([images.enqueueMany([`${value}/b`, `${value}/c`]), context.forward(images, `${value}/d`)]);
      await context.task?.update({ stage: "images", result: { pages: 1 } });
    });
    expect(outcome).toBe("done");
    const running = await tasks.get(id);
    expect(running.progress).toMatchObject({ total: 5, done: 1, unacked: 4 });
    for (let index = 0; index < 4; index += 1) await images.dequeue(() => {});
    expect(await tasks.get(id)).toMatchObject({
      status: "completed",
      stage: "images",
      result: { pages: 1 },
      progress: { total: 5, done: 5 },
    });
  });

  test("a handler detaches on purpose: by option, or for a whole stretch of code", async () => {
    const { id } = await create("one");
    await pages.dequeue(async (_value, context) => {
      await images.enqueue("a", { task: null });
      await detached(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        await images.enqueue("b");
      });
      await context.forward(images, "c", { task: null });
    });
    expect(await tasks.get(id)).toMatchObject({ status: "completed", progress: { total: 1 } });
    expect((await images.messages()).items.map((message) => "task" in message)).toEqual([false, false, false]);
  });

  test("a handler of a message without a task works for none, also inside of another task", async () => {
    await pages.enqueue("free");
    const task = await tasks.run({ type: "import" }, async () => {
      await images.enqueue("owned");
      await pages.dequeue(async () => void (await images.enqueue("free too")));
    });
    expect(task.progress.total).toBe(1);
  });

  test("a task that another store holds is not inherited", async () => {
    const other = await kind.open();
    try {
      const foreign = new NamedQueue<string>(other.backend, "elsewhere", { codec: textCodec });
      const { id } = await create("one");
      await pages.dequeue(async () => void (await foreign.enqueue("x")));
      expect(await foreign.size()).toBe(1);
      expect(await tasks.get(id)).toMatchObject({ status: "completed", progress: { total: 1 } });
    } finally {
      await other.close();
    }
  });

  test("deliveries taken by hand run code for their task", async () => {
    const { id } = await create("one");
    const delivery = await pages.dequeue();
    expect(delivery?.task).toBe(id);
    await delivery?.run(() => images.enqueue("child"));
    await delivery?.ack();
    expect(await tasks.get(id)).toMatchObject({ status: "running", progress: { total: 2, done: 1 } });
  });

  test("a report of a failed task names each failed message with its error; the others are done", async () => {
    const { id } = await create("good", "bad", "worse", "fine");
    const worker = new Worker(
      pages,
      (value) => {
        if (value === "bad") return giveUp("no such page");
        if (value === "worse") return giveUp("cannot be read");
        return undefined;
      },
      { concurrency: 2 },
    );
    worker.start();
    const ended = await tasks.wait(id);
    await worker.stop();
    expect(ended).toMatchObject({ status: "failed", progress: { total: 4, done: 2, failed: 2 } });
    const report = new Map<string, string>();
    for await (const failure of tasks.failures(id)) report.set(new TextDecoder().decode(failure.data), failure.reason);
    expect(report).toEqual(
      new Map([
        ["bad", "no such page"],
        ["worse", "cannot be read"],
      ]),
    );
    expect([...report.values()]).toContain(ended.error?.reason);
  });

  test("a failed task is tried again as a new one, and stays as it ended", async () => {
    const { id } = await create("bad");
    await pages.dequeue(() => giveUp("no"));
    const failed = await tasks.get(id);
    const again = await tasks.retry(id);
    expect(again).toMatchObject({ retryOf: id, type: "import", resource: "docs", sealed: true, progress: { total: 1, unacked: 1 } });
    expect(again.id).not.toBe(id);
    await pages.dequeue(() => {});
    expect((await tasks.wait(again.id)).status).toBe("completed");
    expect(await tasks.get(id)).toEqual(failed);
    await expect(tasks.retry(id)).rejects.toMatchObject({ code: "message-not-found" });
    await expect(tasks.retry(again.id)).rejects.toMatchObject({ code: "message-not-found" });
  });

  test("of several retries at once one has the work, and the others say that nothing is left", async () => {
    const { id } = await create("a", "b", "c");
    for (let count = 0; count < 3; count += 1) await pages.dequeue(() => giveUp("no"));
    const retries = await Promise.allSettled([tasks.retry(id), new Tasks(store.backend).retry(id), tasks.retry(id)]);
    const won = retries.flatMap((retry) => (retry.status === "fulfilled" ? [retry.value] : []));
    expect(won.reduce((sum, task) => sum + task.progress.total, 0)).toBe(3);
    expect(won.every((task) => task.status === "pending" && task.progress.unacked > 0)).toBe(true);
    for (const retry of retries) if (retry.status === "rejected") expect(retry.reason).toMatchObject({ code: "message-not-found" });
    expect((await tasks.page()).items).toHaveLength(1 + won.length);
  });

  test("a failure after the seal is refused, and one in a run that sealed itself is thrown on", async () => {
    const task = await tasks.open({ type: "import" });
    await task.seal();
    await expect(task.fail(new Error("too late"))).rejects.toMatchObject({ code: "task-ended" });
    expect((await tasks.get(task.id)).status).toBe("completed");
    const error = new Error("after the seal");
    const running = tasks.run({ type: "import" }, async (own) => {
      await own.seal();
      throw error;
    });
    await expect(running).rejects.toBe(error);
    const failing = await tasks.open({ type: "import" });
    await failing.fail("first");
    expect((await failing.fail("second")).error?.reason).toBe("first");
    await expect(failing.seal()).resolves.toMatchObject({ status: "failed" });
  });

  test("what is no specification is refused by its name", async () => {
    const queue = pages;
    for (const call of [
      () => tasks.create(undefined as never),
      () => tasks.create({ type: "import", producer: { leaseMs: 1_000 } } as never),
      () => tasks.open({ type: "import", retryOf: "other" } as never),
      () => tasks.run({ type: "import" }, undefined as never),
      async () => batch(queue, ["x"], { id: "A" } as never),
    ])
      await expect(call()).rejects.toMatchObject({ code: "invalid-argument" });
    await tasks.create({ id: "named", type: "import" });
    await expect(tasks.create({ id: "named", type: "commit", resource: "r" })).rejects.toThrow(
      /"import" without a resource, not of type "commit" about "r"/,
    );
  });

  test("a task that goes on tries its dead letters again itself", async () => {
    const { id } = await create("bad", "other");
    await pages.dequeue(() => giveUp("no"));
    expect(await tasks.retry(id)).toMatchObject({ id, progress: { failed: 0, unacked: 2 } });
    await pages.dequeue(() => {});
    await pages.dequeue(() => {});
    expect((await tasks.get(id)).status).toBe("completed");
  });

  test("a producer's block seals at its end; between two of its messages nothing is complete", async () => {
    let id = "";
    {
      await using task = await tasks.open({ type: "import" });
      id = task.id;
      for (const value of ["1", "2"]) {
        await task.enqueue(pages, value);
        await pages.dequeue(() => {});
        expect((await tasks.get(id)).status).toBe("pending");
      }
      await task.run(() => images.enqueue("3"));
    }
    expect(await tasks.get(id)).toMatchObject({ status: "running", sealed: true, progress: { total: 3, done: 2 } });
    await images.dequeue(() => {});
    expect((await tasks.get(id)).status).toBe("completed");
  });

  test("a producer that throws fails the task once its messages are settled, and its error is thrown on", async () => {
    const error = new Error("disk unreadable");
    let id = "";
    await expect(
      tasks.run({ type: "import" }, async (task) => {
        id = task.id;
        await pages.enqueue("one");
        throw error;
      }),
    ).rejects.toBe(error);
    expect(await tasks.get(id)).toMatchObject({ status: "pending", sealed: true });
    await pages.dequeue(() => {});
    const ended = await tasks.get(id);
    expect(ended.status).toBe("failed");
    expect(ended.error?.reason).toContain("disk unreadable");
  });

  test("a producer that renews its lease stays; one that cannot is told that its task takes no more", async () => {
    const quick = new Tasks(store.backend, { producerLeaseMs: 300 });
    const task = await quick.open({ type: "import" });
    const silent = await store.backend.createTask({ type: "import", producer: { leaseMs: 300, owner: "receipt" } });
    expect((await tasks.wait(silent.task.id, { timeoutMs: 20_000 })).status).toBe("failed");
    // Twice its own lease has passed by then, or nearly so.
    expect((await tasks.get(task.id)).sealed).toBe(false);
    await store.backend.sealTask(task.id, { error: "taken for gone" });
    await new Promise<void>((resolve) => {
      if (task.signal.aborted) resolve();
      else task.signal.addEventListener("abort", () => resolve());
    });
    expect(task.signal.reason).toMatchObject({ code: "task-ended" });
    await expect(task.seal()).rejects.toMatchObject({ code: "task-ended" });
    await task[Symbol.asyncDispose]();
  });

  test("cancelling aborts running handlers, whose messages go when they end, and what waits goes at once", async () => {
    const { id } = await create("running", "waiting");
    let begun: () => void = () => {};
    const began = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const seen: unknown[] = [];
    const outcomes: string[] = [];
    const worker = new Worker(
      pages,
      (_value, { signal }) => {
        begun();
        return new Promise<void>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            seen.push(signal.reason);
            reject(signal.reason);
          });
        });
      },
      { concurrency: 1, onSettled: (outcome) => void outcomes.push(outcome) },
    );
    worker.start();
    await began;
    const cancelling = await tasks.cancel(id, { reason: "not wanted" });
    expect(cancelling).toMatchObject({ status: "cancelling", progress: { cancelled: 1, unacked: 1 } });
    const ended = await tasks.wait(id, { timeoutMs: 20_000 });
    await worker.stop();
    expect(ended).toMatchObject({ status: "cancelled", progress: { cancelled: 2 }, error: { reason: "not wanted" } });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ code: "task-ended" });
    expect(outcomes).toEqual(["cancelled"]);
    expect(await tasks.cancel(id)).toEqual(ended);
  });

  test("what a handler of a cancelled task enqueues is refused", async () => {
    const { id } = await create("one");
    const refusals: unknown[] = [];
    const outcome = await pages.dequeue(async (_value, context) => {
      await tasks.cancel(id);
      await images.enqueue("child").catch((error: unknown) => refusals.push(error));
      await context.forward(images, "forwarded");
    });
    expect(refusals).toMatchObject([{ code: "task-ended" }]);
    // The forward is refused with the ack, so that the message fails, and goes.
    expect(outcome).toBe("cancelled");
    expect(await tasks.get(id)).toMatchObject({ status: "cancelled", progress: { total: 1, cancelled: 1 } });
    expect(await images.size()).toBe(0);
  });

  test("waiting ends with the task, tells progress on the way, and is woken rather than polling", async () => {
    const { id } = await create("1", "2", "3");
    const statuses: TaskStatus[] = [];
    const waiting = tasks.wait(id, { pollIntervalMs: 3_600_000, onProgress: (task) => void statuses.push(task.status) });
    for (let index = 0; index < 3; index += 1) await pages.dequeue(() => {});
    expect(await waiting).toMatchObject({ status: "completed", progress: { done: 3 } });
    expect(statuses.at(-1)).toBe("completed");
    expect((await tasks.wait(id, { timeoutMs: 0 })).status).toBe("completed");
  });

  test("a wait times out with the task as last seen, is aborted with the caller's reason, and ends when the task is removed", async () => {
    const { id } = await create("1");
    const late = await tasks.wait(id, { timeoutMs: 30 }).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(TaskTimeoutError);
    expect(late).toMatchObject({ code: "timed-out", task: { id, status: "pending" } });
    await expect(tasks.wait(id, { timeoutMs: 0 })).rejects.toMatchObject({ code: "timed-out" });
    for (const timeoutMs of [-1, Number.NaN, "30" as never])
      await expect(tasks.wait(id, { timeoutMs })).rejects.toMatchObject({ code: "invalid-argument" });
    const controller = new AbortController();
    const reason = new Error("enough");
    const aborted = tasks.wait(id, { signal: controller.signal });
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await expect(tasks.wait("never-was")).rejects.toMatchObject({ code: "task-not-found" });
    await expect(tasks.wait("a/b")).rejects.toMatchObject({ code: "invalid-name" });
  });

  test("the same id gives the same task, another kind of work under it is refused", async () => {
    const specification = { id: "nightly", type: "import", resource: "docs" };
    const first = await tasks.create(specification, [batch(pages, ["a"])]);
    const again = await tasks.create(specification, [batch(pages, ["a"])]);
    expect(again).toEqual(first);
    expect(await pages.size()).toBe(1);
    await expect(tasks.create({ ...specification, resource: "else" })).rejects.toMatchObject({ code: "id-conflict" });
    await expect(tasks.open(specification)).rejects.toMatchObject({ code: "id-conflict" });
  });

  test("tasks are listed by type, status and resource, and removed", async () => {
    const { id } = await create("a");
    const done = await tasks.create({ type: "commit" });
    const ids = async (options: Parameters<Tasks["list"]>[0]): Promise<string[]> => {
      const found: string[] = [];
      for await (const task of tasks.list(options)) found.push(task.id);
      return found;
    };
    expect(await ids({})).toEqual([done.id, id]);
    expect(await ids({ type: "import" })).toEqual([id]);
    expect(await ids({ status: "completed" })).toEqual([done.id]);
    expect(await ids({ resource: "docs", limit: 1 })).toEqual([id]);
    await expect(tasks.remove(id)).rejects.toMatchObject({ code: "task-active" });
    await tasks.remove(done.id);
    await expect(tasks.get(done.id)).rejects.toMatchObject({ code: "task-not-found" });
  });
});
