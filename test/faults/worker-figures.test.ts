/**
 * What waiting, idling and schedules cost and keep between processes. The figures are printed; the bounds asserted are generous ones, since
 * the machine may be busy with other things.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { NamedQueue, textCodec, Worker } from "../../src/queue/index.ts";
import { childProcesses } from "../support/child-process.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";
import { openStore } from "./store-spec.ts";
import type { WorkerPrograms } from "./worker-programs/main.ts";
import { locationOf, type Told } from "./worker-programs/order.ts";

const children = childProcesses<WorkerPrograms>("test/faults/worker-programs/main.ts");
const ROUNDS = 30;

function show(line: string): void {
  process.stdout.write(`${line}\n`);
}

afterEach(() => children.end());

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] as number;
}

function describeTimes(values: readonly number[]): string {
  return `median ${median(values).toFixed(2)} ms, longest ${Math.max(...values).toFixed(2)} ms`;
}

describe.each([sqliteStores(), redisStores()])("on $name", (kind) => {
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());

  it("from the last ack to the return of a wait in another process, and in the same one", async () => {
    const spec = kind.fresh();
    const location = locationOf(spec);
    const [worker, waiter] = await Promise.all([children.start(), children.start()]);
    await worker.call("work", { location, queue: "jobs", concurrency: 1 });
    const returned = await waiter.call("waitForQueue", { location }, "jobs", ROUNDS);
    await worker.whenTold(2 * ROUNDS);
    const acked = (worker.told as readonly Told[]).flatMap((told) => (told.kind === "settled" ? [told.atMs] : []));
    expect(acked).toHaveLength(ROUNDS);
    // The worker hears of its ack a moment after the store has it, so the waiter may be told before.
    const between = returned.map((atMs, round) => Math.max(0, atMs - (acked[round] as number)));

    const backend = await openStore(spec, () => {});
    const queue = new NamedQueue<string>(backend, "alone", { codec: textCodec });
    let ackedMs = 0;
    const own = new Worker(queue, () => new Promise<void>((resolve) => setTimeout(resolve, 5)), {
      onSettled: () => {
        ackedMs = performance.now();
      },
    }).start();
    const within: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await queue.enqueue("x");
      await queue.waitComplete();
      within.push(Math.max(0, performance.now() - ackedMs));
    }
    await own.stop();
    await backend.close();
    show(`${kind.name}: wait returned after the last ack: other process ${describeTimes(between)}; same process ${describeTimes(within)}`);
    expect(median(between)).toBeLessThan(500);
    expect(median(within)).toBeLessThan(250);
  });

  it("a worker with nothing to do takes next to nothing of a core", async () => {
    const idle = await children.start();
    const part = await idle.call("costOfIdling", { location: locationOf(kind.fresh()), queue: "jobs" }, 3_000);
    show(`${kind.name}: an idle worker takes ${(part * 100).toFixed(3)} % of a core`);
    expect(part).toBeLessThan(0.02);
  });

  it("three processes with the same schedule store one message per instant", async () => {
    const spec = kind.fresh();
    const everyMs = 200;
    const processes = await Promise.all([children.start(), children.start(), children.start()]);
    // Acked at once, so that only the store's memory of ids keeps the others from storing it again.
    const backend = await openStore(spec, () => {});
    const queue = new NamedQueue<string>(backend, "ticks", { codec: textCodec });
    const instants: number[] = [];
    const worker = new Worker(queue, (text) => void instants.push(Number(text.replace("done ", "")))).start();
    const beganMs = Date.now();
    await Promise.all(processes.map((child) => child.call("keepSchedule", { location: locationOf(spec) }, "ticks", everyMs, 3_000)));
    const endedMs = Date.now();
    await queue.waitComplete({ timeoutMs: 30_000 });
    await worker.stop();
    expect(new Set(instants).size).toBe(instants.length);
    expect(await backend.statistics(queue.name)).toMatchObject({ enqueued: instants.length, acked: instants.length });
    expect(instants.every((instant) => instant % everyMs === 0 && instant >= beganMs && instant <= endedMs)).toBe(true);
    // None is left out but by processes that were all too busy to be there in time.
    expect(instants.length).toBeGreaterThanOrEqual(8);
    show(`${kind.name}: ${instants.length} instants of a schedule, of ${Math.floor((endedMs - beganMs) / everyMs)} that passed`);
    await backend.close();
  });
});
