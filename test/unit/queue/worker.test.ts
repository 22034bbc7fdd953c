/** What a worker does at its edges: it holds nothing that others could do, ends in time, and bears listeners, stores and codecs that fail. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { QueueFSError } from "../../../src/core/errors.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { type Handler, NamedQueue, QueueManager, retryAfter, textCodec, Worker, type WorkerOptions } from "../../../src/queue/index.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { interpose } from "../../support/interpose.ts";

const JOBS = parseQueueName("jobs");
const SECOND_MS = 1_000;

let clock: ManualClock;
let backend: Backend;
const workers: Worker<string>[] = [];
const gates: (() => void)[] = [];

beforeEach(async () => {
  clock = new ManualClock();
  backend = await openMemory({ clock });
  await backend.createQueue(JOBS);
});

afterEach(async () => {
  for (const open of gates.splice(0)) open();
  const stopping = Promise.all(workers.splice(0).map((worker) => worker.stop({ graceMs: 0 })));
  await settle();
  await clock.advanceAndSettle(SECOND_MS);
  await stopping;
  await backend.close();
});

/** Lets everything run that needs no time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

function queueOn(on: Backend): NamedQueue<string> {
  return new NamedQueue<string>(on, JOBS, { codec: textCodec, clock });
}

async function put(...texts: string[]): Promise<void> {
  await queueOn(backend).enqueueMany(texts);
}

function start(handler: Handler<string>, options: WorkerOptions = {}, on = backend): Worker<string> {
  const worker = new Worker(queueOn(on), handler, { clock, ...options }).start();
  workers.push(worker);
  return worker;
}

/** A handler that returns only when it is told to, or its test ends. */
function gated(): { handler: Handler<string>; begun: string[]; open: () => void } {
  const begun: string[] = [];
  const waiting: (() => void)[] = [];
  const open = (): void => {
    for (const go of waiting.splice(0)) go();
  };
  gates.push(open);
  return {
    begun,
    open,
    handler: (text) => {
      begun.push(text);
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

/** Collects the warnings of the process. */
function warnings(): { seen: string[]; end(): void } {
  const seen: string[] = [];
  const listen = (warning: Error): void => void seen.push(warning.message);
  process.on("warning", listen);
  return { seen, end: () => void process.off("warning", listen) };
}

async function statusNow(): Promise<string> {
  const { pending, processing } = await backend.status(JOBS);
  return `${pending} pending, ${processing} processing`;
}

describe("what it holds ahead", () => {
  const fast: Handler<string> = () => undefined;

  test("nothing before it knows how fast handlers are", async () => {
    const { handler } = gated();
    await put("1", "2", "3", "4");
    start(handler, { prefetch: 10 });
    await settle();
    expect(await statusNow()).toBe("3 pending, 1 processing");
  });

  test("some while handlers are fast, and gives them back when one takes long", async () => {
    const { handler, begun } = gated();
    await put("1", "2", "3");
    start((text, context) => (text.startsWith("slow") ? handler(text, context) : fast(text, context)), { prefetch: 10 });
    await settle();
    await put("slow", "a", "b", "c");
    await settle();
    expect(begun).toEqual(["slow"]);
    expect(await statusNow()).toBe("0 pending, 4 processing");
    await clock.advanceAndSettle(SECOND_MS);
    expect(await statusNow()).toBe("3 pending, 1 processing");
    // For as long as it takes: no message is taken and given back again and again.
    const { delivered } = await backend.statistics(JOBS);
    await clock.advanceAndSettle(20 * SECOND_MS);
    expect((await backend.statistics(JOBS)).delivered).toBe(delivered);
    expect((await backend.dequeue(JOBS, { limit: 3 })).map(({ deliveryCount }) => deliveryCount)).toEqual([1, 1, 1]);
  });

  test("none beside messages that were delivered before", async () => {
    const { handler, begun } = gated();
    await put("1", "2", "3");
    const worker = start((text, context) => (text.startsWith("slow") ? handler(text, context) : undefined), { prefetch: 10 });
    await settle();
    worker.pause();
    await put("slow1", "slow2", "slow3");
    await backend.dequeue(JOBS, { limit: 3, leaseMs: 10 });
    await clock.advanceAndSettle(20);
    await backend.recover();
    worker.resume();
    await settle();
    expect(begun).toEqual(["slow1"]);
    expect(await statusNow()).toBe("2 pending, 1 processing");
    expect((await backend.dequeue(JOBS, { limit: 2 })).map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2]);
  });

  test.each([
    { what: "of a queue that delivers a message once only", maxDeliveries: 1, options: {} },
    { what: "with a rate limit", maxDeliveries: 20, options: { rateLimit: { count: 100, perMs: 1_000 } } },
  ])("none $what", async ({ maxDeliveries, options }) => {
    await backend.configureQueue(JOBS, { maxDeliveries });
    const { handler } = gated();
    await put("1", "2", "3");
    start((text, context) => (text === "slow" ? handler(text, context) : undefined), { prefetch: 10, ...options });
    await settle();
    await put("slow", "a", "b");
    await settle();
    expect(await statusNow()).toBe("2 pending, 1 processing");
  });

  test("pausing gives it back, and resuming goes on", async () => {
    const { handler, begun, open } = gated();
    await put("1", "2", "3");
    const worker = start((text, context) => (text.startsWith("slow") ? handler(text, context) : undefined), { prefetch: 10 });
    await settle();
    await put("slow1", "slow2", "slow3");
    await settle();
    worker.pause();
    await settle();
    expect(await statusNow()).toBe("2 pending, 1 processing");
    open();
    await settle();
    expect(begun).toEqual(["slow1"]);
    expect(worker.health.state).toBe("paused");
    worker.resume();
    await settle();
    expect(begun).toEqual(["slow1", "slow2"]);
  });
});

describe("after a crash", () => {
  /** Messages that have been delivered once to a consumer that died. */
  async function putDelivered(...texts: string[]): Promise<void> {
    await put(...texts);
    await backend.dequeue(JOBS, { limit: texts.length, leaseMs: 10 });
    await clock.advanceAndSettle(20);
    await backend.recover();
  }

  test("a worker begins with one of the messages delivered before, and goes on one by one", async () => {
    await putDelivered("1", "2", "3", "4", "5", "6");
    const { handler, begun, open } = gated();
    start(handler, { concurrency: 4, prefetch: 4 });
    await settle();
    expect(begun).toEqual(["1"]);
    expect(await statusNow()).toBe("5 pending, 1 processing");
    open();
    await settle();
    expect(begun).toEqual(["1", "2", "3"]);
    expect(await statusNow()).toBe("3 pending, 2 processing");
  });

  test("a message that hangs holds up the others for a second at most", async () => {
    await putDelivered("hangs", "2", "3");
    const { handler, begun } = gated();
    start(handler, { concurrency: 4 });
    await settle();
    expect(begun).toEqual(["hangs"]);
    await clock.advanceAndSettle(SECOND_MS);
    await settle();
    expect(begun).toEqual(["hangs", "2", "3"]);
  });

  test("messages that nobody has had begin all at once", async () => {
    await put("1", "2", "3", "4", "5");
    const { handler, begun } = gated();
    start(handler, { concurrency: 4 });
    await settle();
    expect(begun).toEqual(["1", "2", "3", "4"]);
  });
});

describe("how it ends", () => {
  test("stopped before it was started, it never starts", async () => {
    const worker = new Worker(queueOn(backend), () => undefined, { clock });
    expect(await worker.stop()).toEqual({ finished: 0, released: 0 });
    worker.start();
    await put("1");
    await settle();
    expect(await statusNow()).toBe("1 pending, 0 processing");
    expect(worker.health.state).toBe("stopped");
  });

  test("paused or not, it stops; a grace that is none is refused", async () => {
    const worker = start(() => undefined);
    worker.pause();
    expect(() => worker.stop({ graceMs: -1 })).toThrow(expect.objectContaining({ code: "invalid-argument" }) as Error);
    expect(await worker.stop()).toEqual({ finished: 0, released: 0 });
  });

  test("what a take gives after the stop is released, and counted", async () => {
    let arrive: () => void = () => {};
    const slow = interpose(backend, {
      async dequeue(queue, options) {
        const messages = await backend.dequeue(queue, options);
        if (messages.length > 0) await new Promise<void>((resolve) => (arrive = resolve));
        return messages;
      },
    });
    await put("1");
    const begun: string[] = [];
    const worker = start((text) => void begun.push(text), {}, slow);
    await settle();
    const stopping = worker.stop();
    await settle();
    arrive();
    expect(await stopping).toEqual({ finished: 0, released: 1 });
    expect(begun).toEqual([]);
    expect((await backend.dequeue(JOBS))[0]?.deliveryCount).toBe(1);
  });

  test("a store that does not answer holds it up for half a second beyond the grace", async () => {
    const silent = interpose(backend, { dequeue: () => new Promise(() => {}), release: () => new Promise(() => {}) });
    const worker = start(() => undefined, {}, silent);
    await settle();
    let report: unknown;
    void worker.stop({ graceMs: 2 * SECOND_MS }).then((answer) => {
      report = answer;
    });
    await clock.advanceAndSettle(2 * SECOND_MS + 499);
    expect(report).toBeUndefined();
    await clock.advanceAndSettle(1);
    expect(report).toEqual({ finished: 0, released: 0 });
  });

  test("a closed store stops it, aborts what handlers do, and shows", async () => {
    const reasons: unknown[] = [];
    await put("1");
    const worker = start((_text, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason));
      return new Promise<void>(() => {});
    });
    await settle();
    const { end } = warnings();
    await backend.close();
    // The next slow look finds it closed.
    await clock.advanceAndSettle(10 * SECOND_MS);
    end();
    expect(worker.health).toMatchObject({ state: "stopped", failure: { code: "closed" } });
    expect(reasons).toHaveLength(1);
    expect(clock.timerCount).toBe(0);
  });

  test("a removed queue is told of again and again, ever more seldom, and one made anew is worked on", async () => {
    const errors: unknown[] = [];
    const done: string[] = [];
    await put("1");
    const worker = start((text) => void done.push(text), { onError: (error) => void errors.push(error) });
    await settle();
    await backend.removeQueue(JOBS);
    await clock.advanceAndSettle(60 * SECOND_MS);
    expect(errors.length).toBeGreaterThan(5);
    expect(errors.length).toBeLessThan(40);
    expect(errors.every((error) => (error as QueueFSError).code === "queue-not-found")).toBe(true);
    expect(worker.health).toMatchObject({ state: "running", failure: { code: "queue-not-found" } });
    await backend.createQueue(JOBS);
    await put("2");
    await clock.advanceAndSettle(5 * SECOND_MS);
    expect(done).toEqual(["1", "2"]);
    expect(worker.health.failure).toBeUndefined();
  });

  test("a manager takes no queue of another store", async () => {
    const other = await openMemory();
    const manager = new QueueManager(other);
    expect(() => manager.work(queueOn(backend), () => undefined)).toThrow(expect.objectContaining({ code: "invalid-argument" }) as Error);
    await other.close();
  });
});

describe("what fails around it", () => {
  test("listeners that throw or reject are warned of, and change nothing", async () => {
    const { seen, end } = warnings();
    await put("fails", "2");
    let first = true;
    start(
      (text) => {
        if (text !== "fails" || !first) return;
        first = false;
        throw new Error("the handler throws");
      },
      {
        backoff: { firstMs: 1, maximumMs: 1 },
        onSettled: async () => Promise.reject(new Error("onSettled rejects")),
        onError: () => {
          throw new Error("onError throws");
        },
      },
    );
    await settle();
    await clock.advanceAndSettle(100);
    await settle();
    end();
    expect(await backend.statistics(JOBS)).toMatchObject({ acked: 2, pending: 0, processing: 0 });
    expect(new Set(seen)).toEqual(new Set(["onSettled rejects", "onError throws"]));
  });

  test("what a handler does after its time is over, or its worker has stopped, is nobody's business any more", async () => {
    const late: ((error: Error) => void)[] = [];
    const unhandled: unknown[] = [];
    const listen = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", listen);
    await put("1");
    const outcomes: string[] = [];
    const worker = start(() => new Promise<void>((_resolve, reject) => late.push(reject)), {
      handlerTimeoutMs: SECOND_MS,
      backoff: { firstMs: 1, maximumMs: 1 },
      onSettled: (outcome) => void outcomes.push(outcome),
    });
    await settle();
    await clock.advanceAndSettle(SECOND_MS + 10);
    expect([outcomes, late.length]).toEqual([["retry"], 2]);
    const stopping = worker.stop({ graceMs: 0 });
    await clock.advanceAndSettle(0);
    await stopping;
    expect(await statusNow()).toBe("1 pending, 0 processing");
    for (const reject of late) reject(new Error("too late"));
    await settle();
    process.off("unhandledRejection", listen);
    expect([unhandled, await statusNow()]).toEqual([[], "1 pending, 0 processing"]);
  });

  test("an unreadable message that cannot be put aside takes no readable one with it, and is put aside later", async () => {
    let fails = true;
    const broken = interpose(backend, {
      nack: (queue, items) => (fails ? Promise.reject(new QueueFSError("store-failed", "no")) : backend.nack(queue, items)),
    });
    await backend.enqueue(JOBS, [{ data: Uint8Array.of(0xff) }, ...["1", "2"].map((text) => ({ data: new TextEncoder().encode(text) }))]);
    const queue = new NamedQueue<string>(broken, JOBS, { codec: textCodec, clock, leaseMs: SECOND_MS });
    const taken = await queue.take(3, true);
    expect(taken.map(({ value }) => value)).toEqual(["1", "2"]);
    fails = false;
    await clock.advanceAndSettle(2 * SECOND_MS);
    expect(await queue.take(3, true)).toEqual([]);
    expect((await backend.deadLetters(JOBS)).items).toHaveLength(1);
    // The readable ones are renewed all the time.
    expect(await statusNow()).toBe("0 pending, 2 processing");
    for (const delivery of taken) await delivery.ack();
  });

  test("an ack is tried for as long as the store is full, with the lease kept, and the work is done once", async () => {
    let isFull = true;
    const full = interpose(backend, {
      ack: (queue, items) => (isFull ? Promise.reject(new QueueFSError("store-full", "no room")) : backend.ack(queue, items)),
    });
    const done: string[] = [];
    await put("1");
    start((text) => void done.push(text), {}, full);
    await settle();
    await clock.advanceAndSettle(600 * SECOND_MS);
    expect(await statusNow()).toBe("0 pending, 1 processing");
    isFull = false;
    await clock.advanceAndSettle(10 * SECOND_MS);
    expect(await backend.statistics(JOBS)).toMatchObject({ acked: 1, delivered: 1 });
    expect(done).toEqual(["1"]);
  });

  test("stopping ends that as well, in time", async () => {
    const away = interpose(backend, { ack: () => Promise.reject(new QueueFSError("store-unreachable", "away")) });
    await put("1");
    const worker = start(() => undefined, {}, away);
    await settle();
    const stopping = worker.stop({ graceMs: SECOND_MS });
    await clock.advanceAndSettle(2 * SECOND_MS);
    expect(await stopping).toEqual({ finished: 0, released: 0 });
  });

  test("a verdict or a forward that the store refuses is a failure of the message, tried again by the backoff", async () => {
    const gone = new NamedQueue<string>(backend, "gone", { codec: textCodec, clock });
    const queue = queueOn(backend);
    await put("odd delay", "no such queue");
    const seen: string[] = [];
    start(
      async (text, { deliveryCount, forward }) => {
        seen.push(`${text} ${deliveryCount}`);
        if (deliveryCount > 1) return undefined;
        if (text === "odd delay") return retryAfter(Number.NaN);
        await forward(gone, "x");
        await backend.removeQueue(gone.name);
        return undefined;
      },
      { backoff: { firstMs: 10, maximumMs: 10 } },
    );
    await settle();
    await clock.advanceAndSettle(100);
    await settle();
    expect(seen.toSorted()).toEqual(["no such queue 1", "no such queue 2", "odd delay 1", "odd delay 2"]);
    expect(await queue.isAllComplete()).toBe(true);
  });

  test("an id forwarded twice with different values: the first stays, and the second is told of", async () => {
    const other = new NamedQueue<string>(backend, "other", { codec: textCodec, clock });
    const queue = queueOn(backend);
    await put("1", "2");
    for (let count = 0; count < 2; count += 1) await queue.dequeue((text, { forward }) => forward(other, text, { id: "same" }));
    expect((await other.messages()).items.map(({ id }) => id)).toEqual(["same"]);
    expect(queue.telemetry.read()).toMatchObject({ processed: 2, errorCount: 1 });
  });
});

describe("leases", () => {
  test("thousands are renewed in batches, and let go of one by one", async () => {
    let calls = 0;
    const counting = interpose(backend, {
      extend: (queue, items) => {
        calls += 1;
        return backend.extend(queue, items);
      },
    });
    const count = 5_000;
    await put(...Array.from({ length: count }, (_none, index) => `${index}`));
    const queue = new NamedQueue<string>(counting, JOBS, { codec: textCodec, clock, leaseMs: 9 * SECOND_MS });
    const taken = (await Promise.all(Array.from({ length: 5 }, () => queue.take(1_000, true)))).flat();
    expect(taken).toHaveLength(count);
    await clock.advanceAndSettle(90 * SECOND_MS);
    expect(await statusNow()).toBe(`0 pending, ${count} processing`);
    expect(calls).toBeLessThan(60);
    await Promise.all(taken.map((delivery) => delivery.ack()));
    const before = calls;
    await clock.advanceAndSettle(90 * SECOND_MS);
    expect(calls).toBe(before);
  });

  test("of a removed queue or a closed store are given up, without a warning", async () => {
    const { seen, end } = warnings();
    await put("1");
    const queue = new NamedQueue<string>(backend, JOBS, { codec: textCodec, clock, leaseMs: SECOND_MS });
    const [delivery] = await queue.take(1, true);
    await backend.removeQueue(JOBS);
    await clock.advanceAndSettle(10 * SECOND_MS);
    expect(delivery?.signal.aborted).toBe(true);
    await backend.createQueue(JOBS);
    await put("2");
    const [second] = await queue.take(1, true);
    await backend.close();
    await clock.advanceAndSettle(10 * SECOND_MS);
    await settle();
    end();
    expect(second?.signal.aborted).toBe(true);
    expect([seen, clock.timerCount]).toEqual([[], 0]);
  });

  test("of a delivery that its loop left unsettled end by themselves", async () => {
    await put("1", "2");
    const queue = new NamedQueue<string>(backend, JOBS, { codec: textCodec, clock, leaseMs: SECOND_MS });
    const left: unknown[] = [];
    for await (const delivery of queue.consume({ prefetch: 2 })) {
      left.push(delivery);
      break;
    }
    expect(await statusNow()).toBe("1 pending, 1 processing");
    await clock.advanceAndSettle(10 * SECOND_MS);
    expect(await statusNow()).toBe("2 pending, 0 processing");
    expect(left).toHaveLength(1);
  });
});
