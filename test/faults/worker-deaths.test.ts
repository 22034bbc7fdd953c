/**
 * Workers whose processes die, freeze, or are ended by their own handlers: whatever happens, every message is handled without a restart of
 * those that live, none blocks another, and no snapshot lies meanwhile.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { waitComplete } from "../../src/queue/index.ts";
import { type Child, childProcesses } from "../support/child-process.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";
import { openStore, type StoreSpec } from "./store-spec.ts";
import { untilStatus } from "./until.ts";
import type { WorkerPrograms } from "./worker-programs/main.ts";
import { locationOf, type Told, type WorkOrder } from "./worker-programs/order.ts";

const children = childProcesses<WorkerPrograms>("test/faults/worker-programs/main.ts");
const QUEUE = parseQueueName("jobs");
const TIMEOUT_MS = 60_000;
const sweepIntervalMs = 50;

describe.each([
  { kind: sqliteStores({ durability: "normal", sweepIntervalMs }), leaseMs: 60_000 },
  { kind: redisStores({ sweepIntervalMs }), leaseMs: 500 },
])("workers on $kind.name", ({ kind, leaseMs }) => {
  let spec: StoreSpec;
  let store: Backend;
  const errors: unknown[] = [];

  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    spec = kind.fresh();
    store = await openStore(spec, (error) => void errors.push(error));
    await store.createQueue(QUEUE, { maxDeliveries: 3 });
  });
  afterEach(async () => {
    await children.end();
    await store.close();
    expect(errors.splice(0)).toEqual([]);
  });

  const order = (more: Partial<WorkOrder> = {}): WorkOrder => ({
    location: locationOf(spec),
    queue: QUEUE,
    leaseMs,
    sweepIntervalMs,
    pollIntervalMs: 60_000,
    ...more,
  });
  const startWorker = async (more: Partial<WorkOrder> = {}): Promise<Child<WorkerPrograms>> => {
    const child = await children.start();
    await child.call("work", order(more));
    return child;
  };
  const enqueue = (...texts: string[]): Promise<unknown> =>
    store.enqueue(
      QUEUE,
      texts.map((text) => ({ data: new TextEncoder().encode(text) })),
    );
  const complete = (): Promise<unknown> => waitComplete(store, { queues: [QUEUE] }, { timeoutMs: TIMEOUT_MS });
  const begunIn = (child: Child<WorkerPrograms>): string[] =>
    (child.told as readonly Told[]).flatMap((told) => (told.kind === "begun" ? [`${told.text} #${told.deliveryCount}`] : []));

  /** Resolves when a child has begun so many messages that match. */
  const whenBegun = async (child: Child<WorkerPrograms>, pattern: RegExp, count = 1): Promise<void> => {
    while (begunIn(child).filter((text) => pattern.test(text)).length < count) await child.whenTold(child.told.length + 1);
  };
  const whenSettled = async (child: Child<WorkerPrograms>, outcome: string): Promise<void> => {
    while (!(child.told as readonly Told[]).some((told) => told.kind === "settled" && told.outcome === outcome)) {
      await child.whenTold(child.told.length + 1);
    }
  };
  /** Starts two workers, has them work, and then has one of them begin a message: that one, and the other. */
  const startTwo = async (text: string, more: Partial<WorkOrder> = {}): Promise<[Child<WorkerPrograms>, Child<WorkerPrograms>]> => {
    const [first, second] = await Promise.all([startWorker(more), startWorker(more)]);
    await enqueue("done", "done", "done", "done");
    await complete();
    await enqueue(text);
    const pattern = new RegExp(`^${text} #1`);
    const begun = await Promise.race([first, second].map((child) => whenBegun(child, pattern).then(() => child)));
    return begun === first ? [first, second] : [second, first];
  };

  /** Each message was acked once, though one was delivered again; on a machine that is busy itself, others may have been too. */
  const expectOneAck = async (messages: number): Promise<void> => {
    const { delivered, acked, returned, deadLettered } = await store.statistics(QUEUE);
    expect({ acked, deadLettered, open: delivered - acked - returned }).toEqual({ acked: messages, deadLettered: 0, open: 0 });
    expect(returned).toBeGreaterThanOrEqual(1);
  };

  it("a worker killed in the middle of a message: a new process gets it, and it was never out of sight (C09)", async () => {
    const first = await startWorker();
    await enqueue("first hang");
    await whenBegun(first, /hang/);
    const returned = untilStatus(store, QUEUE, ({ pending }) => pending === 1);
    await first.kill();
    expect(new Set((await returned).map(({ pending, processing }) => pending + processing))).toEqual(new Set([1]));
    const second = await startWorker();
    await complete();
    // What a child tells may arrive later than what it did to the store.
    await whenBegun(second, /#2/);
    expect(begunIn(second)).toEqual(["first hang #2"]);
    const told = [...first.told, ...second.told] as Told[];
    expect(new Set(told.flatMap((one) => (one.kind === "begun" ? [one.id] : []))).size).toBe(1);
  });

  it("a second process with workers of another queue, opened 10 times, disturbs no delivery (C11)", async () => {
    const first = await startWorker();
    await enqueue("gate", "done");
    await whenBegun(first, /gate/);
    const second = await children.start();
    await second.call("openWorkAndClose", order({ queue: "others" }), 10);
    expect(await store.status(QUEUE)).toEqual({ pending: 1, processing: 1 });
    await first.call("openGate");
    await complete();
    await whenBegun(first, /done/);
    expect(begunIn(first)).toEqual(["gate #1", "done #1"]);
    expect(await store.statistics(QUEUE)).toMatchObject({ delivered: 2, acked: 2, returned: 0 });
  });

  it("a worker that dies long after another has started: the other one takes over without a restart (C12)", async () => {
    const [dies, lives] = await startTwo("first hang");
    await dies.kill();
    await complete();
    // What a child tells may arrive later than what it did to the store.
    await whenBegun(lives, /^first hang #2$/);
  });

  it("a message that kills its process each time is delivered as often as allowed, then dead; the other ten are done (C20)", async () => {
    await enqueue("kill", ...Array.from({ length: 10 }, () => "done"));
    const processes: Child<WorkerPrograms>[] = [];
    for (let isComplete = false; !isComplete && processes.length < 10; ) {
      const child = await startWorker({ concurrency: 4, prefetch: 4 });
      processes.push(child);
      isComplete = await Promise.race([child.ended.then(() => false), complete().then(() => true)]);
    }
    expect(processes).toHaveLength(4);
    expect(processes.flatMap(begunIn).filter((text) => text.startsWith("kill"))).toEqual(["kill #1", "kill #2", "kill #3"]);
    expect((await store.deadLetters(QUEUE)).items).toMatchObject([
      { deliveryCount: 3, reason: expect.stringMatching("deliver") as string },
    ]);
    expect(await store.statistics(QUEUE)).toMatchObject({ acked: 10, deadLettered: 1, pending: 0, processing: 0 });
  });

  it("handlers that end their process, by exit or by an error nobody catches, lose nothing", async () => {
    await enqueue("first exit 3", "first crash", "done");
    const ends: unknown[] = [];
    for (let isComplete = false; !isComplete && ends.length < 6; ) {
      const child = await startWorker();
      isComplete = await Promise.race([child.ended.then((how) => ends.push(how) === 0), complete().then(() => true)]);
    }
    expect(ends).toEqual([3, 1]);
    expect(await store.statistics(QUEUE)).toMatchObject({ acked: 3, deadLettered: 0 });
  });

  it("handlers that never return hold up neither others nor the wait, once their time is over", async () => {
    await enqueue("hang", "first hang", ...Array.from({ length: 6 }, () => "done"));
    const worker = await startWorker({ concurrency: 3, prefetch: 10, handlerTimeoutMs: 600 });
    await complete();
    await whenBegun(worker, /^done/, 6);
    const done = begunIn(worker).filter((text) => text.startsWith("done"));
    expect(done).toEqual(done.map(() => "done #1"));
    expect((await store.deadLetters(QUEUE)).items).toMatchObject([
      { deliveryCount: 3, reason: expect.stringMatching("took longer than 600 ms") as string },
    ]);
    expect(await store.statistics(QUEUE)).toMatchObject({ acked: 7, deadLettered: 1 });
    expect(await worker.call("stopWork")).toEqual({ finished: 0, released: 0 });
  });

  it("a worker whose handlers all hang keeps no message from a worker that is free", async () => {
    const stuck = await startWorker({ concurrency: 2, prefetch: 20 });
    await enqueue("done", "done", "done", "done");
    await complete();
    await enqueue("first hang", "first hang");
    await whenBegun(stuck, /hang #1/, 2);
    await enqueue("done", "done", "done");
    const free = await startWorker();
    await whenBegun(free, /done/, 3);
    expect(begunIn(free)).toEqual(["done #1", "done #1", "done #1"]);
    await stuck.kill();
    await complete();
  });

  it("a frozen process loses its message to another, and what it says when it goes on is stale (C13)", async () => {
    const [frozen, other] = await startTwo("first sleep 400", { leaseMs: 800 });
    // Stopped within a write it would hold the lock of the file, which is another test. What it had to do after the begin is done once it has
    // answered a few times: its writes are no longer than a turn.
    for (let turn = 0; turn < 5; turn += 1) await frozen.call("openGate");
    frozen.signal("SIGSTOP");
    await whenBegun(other, /sleep 400 #2/);
    await complete();
    frozen.signal("SIGCONT");
    await whenSettled(frozen, "lost");
    await expectOneAck(5);
  });

  it("a handler that keeps the event loop busy for three leases, without a thread to renew: two deliveries, the first one's end is lost (C15)", async () => {
    const [busy, other] = await startTwo("first burn 1800", { leaseMs: 600 });
    await whenBegun(other, /burn 1800 #2/);
    await complete();
    await whenSettled(busy, "lost");
    await expectOneAck(5);
  });

  it("what a handler enqueued before its process died is kept, and no wait for both queues ends in between", async () => {
    const other = parseQueueName("others");
    await store.createQueue(other);
    await enqueue("enqueue others; first kill");
    const first = await startWorker();
    await first.ended;
    const waiting = waitComplete(store, { queues: [QUEUE, other] }, { timeoutMs: TIMEOUT_MS });
    await startWorker({ queue: other });
    await startWorker();
    await waiting;
    expect(await store.statistics(other)).toMatchObject({ enqueued: 2, acked: 2 });
  });
});
