/** What a wait tells beside its end: whether queues were emptied instead of worked off, and what holds them when nothing moves. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { QueueFSError } from "../../../src/core/errors.ts";
import { parseQueueName, type Receipt } from "../../../src/core/names.ts";
import { type Stall, type WaitOptions, waitComplete } from "../../../src/queue/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { interpose } from "../../support/interpose.ts";

const A = parseQueueName("a");
const B = parseQueueName("b");
const BOTH = { queues: [A, B] };
const ONLY_A = { queues: [A] };
const DATA = new TextEncoder().encode("work");
const COMPLETE = { pending: 0, processing: 0 };
const STALL_MS = 1_000;

let clock: ManualClock;
let backend: Backend;

beforeEach(async () => {
  clock = new ManualClock();
  backend = await openMemory({ clock, sweepIntervalMs: 3_600_000 });
  await backend.createQueue(A);
  await backend.createQueue(B);
});

afterEach(() => backend.close());

async function take(leaseMs = 600_000): Promise<Receipt> {
  const [delivered] = await backend.dequeue(A, { leaseMs });
  if (delivered === undefined) throw new Error("nothing to take");
  return delivered.receipt;
}

/** A wait, begun and looked once. */
async function begin(selection: Parameters<typeof waitComplete>[1], options: WaitOptions = {}, on = backend) {
  const result = waitComplete(on, selection, { clock, ...options });
  result.catch(() => {});
  await clock.advanceAndSettle(0);
  return { result };
}

describe("cleared", () => {
  test.each([BOTH, { under: "" } as const])("is told apart from work that was done: %j", async (selection) => {
    await backend.enqueue(A, [{ data: DATA }, { data: DATA }, { data: DATA }, { data: DATA }]);
    await backend.ack(A, [{ receipt: await take() }]);
    await take();
    const wait = await begin(selection);
    await backend.clear(A);
    await clock.advanceAndSettle(100);
    expect(await wait.result).toStrictEqual([
      { queue: "a", ...COMPLETE, cleared: 3 },
      { queue: "b", ...COMPLETE },
    ]);
    const later = await waitComplete(backend, selection);
    expect(later).toStrictEqual([
      { queue: "a", ...COMPLETE },
      { queue: "b", ...COMPLETE },
    ]);
  });

  test("is told also when it happens between the call and the first look", async () => {
    await backend.enqueue(A, [{ data: DATA }]);
    const wait = waitComplete(backend, ONLY_A);
    await backend.clear(A);
    expect(await wait).toStrictEqual([{ queue: "a", ...COMPLETE, cleared: 1 }]);
  });

  test("is told up to now as well, with what came later still there", async () => {
    await backend.enqueue(A, [{ data: DATA }]);
    const wait = await begin(ONLY_A, { upTo: "now" });
    // In one turn, so that no look falls between the two.
    await Promise.all([backend.clear(A), backend.enqueue(A, [{ data: DATA }])]);
    await clock.advanceAndSettle(100);
    expect(await wait.result).toStrictEqual([{ queue: "a", pending: 1, processing: 0, cleared: 1 }]);
  });

  test("is left out where it cannot be read, and neither fails the wait nor holds up its deadline", async () => {
    let reads = 0;
    const odd = interpose(backend, {
      statistics: () => {
        reads += 1;
        return reads === 1 ? Promise.reject(new QueueFSError("store-busy", "busy")) : new Promise(() => {});
      },
    });
    const wait = await begin(ONLY_A, { timeoutMs: 50 }, odd);
    await clock.advanceAndSettle(50);
    expect(await wait.result).toStrictEqual([{ queue: "a", ...COMPLETE }]);
    expect(reads).toBe(2);
  });
});

describe("stalls", () => {
  async function watch(options: WaitOptions = {}): Promise<{ stalls: Stall[]; result: Promise<unknown> }> {
    const stalls: Stall[] = [];
    const { result } = await begin(BOTH, { stallMs: STALL_MS, onStall: (stall) => void stalls.push(stall), ...options });
    return { stalls, result };
  }

  test("none while anything moves, however slowly, and one when it no longer does", async () => {
    await backend.enqueue(
      A,
      Array.from({ length: 5 }, () => ({ data: DATA })),
    );
    const { stalls } = await watch();
    for (let step = 0; step < 4; step += 1) {
      await clock.advanceAndSettle(STALL_MS * 0.9);
      await backend.ack(A, [{ receipt: await take() }]);
    }
    expect(stalls).toEqual([]);
    await clock.advanceAndSettle(STALL_MS * 1.5);
    expect(stalls).toHaveLength(1);
    await clock.advanceAndSettle(STALL_MS * 3);
    expect(stalls.length).toBeGreaterThanOrEqual(3);
    expect(stalls.at(-1)?.unmovedMs).toBeGreaterThanOrEqual(STALL_MS * 3.5);
    expect(stalls[0]?.unmovedMs).toBeGreaterThanOrEqual(STALL_MS);
  });

  test("unattended: available, and nobody takes it", async () => {
    await backend.enqueue(A, [{ data: DATA }, { data: DATA, delayMs: 3_600_000 }]);
    const { stalls } = await watch();
    await clock.advanceAndSettle(STALL_MS * 2);
    const [stall] = stalls;
    expect(stall?.queues).toEqual([
      { queue: "a", pending: 2, processing: 0, delayed: 1, cause: "unattended", oldestPendingMs: expect.any(Number) as number },
    ]);
  });

  test("held: somebody has it, and renews its lease; the age says for how long", async () => {
    await backend.enqueue(A, [{ data: DATA }, { data: DATA }]);
    const receipt = await take(STALL_MS);
    const { stalls } = await watch();
    for (let renewal = 0; renewal < 10; renewal += 1) {
      await clock.advanceAndSettle(STALL_MS / 3);
      await backend.extend(A, [{ receipt, leaseMs: STALL_MS }]);
    }
    expect(stalls.map(({ queues }) => queues[0]?.cause)).toEqual(stalls.map(() => "held"));
    expect(stalls.length).toBeGreaterThanOrEqual(2);
    expect(stalls.at(-1)?.queues[0]?.oldestProcessingMs).toBeGreaterThanOrEqual(STALL_MS * 2);
  });

  test("orphaned: its lease is over, and nobody has recovered it", async () => {
    await backend.enqueue(A, [{ data: DATA }]);
    await take(500);
    const { stalls } = await watch();
    await clock.advanceAndSettle(STALL_MS * 2);
    expect(stalls[0]?.queues).toMatchObject([{ queue: "a", pending: 0, processing: 1, cause: "orphaned" }]);
    await backend.recover();
    await clock.advanceAndSettle(STALL_MS * 2);
    expect(stalls.at(-1)?.queues).toMatchObject([{ pending: 1, processing: 0, cause: "unattended" }]);
  });

  test("delayed: only time is needed", async () => {
    await backend.enqueue(A, [{ data: DATA, delayMs: 3_600_000 }]);
    const { stalls } = await watch();
    await clock.advanceAndSettle(STALL_MS * 2);
    expect(stalls[0]?.queues).toMatchObject([{ pending: 1, delayed: 1, cause: "delayed" }]);
  });

  test("what onStall throws ends the wait, and an end leaves no timer", async () => {
    await backend.enqueue(A, [{ data: DATA }]);
    const before = clock.timerCount;
    const thrown = new Error("enough");
    const { result } = await watch({
      onStall: () => {
        throw thrown;
      },
    });
    await clock.advanceAndSettle(STALL_MS * 2);
    await expect(result).rejects.toBe(thrown);
    expect(clock.timerCount).toBe(before);
  });

  test.each([{ stallMs: 1 }, { onStall: 5 }])("options %s are refused", async (options) => {
    await expect(waitComplete(backend, ONLY_A, options as WaitOptions)).rejects.toMatchObject({ code: "invalid-argument" });
  });
});
