/** Workers: the same over every store. Waits are for events; the clock is the host's, so leases and delays are short ones. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type Backend,
  giveUp,
  type Handler,
  NamedQueue,
  QueueManager,
  type RunOutcome,
  retryAfter,
  textCodec,
  Worker,
  type WorkerOptions,
} from "../../src/index.ts";
import { type OpenStore, STORES } from "../support/stores.ts";

/** A promise and what settles it. */
function deferred<Value = void>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** A backend whose named method fails first. */
function failing<Name extends keyof Backend>(backend: Backend, name: Name, fail: () => Error | undefined): Backend {
  return new Proxy(backend, {
    get(target, key) {
      const value = Reflect.get(target, key, target) as unknown;
      if (typeof value !== "function") return value;
      return (...values: unknown[]) => {
        const error = key === name ? fail() : undefined;
        return error === undefined ? (value as (...given: unknown[]) => unknown).apply(target, values) : Promise.reject(error);
      };
    },
  });
}

const FAST: WorkerOptions = { backoff: { firstMs: 5, maximumMs: 20 }, pollIntervalMs: 200 };

describe.each(STORES)("worker over $name", (kind) => {
  let store: OpenStore;
  const workers: Worker<string>[] = [];
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    store = await kind.open();
  });
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop({ graceMs: 0 })));
    await store.close();
  });

  const open = (name = "jobs", options: { leaseMs?: number; maxDeliveries?: number } = {}): NamedQueue<string> =>
    new NamedQueue(store.backend, name, {
      codec: textCodec,
      ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
      ...(options.maxDeliveries === undefined ? {} : { settings: { maxDeliveries: options.maxDeliveries } }),
    });
  const work = (queue: NamedQueue<string>, handler: Handler<string>, options: WorkerOptions = {}): Worker<string> => {
    const worker = new Worker(queue, handler, { ...FAST, ...options }).start();
    workers.push(worker);
    return worker;
  };
  const allDone = (...queues: NamedQueue<string>[]): Promise<unknown> =>
    Promise.all(queues.map((queue) => queue.waitComplete({ timeoutMs: 20_000 })));

  test("runs each message once, in order with one handler at a time, and the wait ends when all are acked", async () => {
    const queue = open();
    const seen: string[] = [];
    work(queue, (value) => void seen.push(value));
    const values = Array.from({ length: 300 }, (_, index) => `${index}`);
    await queue.enqueueMany(values);
    await allDone(queue);
    expect(seen).toEqual(values);
    expect((await queue.getStatus()).telemetry).toMatchObject({ processed: 300, requeueCount: 0, errorCount: 0 });
  });

  test("runs as many at once as its concurrency, never more", async () => {
    const queue = open();
    let running = 0;
    let most = 0;
    const enough = deferred();
    const handler = async (): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      if (running === 4) enough.resolve();
      await enough.promise;
      running -= 1;
    };
    work(queue, handler, { concurrency: 4 });
    await queue.enqueueMany(Array.from({ length: 40 }, (_, index) => `${index}`));
    await allDone(queue);
    expect(most).toBe(4);
  });

  test("a throw, a rejection and a thrown undefined are retried without touching others (C19)", async () => {
    const queue = open();
    const seen: string[] = [];
    const failed = new Set<string>();
    work(queue, async (value, { deliveryCount }) => {
      seen.push(`${value}${deliveryCount}`);
      if (failed.has(value) || value.startsWith("good")) return;
      failed.add(value);
      if (value === "sync") throw new Error("sync");
      await Promise.reject(value === "undefined" ? undefined : new Error("rejected"));
    });
    await queue.enqueueMany(["good1", "sync", "good2", "rejected", "undefined"]);
    await allDone(queue);
    expect(seen.toSorted()).toEqual(["good11", "good21", "rejected1", "rejected2", "sync1", "sync2", "undefined1", "undefined2"]);
    const { telemetry } = await queue.getStatus();
    expect(telemetry).toMatchObject({ processed: 5, requeueCount: 3, errorCount: 3 });
    expect(telemetry.recentErrors.map(({ text, attempt }) => `${text} ${attempt}`).toSorted()).toEqual([
      "rejected 1",
      "sync 1",
      "undefined 1",
    ]);
  });

  test("a poisoned message is delivered as often as allowed, then dead with its last error; the others are done (C20)", async () => {
    const queue = open("poison", { maxDeliveries: 3 });
    const attempts: number[] = [];
    work(queue, (value, { deliveryCount }) => {
      if (value !== "poison") return;
      attempts.push(deliveryCount);
      throw new Error(`attempt ${deliveryCount}`);
    });
    await queue.enqueueMany(["poison", ...Array.from({ length: 10 }, (_, index) => `${index}`)]);
    await allDone(queue);
    expect(attempts).toEqual([1, 2, 3]);
    expect((await store.backend.deadLetters(queue.name)).items.map(({ reason, deliveryCount }) => [reason, deliveryCount])).toEqual([
      ["attempt 3", 3],
    ]);
    expect(await store.backend.statistics(queue.name)).toMatchObject({ acked: 10, deadLettered: 1 });
  });

  test("verdicts are followed: give up at once, retry not before the delay", async () => {
    const queue = open();
    const begun: number[] = [];
    work(queue, (value) => {
      if (value === "never") return giveUp("cannot be done");
      begun.push(performance.now());
      return begun.length === 1 ? retryAfter(150) : undefined;
    });
    await queue.enqueueMany(["later", "never"]);
    await allDone(queue);
    expect((begun[1] as number) - (begun[0] as number)).toBeGreaterThanOrEqual(149);
    expect((await store.backend.deadLetters(queue.name)).items.map(({ reason }) => reason)).toEqual(["cannot be done"]);
  });

  test("a storm of retries stays small, never shows a complete queue, and ends (C21)", async () => {
    const queue = open();
    let ready = false;
    let deliveries = 0;
    let live = 0;
    const ids = new Set<string>();
    work(
      queue,
      async (_value, context) => {
        deliveries += 1;
        live += 1;
        expect(live).toBe(1);
        ids.add(context.id);
        if (deliveries === 6) ready = true;
        const snapshot = await store.backend.status(queue.name);
        expect(snapshot.pending + snapshot.processing).toBe(1);
        live -= 1;
        return ready ? undefined : retryAfter(20);
      },
      { concurrency: 4 },
    );
    await queue.enqueue("x");
    await allDone(queue);
    expect(ready).toBe(true);
    expect(deliveries).toBe(6);
    expect(ids.size).toBe(1);
    expect((await queue.getStatus()).telemetry.errorCount).toBe(0);
  });

  test("a message waits five leases and its handler runs five more: one delivery (C16)", async () => {
    const queue = open("long", { leaseMs: 200 });
    await queue.enqueue("x");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    let deliveries = 0;
    work(queue, async (_value, { signal }) => {
      deliveries += 1;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(signal.aborted).toBe(false);
    });
    await allDone(queue);
    expect(deliveries).toBe(1);
  });

  test("a handler that never returns is cut off at its time limit, its signal aborted and its message given back", async () => {
    const queue = open("stuck");
    let first = true;
    let aborted: unknown;
    const other = deferred();
    work(
      queue,
      async (value, { signal }) => {
        if (value === "other") return other.resolve();
        if (!first) return undefined;
        first = false;
        signal.addEventListener("abort", () => {
          aborted = signal.reason;
        });
        return new Promise<undefined>(() => undefined);
      },
      { concurrency: 2, handlerTimeoutMs: 100 },
    );
    await queue.enqueueMany(["stuck", "other"]);
    await other.promise;
    await allDone(queue);
    expect(aborted).toMatchObject({ code: "timed-out" });
    expect((await queue.getStatus()).telemetry).toMatchObject({ processed: 2, errorCount: 1 });
  });

  test("a lost lease aborts the handler's signal, and its late end changes nothing (C13)", async () => {
    const queue = open("lost", { leaseMs: 150 });
    const started = deferred<string>();
    const outcome = deferred<RunOutcome>();
    work(
      queue,
      async (_value, { signal, id }) => {
        started.resolve(id);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
      { onSettled: (how) => outcome.resolve(how) },
    );
    await queue.enqueue("x");
    const id = await started.promise;
    await store.backend.ackById(queue.name, [id as never]);
    expect(await outcome.promise).toBe("lost");
    expect(await store.backend.statistics(queue.name)).toMatchObject({ acked: 1, pending: 0, processing: 0 });
  });

  test("an ack that fails is tried again, and the message is done once", async () => {
    let failures = 2;
    const { QueueFSError } = await import("../../src/index.ts");
    const backend = failing(store.backend, "ack", () => {
      failures -= 1;
      return failures >= 0 ? new QueueFSError("store-unreachable", "away for a moment") : undefined;
    });
    const queue = new NamedQueue<string>(backend, "jobs", { codec: textCodec });
    let deliveries = 0;
    work(queue, () => {
      deliveries += 1;
    });
    await queue.enqueue("x");
    await allDone(queue);
    expect(deliveries).toBe(1);
    expect((await queue.getStatus()).telemetry).toMatchObject({ processed: 1, errorCount: 2 });
  });

  test("an ack that fails for good ends with another delivery, not with a stuck message", async () => {
    let fail = true;
    const backend = failing(store.backend, "ack", () => {
      if (!fail) return undefined;
      fail = false;
      return new Error("broken");
    });
    const queue = new NamedQueue<string>(backend, "jobs", { codec: textCodec, leaseMs: 200 });
    const counts: number[] = [];
    work(queue, (_value, { deliveryCount }) => void counts.push(deliveryCount));
    await queue.enqueue("x");
    await allDone(queue);
    expect(counts).toEqual([1, 2]);
  });

  test("failing to look for work is visible, is no idle queue, and passes by itself", async () => {
    let failures = 3;
    const errors: unknown[] = [];
    const { QueueFSError } = await import("../../src/index.ts");
    const backend = failing(store.backend, "dequeue", () => {
      failures -= 1;
      return failures >= 0 ? new QueueFSError("store-unreachable", "away") : undefined;
    });
    const queue = new NamedQueue<string>(backend, "jobs", { codec: textCodec });
    await queue.enqueue("x");
    const seen = deferred();
    const worker = work(queue, () => seen.resolve(), {
      onError: (error) => {
        errors.push(error);
        expect(worker.health.failure).toBe(error);
      },
    });
    await seen.promise;
    await allDone(queue);
    expect(errors).toHaveLength(3);
    expect(worker.health).toMatchObject({ state: "running" });
    expect(worker.health.failure).toBeUndefined();
  });

  test("stopping takes no more, lets handlers finish within the grace, and releases the rest at once (C18)", async () => {
    const queue = open();
    const begun = deferred();
    const finish = deferred();
    let count = 0;
    const aborted: string[] = [];
    const worker = work(
      queue,
      async (value, { signal }) => {
        count += 1;
        if (count === 4) begun.resolve();
        if (value.startsWith("ends")) return finish.promise;
        signal.addEventListener("abort", () => aborted.push(value));
        return new Promise<void>(() => undefined);
      },
      { concurrency: 4, prefetch: 2 },
    );
    await queue.enqueueMany(["ends1", "hangs1", "ends2", "hangs2", "ahead1", "ahead2", "untouched"]);
    await begun.promise;
    const stopping = worker.stop({ graceMs: 300 });
    expect(worker.stop()).toBe(stopping);
    const enqueuedInGrace = await open("other").enqueue("follow-up");
    finish.resolve();
    expect(await stopping).toMatchObject({ finished: 2 });
    expect(enqueuedInGrace).toBeTruthy();
    expect(count).toBe(4);
    expect(aborted.toSorted()).toEqual(["hangs1", "hangs2"]);
    expect(await store.backend.status(queue.name)).toEqual({ pending: 5, processing: 0 });
    expect((await store.backend.dequeue(queue.name, { limit: 10 })).map(({ deliveryCount }) => deliveryCount)).toEqual([1, 1, 1, 1, 1]);
    expect(worker.health.state).toBe("stopped");
  });

  test("pause takes no more, resume goes on", async () => {
    const queue = open();
    const seen: string[] = [];
    const first = deferred();
    const worker = work(
      queue,
      (value) => {
        seen.push(value);
        first.resolve();
      },
      { prefetch: 0 },
    );
    await queue.enqueue("1");
    await first.promise;
    worker.pause();
    expect(worker.health.state).toBe("paused");
    await queue.enqueue("2");
    await expect(queue.waitComplete({ timeoutMs: 300 })).rejects.toMatchObject({ code: "timed-out" });
    expect(seen).toEqual(["1"]);
    worker.resume();
    await allDone(queue);
    expect(seen).toEqual(["1", "2"]);
  });

  test("a rate limit spaces what is begun", async () => {
    const queue = open();
    const begun: number[] = [];
    work(queue, () => void begun.push(performance.now()), { concurrency: 10, rateLimit: { count: 2, perMs: 200 } });
    const before = performance.now();
    await queue.enqueueMany(Array.from({ length: 6 }, (_, index) => `${index}`));
    await allDone(queue);
    // Two at once, then one every 100 ms.
    expect((begun.at(-1) as number) - before).toBeGreaterThanOrEqual(380);
  });

  test("a delayed message wakes a sleeping worker when its time has come, not at the next slow look", async () => {
    const queue = open();
    const seen = deferred<number>();
    work(queue, () => seen.resolve(performance.now()), { pollIntervalMs: 60_000 });
    const before = performance.now();
    await queue.enqueue("later", { delayMs: 200 });
    const waited = (await seen.promise) - before;
    expect(waited).toBeGreaterThanOrEqual(200);
    expect(waited).toBeLessThan(10_000);
    await allDone(queue);
  });

  test("a manager runs a pipeline of queues and is complete only when all of it is done", async () => {
    const manager = new QueueManager(store.backend);
    const parse = manager.queue<string>("pipeline/parse", { codec: textCodec });
    const index = manager.queue<string>("pipeline/index", { codec: textCodec });
    const results = new Set<string>();
    manager.work(parse, async (value, { forward }) => forward(index, `${value}!`), { ...FAST, concurrency: 3 });
    manager.work(index, (value) => void results.add(value), { ...FAST, concurrency: 2 });
    await parse.enqueueMany(Array.from({ length: 200 }, (_, number) => `${number}`));
    expect(await manager.isAllComplete()).toBe(false);
    manager.start();
    const statuses = await manager.waitComplete({ timeoutMs: 20_000 });
    expect(statuses.map(({ pending, processing }) => [pending, processing])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(results.size).toBe(200);
    expect((await manager.getStatus()).map(({ telemetry }) => telemetry.processed)).toEqual([200, 200]);
    expect(await manager.stop()).toEqual({ finished: 0, released: 0 });
    expect(manager.health.map(({ state }) => state)).toEqual(["stopped", "stopped"]);
  });

  test("three waiters on the last two acks, many rounds: each ends once, with (0,0) (C05)", async () => {
    const queue = open();
    work(queue, () => undefined, { concurrency: 1 });
    work(queue, () => undefined, { concurrency: 1 });
    for (let round = 0; round < 30; round += 1) {
      await queue.enqueueMany(["a", "b"]);
      const ends = await Promise.all([1, 2, 3].map(() => queue.waitComplete({ timeoutMs: 20_000 })));
      for (const end of ends) expect(end).toEqual({ queue: queue.name, pending: 0, processing: 0 });
    }
    expect(await store.backend.statistics(queue.name)).toMatchObject({ acked: 60, delivered: 60 });
  });
});
