/**
 * The race that this product exists to end: a reader in another process must never see a queue, or several of them, complete while a
 * message is unacked. Processes work, a process reads, all record what they did and saw by the clock they share, and the whole is judged
 * afterwards. The same reader with the mistakes of others must be caught, or these tests would prove nothing.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseQueueName, type QueueName } from "../../src/core/names.ts";
import { waitComplete } from "../../src/queue/wait.ts";
import { childProcesses } from "../support/child-process.ts";
import { describeViolations, judge, type Operation, type Verdict } from "./history.ts";
import type { FaultPrograms } from "./programs/main.ts";
import type { Reading } from "./programs/poller.ts";
import type { Handing } from "./programs/race.ts";
import { newSeed } from "./report.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";
import { openStore, type StoreSpec } from "./store-spec.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUES = [parseQueueName("parse"), parseQueueName("index")] as const;

afterEach(() => children.end());

async function makeQueues(spec: StoreSpec, queues: readonly QueueName[] = QUEUES): Promise<void> {
  const backend = await openStore(spec, () => {});
  for (const queue of queues) await backend.createQueue(queue);
  await backend.close();
}

/** Reads in a process of its own while `work` runs, and judges what it saw. */
async function watched(
  spec: StoreSpec,
  queues: readonly QueueName[],
  reading: Reading,
  work: () => Promise<readonly Operation[]>,
): Promise<Verdict> {
  const poller = await children.start();
  const polling = poller.call("poll", spec, queues, reading);
  await Promise.race([poller.whenTold(1), polling]);
  const operations = await work();
  await poller.call("stopPolling");
  const verdict = judge(operations, await polling, queues);
  await poller.kill();
  return verdict;
}

function expectSound(verdict: Verdict): void {
  expect(describeViolations(verdict)).toBe("");
  // The reader was there while work was under way, and saw that it was done.
  expect(verdict.duringWork).toBeGreaterThan(100);
  expect(verdict.complete).toBeGreaterThan(20);
}

async function workAlone(spec: StoreSpec, rounds: number, handing: Handing, dwellMs = 0): Promise<readonly Operation[]> {
  const worker = await children.start();
  return worker.call("workAlone", spec, QUEUES, rounds, handing, newSeed(), dwellMs);
}

describe.each([sqliteStores({ durability: "normal" }), redisStores()])("on $name", (kind) => {
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());

  it.each([
    ["alone", 2_000],
    ["enqueue-then-ack", 1_000],
    ["forward", 1_000],
  ] as const)("a second process never sees complete while a message is unacked: %s, %i rounds", async (handing, rounds) => {
    const spec = kind.fresh();
    await makeQueues(spec);
    const queues = handing === "alone" ? [QUEUES[0]] : QUEUES;
    const verdict = await watched(spec, queues, "snapshot", () => workAlone(spec, rounds, handing));
    expectSound(verdict);
  });

  it("producer, handler and consumer in three processes: every wait for completion ends truly, 120 rounds", async () => {
    const spec = kind.fresh();
    await makeQueues(spec);
    const seed = newSeed();
    for (const handing of ["enqueue-then-ack", "forward"] as const) {
      const [producer, handler, consumer] = await Promise.all([children.start(), children.start(), children.start()]);
      const handling = handler.call("consume", spec, QUEUES[0], QUEUES[1], handing, 1);
      const consuming = consumer.call("consume", spec, QUEUES[1], undefined, handing, 1);
      let waits: Float64Array = new Float64Array();
      let operations: Operation[] = [];
      const verdict = await watched(spec, QUEUES, "snapshot", async () => {
        const produced = await producer.call("produceAndWait", spec, QUEUES, 60, seed);
        await Promise.all([handler.call("endConsuming"), consumer.call("endConsuming")]);
        waits = produced.snapshots;
        operations = [...produced.operations, ...(await handling), ...(await consuming)];
        return operations;
      });
      expectSound(verdict);
      const waited = judge(operations, waits, QUEUES);
      expect(describeViolations(waited)).toBe("");
      expect(waited.complete).toBe(60);
    }
  });

  it("a crowd of 4 producers and 8 consumers: each snapshot is one instant, each message is delivered once, nothing remains", async () => {
    const spec = kind.fresh();
    const queue = QUEUES[0];
    await makeQueues(spec, [queue]);
    const [producers, consumers, others] = await Promise.all([children.start(), children.start(), children.start()]);
    const consuming = [consumers, others].map((child) => child.call("consume", spec, queue, undefined, "alone", 4));
    await Promise.all([consumers.whenTold(1), others.whenTold(1)]);
    let operations: Operation[] = [];
    const backend = await openStore(spec, () => {});
    const verdict = await watched(spec, [queue], "snapshot", async () => {
      const produced = await producers.call("produceCrowd", spec, queue, "message", 4, 500);
      await waitComplete(backend, { queues: [queue] }, { timeoutMs: 60_000 });
      await Promise.all([consumers.call("endConsuming"), others.call("endConsuming")]);
      operations = [...produced, ...(await Promise.all(consuming)).flat()];
      return operations;
    });
    expect(describeViolations(verdict)).toBe("");
    expect(verdict.duringWork).toBeGreaterThan(100);
    const delivered = operations.filter(({ kind: what }) => what === "dequeue").map(({ message }) => message);
    expect(delivered.length).toBe(2_000);
    expect(new Set(delivered).size).toBe(2_000);
    expect(await backend.status(queue)).toEqual({ pending: 0, processing: 0 });
    expect((await backend.messages(queue)).items).toEqual([]);
    expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
    await backend.close();
  });

  it.each([
    ["queue-by-queue", "enqueue-then-ack"],
    ["queue-by-queue", "forward"],
    ["two-sources", "alone"],
  ] as const)("control: a reader that reads %s is caught in false completions (%s)", async (reading, handing) => {
    const spec = kind.fresh();
    await makeQueues(spec);
    const queues = handing === "alone" ? [QUEUES[0]] : QUEUES;
    const verdict = await watched(spec, queues, reading, () => workAlone(spec, 60, handing, 8));
    expect(verdict.violations.filter(({ kind: what }) => what === "false-completion").length).toBeGreaterThan(0);
  });
});
