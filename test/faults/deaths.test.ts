/** Processes that open, die, or stand still beside others: what they held comes back without a restart, and nobody else is disturbed. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import type { DeliveredMessage } from "../../src/core/message.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { childProcesses } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openRemote } from "./remote-store.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";
import { openStore, type StoreSpec } from "./store-spec.ts";
import { untilStatus } from "./until.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUE = parseQueueName("jobs");
const sweepIntervalMs = 20;

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function textOf({ data }: DeliveredMessage): string {
  return new TextDecoder().decode(data);
}

// How the death of a process is seen: on SQLite at once, whatever the lease, since processes of one host can be looked up; on Redis by the lease.
describe.each([
  { kind: sqliteStores({ sweepIntervalMs }), leaseMs: 600_000, opens: 60 },
  { kind: redisStores({ sweepIntervalMs }), leaseMs: 400, opens: 50 },
])("on $kind.name", ({ kind, leaseMs, opens }) => {
  let spec: StoreSpec;
  let survivor: Backend;
  const errors: unknown[] = [];

  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    spec = kind.fresh();
    survivor = await openStore(spec, (error) => void errors.push(error));
    await survivor.createQueue(QUEUE, { maxDeliveries: 3 });
  });
  afterEach(async () => {
    await children.end();
    await survivor.close();
    expect(errors.splice(0)).toEqual([]);
  });

  it(`a second process that opens the store ${opens} times disturbs no live delivery`, async () => {
    await survivor.enqueue(
      QUEUE,
      Array.from({ length: 6 }, (_none, index) => ({ data: bytes(`${index}`) })),
    );
    const held = [
      ...(await survivor.dequeue(QUEUE, { limit: 3, leaseMs: 600_000 })),
      ...(await survivor.dequeue(QUEUE, { limit: 3, leaseMs: 600_000, owner: "receipt" })),
    ];
    const opener = await children.start();
    expect(await opener.call("openAndClose", spec, opens, QUEUE)).toBe(0);
    // Some that never say goodbye.
    for (let time = 0; time < 3; time += 1) {
      const killed = await children.start();
      const store = await openRemote(killed, spec);
      expect(await store.dequeue(QUEUE)).toEqual([]);
      await killed.kill();
      await survivor.recover();
      expect(await survivor.status(QUEUE)).toEqual({ pending: 0, processing: 6 });
    }
    const answers = await survivor.ack(
      QUEUE,
      held.map(({ receipt }) => ({ receipt })),
    );
    expect(answers.map(({ outcome }) => outcome)).toEqual(held.map(() => "acked"));
    expect((await survivor.statistics(QUEUE)).delivered).toBe(6);
  });

  it("what a killed process held comes back in one that lives, with its id, bytes and place, and is never out of sight", async () => {
    const enqueued = await survivor.enqueue(
      QUEUE,
      ["first", "second", "third"].map((text) => ({ data: bytes(text) })),
    );
    const consumer = await children.start();
    const [taken] = await (await openRemote(consumer, spec)).dequeue(QUEUE, { leaseMs });
    expect(taken?.deliveryCount).toBe(1);
    const seen = untilStatus(survivor, QUEUE, ({ processing }) => processing === 0);
    const killedAt = performance.now();
    await consumer.kill();
    expect((await seen).map(({ pending, processing }) => pending + processing)).toEqual((await seen).map(() => 3));
    // Far below the lease on SQLite, and the lease on Redis; the bound leaves room for a busy machine.
    expect(performance.now() - killedAt).toBeLessThan(10_000);
    const again = await survivor.dequeue(QUEUE, { limit: 3 });
    expect(again.map(textOf)).toEqual(["first", "second", "third"]);
    expect(again.map(({ id }) => id)).toEqual(enqueued.map(({ id }) => id));
    expect(again.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 1, 1]);
    expect(await survivor.ack(QUEUE, [{ receipt: (taken as DeliveredMessage).receipt }])).toEqual([{ outcome: "stale" }]);
    expect(await survivor.status(QUEUE)).toEqual({ pending: 0, processing: 3 });
  });

  it("a process that opens the store after the death finds the message too", async () => {
    await survivor.enqueue(QUEUE, [{ data: bytes("only") }]);
    const consumer = await children.start();
    const [taken] = await (await openRemote(consumer, spec)).dequeue(QUEUE, { leaseMs });
    await consumer.kill();
    const opened = await openStore(spec, (error) => void errors.push(error));
    await untilStatus(opened, QUEUE, ({ pending }) => pending === 1);
    const [again] = await opened.dequeue(QUEUE);
    expect(again).toMatchObject({ id: taken?.id, deliveryCount: 2 });
    await opened.close();
  });

  it("two thousand messages of a killed process all come back, in bounded steps", async () => {
    await survivor.enqueue(
      QUEUE,
      Array.from({ length: 2_000 }, (_none, index) => ({ data: bytes(`${index}`) })),
    );
    const consumer = await children.start();
    const store = await openRemote(consumer, spec);
    for (let call = 0; call < 2; call += 1) expect((await store.dequeue(QUEUE, { limit: 1_000, leaseMs })).length).toBe(1_000);
    await consumer.kill();
    const seen = await untilStatus(survivor, QUEUE, ({ processing }) => processing === 0);
    expect(new Set(seen.map(({ pending, processing }) => pending + processing))).toEqual(new Set([2_000]));
    const again = await survivor.dequeue(QUEUE, { limit: 1_000 });
    expect(again.map(textOf)).toEqual(Array.from({ length: 1_000 }, (_none, index) => `${index}`));
  });

  it("a delivery that belongs to its receipt outlives the process that asked for it, until its lease ends", async () => {
    await survivor.enqueue(QUEUE, [{ data: bytes("for a shell") }]);
    const consumer = await children.start();
    const begin = performance.now();
    const [taken] = await (await openRemote(consumer, spec)).dequeue(QUEUE, { leaseMs: 1_500, owner: "receipt" });
    await consumer.kill();
    const { recovered } = await survivor.recover();
    const early = await survivor.dequeue(QUEUE);
    // A machine so busy that the lease has ended by now proves nothing here.
    if (performance.now() - begin < 1_500) {
      expect(recovered).toBe(0);
      expect(early).toEqual([]);
    }
    await untilStatus(survivor, QUEUE, ({ pending }) => pending === 1);
    expect(performance.now() - begin).toBeGreaterThanOrEqual(1_500);
    expect(await survivor.dequeue(QUEUE)).toMatchObject([{ id: taken?.id, deliveryCount: 2 }]);
  });

  it.each(["process", "receipt"] as const)(
    "a process that stands still loses its lease, and all it says afterwards is stale (owner %s)",
    async (owner) => {
      await survivor.enqueue(QUEUE, [{ data: bytes("slow") }]);
      const frozen = await children.start();
      // Without a sweep of its own, in which it might stand still with the write lock in hand: that is another story.
      const store = await openRemote(frozen, { ...spec, sweepIntervalMs: 3_600_000 });
      const [taken] = await store.dequeue(QUEUE, { leaseMs: 200, owner });
      const { receipt } = taken as DeliveredMessage;
      frozen.signal("SIGSTOP");
      await untilStatus(survivor, QUEUE, ({ pending }) => pending === 1);
      const [again] = await survivor.dequeue(QUEUE, { leaseMs: 600_000 });
      expect(again).toMatchObject({ id: taken?.id, deliveryCount: 2 });
      frozen.signal("SIGCONT");
      expect(await store.ack(QUEUE, [{ receipt, forward: [{ queue: QUEUE, messages: [{ data: bytes("follow-up") }] }] }])).toEqual([
        { outcome: "stale" },
      ]);
      expect(await store.nack(QUEUE, [{ receipt, giveUp: true }])).toEqual(["stale"]);
      expect(await store.release(QUEUE, [receipt])).toEqual(["stale"]);
      expect(await store.extend(QUEUE, [{ receipt, leaseMs: 1_000 }])).toEqual(["stale"]);
      expect(await survivor.status(QUEUE)).toEqual({ pending: 0, processing: 1 });
      expect(await survivor.ack(QUEUE, [{ receipt: (again as DeliveredMessage).receipt }])).toMatchObject([{ outcome: "acked" }]);
      expect(await survivor.status(QUEUE)).toEqual({ pending: 0, processing: 0 });
    },
  );

  it("a message that kills its consumer each time is delivered as often as the queue says, then a dead letter; the others are served", async () => {
    const [poison] = await survivor.enqueue(QUEUE, [{ data: bytes("poison") }]);
    await survivor.enqueue(QUEUE, [{ data: bytes("good") }]);
    for (let delivery = 1; delivery <= 3; delivery += 1) {
      const consumer = await children.start();
      const [taken] = await (await openRemote(consumer, spec)).dequeue(QUEUE, { leaseMs });
      expect(taken).toMatchObject({ id: poison?.id, deliveryCount: delivery });
      await consumer.kill();
      await untilStatus(survivor, QUEUE, ({ processing }) => processing === 0);
    }
    const { items } = await survivor.deadLetters(QUEUE);
    expect(items).toMatchObject([{ id: poison?.id, deliveryCount: 3 }]);
    expect(items[0]?.reason).toContain("deliveries used up (3)");
    const [good] = await survivor.dequeue(QUEUE);
    expect(textOf(good as DeliveredMessage)).toBe("good");
    await survivor.ack(QUEUE, [{ receipt: (good as DeliveredMessage).receipt }]);
    expect(await survivor.status(QUEUE)).toEqual({ pending: 0, processing: 0 });
  });
});
