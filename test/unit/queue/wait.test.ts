/** Waiting: what it judges by, what wakes it, how it ends, and that it leaves nothing behind. */

import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend, ChangeListener } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { isQueueFSError, QueueFSError } from "../../../src/core/errors.ts";
import { DEFAULT_WAIT_POLL_MS, WAIT_GAP_MS } from "../../../src/core/limits.ts";
import type { QueueStatus } from "../../../src/core/message.ts";
import { parseQueueName, type Receipt } from "../../../src/core/names.ts";
import { isAllComplete, judgeComplete, type WaitOptions, WaitTimeoutError, waitComplete } from "../../../src/queue/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { interpose } from "../../support/interpose.ts";

const A = parseQueueName("a");
const B = parseQueueName("b");
const BOTH = { queues: [A, B] };
const ONLY_A = { queues: [A] };
const DATA = new TextEncoder().encode("work");
const COMPLETE = { pending: 0, processing: 0 };

let backend: Backend;

beforeEach(async () => {
  backend = await openMemory();
  await backend.createQueue(A);
  await backend.createQueue(B);
});

afterEach(() => backend.close());

async function put(queue = A): Promise<void> {
  await backend.enqueue(queue, [{ data: DATA }]);
}

async function take(queue = A): Promise<Receipt> {
  const [delivered] = await backend.dequeue(queue);
  if (delivered === undefined) throw new Error("nothing to take");
  return delivered.receipt;
}

/** A wait whose snapshots can be awaited one by one. */
function watched(selection: Parameters<typeof waitComplete>[1], options: WaitOptions = {}, on = backend) {
  const seen: (readonly QueueStatus[])[] = [];
  let wake = (): void => {};
  const settled = { value: false };
  const result = waitComplete(on, selection, {
    ...options,
    onProgress(statuses) {
      seen.push(statuses);
      wake();
    },
  }).finally(() => {
    settled.value = true;
  });
  result.catch(() => {});
  const until = async (condition: (statuses: readonly QueueStatus[]) => boolean): Promise<void> => {
    while (!seen.some(condition)) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { result, seen, settled, until };
}

/** The backend with something around every look at it. */
function around(on: Backend, look: <Answer>(real: () => Promise<Answer>) => Promise<Answer>): Backend {
  return interpose(on, {
    statuses: (selection) => look(() => backend.statuses(selection)),
    reached: (mark) => look(() => backend.reached(mark)),
  });
}

/** The backend with a count of live subscriptions and of looks, and hints that only the test gives. */
function handHinted(): {
  hinted: Backend;
  hint: ChangeListener;
  listeners: Set<ChangeListener>;
  looks: { now: number; most: number; all: number };
} {
  const listeners = new Set<ChangeListener>();
  const looks = { now: 0, most: 0, all: 0 };
  const unhinted = interpose(backend, {
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  const hinted = around(unhinted, async (real) => {
    looks.all += 1;
    looks.now += 1;
    looks.most = Math.max(looks.most, looks.now);
    try {
      return await real();
    } finally {
      looks.now -= 1;
    }
  });
  const hint: ChangeListener = (queues) => {
    for (const listener of listeners) listener(queues);
  };
  return { hinted, hint, listeners, looks };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => expect.fail(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
}

describe("what it judges", () => {
  test("a complete queue at once, with the snapshot", async () => {
    expect(await waitComplete(backend, ONLY_A)).toEqual([{ queue: "a", ...COMPLETE }]);
    expect(await waitComplete(backend, { under: "" })).toEqual([
      { queue: "a", ...COMPLETE },
      { queue: "b", ...COMPLETE },
    ]);
  });

  test("processing is not complete, for whoever asks", async () => {
    await put();
    const receipt = await take();
    expect(await isAllComplete(backend, BOTH)).toBe(false);
    const wait = watched(BOTH);
    await wait.until((statuses) => statuses[0]?.processing === 1 && statuses[0].pending === 0);
    expect(wait.settled.value).toBe(false);
    await backend.ack(A, [{ receipt }]);
    const statuses = await wait.result;
    expect(statuses).toEqual([
      { queue: "a", ...COMPLETE },
      { queue: "b", ...COMPLETE },
    ]);
    expect(wait.seen.at(-1)).toBe(statuses);
    expect(await isAllComplete(backend, BOTH)).toBe(true);
    expect(await judgeComplete(backend, ONLY_A)).toEqual({ complete: true, statuses: [{ queue: "a", ...COMPLETE }] });
  });

  test("work that is handed from queue to queue is never complete in between", async () => {
    await put();
    const wait = watched(BOTH);
    for (let round = 0; round < 50; round += 1) {
      const [from, to] = round % 2 === 0 ? [A, B] : [B, A];
      const receipt = await take(from);
      await backend.ack(from, [{ receipt, forward: [{ queue: to, messages: [{ data: DATA }] }] }]);
      if (round % 10 === 0) await turns();
    }
    expect(wait.settled.value).toBe(false);
    await backend.ack(A, [{ receipt: await take(A) }]);
    await wait.result;
    for (const statuses of wait.seen.slice(0, -1)) {
      expect(statuses.reduce((sum, one) => sum + one.pending + one.processing, 0)).toBe(1);
    }
  });

  test("up to now: what was there before, and not what comes later", async () => {
    await put();
    const wait = watched(ONLY_A, { upTo: "now" });
    await wait.until(() => true);
    await put();
    await backend.ack(A, [{ receipt: await take() }]);
    expect(await wait.result).toEqual([{ queue: "a", pending: 1, processing: 0 }]);
    const later = watched(ONLY_A, { upTo: "now" });
    await later.until(() => true);
    const receipt = await take();
    await backend.nack(A, [{ receipt }]);
    await turns();
    expect(later.settled.value).toBe(false);
    await backend.clear(A);
    await later.result;
  });

  test("each of many waiters once, over many rounds, however close the last acks are", async () => {
    for (let round = 0; round < 200; round += 1) {
      await backend.enqueue(A, [{ data: DATA }, { data: DATA }]);
      const receipts = await backend.dequeue(A, { limit: 2 });
      let resolved = 0;
      const waits = Array.from({ length: 3 }, async () => {
        const statuses = await waitComplete(backend, ONLY_A, { timeoutMs: 10_000 });
        resolved += 1;
        return statuses;
      });
      await Promise.all(receipts.map(({ receipt }) => backend.ack(A, [{ receipt }])));
      expect(await Promise.all(waits)).toEqual(waits.map(() => [{ queue: "a", ...COMPLETE }]));
      expect(resolved).toBe(3);
    }
  });
});

describe("how it ends otherwise", () => {
  test("timeoutMs 0 judges once", async () => {
    await put();
    const error = await failure(waitComplete(backend, ONLY_A, { timeoutMs: 0 }));
    expect(error).toBeInstanceOf(WaitTimeoutError);
    expect(error).toMatchObject({
      code: "timed-out",
      name: "WaitTimeoutError",
      statuses: [{ queue: "a", pending: 1, processing: 0 }],
      timeoutMs: 0,
    });
    await backend.clear(A);
    expect(await waitComplete(backend, ONLY_A, { timeoutMs: 0 })).toEqual([{ queue: "a", ...COMPLETE }]);
  });

  test("a timeout carries the last snapshot and what was waited for, and touches nothing", async () => {
    await put();
    await put();
    const receipt = await take();
    const clock = new ManualClock();
    const wait = watched(BOTH, { timeoutMs: 50, clock });
    await wait.until(() => true);
    await clock.advanceAndSettle(49);
    expect(wait.settled.value).toBe(false);
    await clock.advanceAndSettle(1);
    const error = await failure(wait.result);
    expect(error).toMatchObject({
      code: "timed-out",
      timeoutMs: 50,
      selection: BOTH,
      statuses: [
        { queue: "a", pending: 1, processing: 1 },
        { queue: "b", ...COMPLETE },
      ],
    });
    expect(String(error)).toContain("1 pending, 1 processing");
    expect(isQueueFSError(error, "timed-out")).toBe(true);
    expect(await backend.ack(A, [{ receipt }])).toMatchObject([{ outcome: "acked" }]);
  });

  test("really after the time, by the clock of the host", async () => {
    await put();
    const startedMs = performance.now();
    await expect(waitComplete(backend, ONLY_A, { timeoutMs: 50 })).rejects.toBeInstanceOf(WaitTimeoutError);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(49);
  });

  test.each([-1, Number.NaN, Number.NEGATIVE_INFINITY, "30", null, {}])("timeoutMs %s is refused", async (timeoutMs) => {
    const error = await failure(waitComplete(backend, ONLY_A, { timeoutMs: timeoutMs as number }));
    expect(isQueueFSError(error, "invalid-argument")).toBe(true);
  });

  test.each([{ timeout: 5 }, { upTo: "then" }, { pollIntervalMs: 0 }, { clock: 1 }, 5, "30"])("options %s are refused", async (options) => {
    const error = await failure(waitComplete(backend, ONLY_A, options as WaitOptions));
    expect(isQueueFSError(error, "invalid-argument")).toBe(true);
  });

  test("a clear completes it", async () => {
    await put();
    await take();
    await put();
    const wait = watched(ONLY_A);
    await wait.until((statuses) => statuses[0]?.processing === 1);
    await backend.clear(A);
    expect(await wait.result).toMatchObject([{ queue: "a", ...COMPLETE }]);
  });

  test("a removed queue rejects promptly, also up to now, and a missing one at once", async () => {
    for (const options of [{}, { upTo: "now" }] as const) {
      await put();
      const wait = watched(BOTH, options);
      await wait.until(() => true);
      await backend.removeQueue(A);
      expect(isQueueFSError(await failure(wait.result), "queue-not-found")).toBe(true);
      expect(isQueueFSError(await failure(waitComplete(backend, BOTH, options)), "queue-not-found")).toBe(true);
      await backend.createQueue(A);
    }
    expect(await waitComplete(backend, BOTH)).toHaveLength(2);
  });

  test("a queue that is removed and made anew between two looks is not taken for done", async () => {
    const { hinted } = handHinted();
    const clock = new ManualClock();
    await put();
    const wait = watched(ONLY_A, { clock }, hinted);
    await wait.until(() => true);
    await backend.removeQueue(A);
    await backend.createQueue(A);
    await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS);
    expect(isQueueFSError(await failure(wait.result), "queue-not-found")).toBe(true);
  });

  test("an abort rejects with the caller's reason, before and during", async () => {
    await put();
    const reason = { why: "changed my mind" };
    await expect(waitComplete(backend, ONLY_A, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const wait = watched(ONLY_A, { signal: controller.signal });
    await wait.until(() => true);
    controller.abort(reason);
    await expect(wait.result).rejects.toBe(reason);
  });

  test("what a callback throws ends it", async () => {
    const thrown = new Error("no");
    const throwing = (): never => {
      throw thrown;
    };
    await expect(waitComplete(backend, ONLY_A, { onProgress: throwing })).rejects.toBe(thrown);
    const away = around(backend, () => Promise.reject(new QueueFSError("store-busy", "busy")));
    await expect(waitComplete(away, ONLY_A, { onError: throwing })).rejects.toBe(thrown);
  });
});

describe("a store that fails", () => {
  test.each(["store-busy", "store-unreachable", "outcome-unknown"] as const)("%s is ridden out, told, and never complete", async (code) => {
    const clock = new ManualClock();
    const told: unknown[] = [];
    let isAway = true;
    const gone = new QueueFSError(code, "away");
    const away = around(backend, (real) => (isAway ? Promise.reject(gone) : real()));
    const wait = watched(ONLY_A, { clock, onError: (error) => told.push(error) }, away);
    for (let look = 0; look < 5; look += 1) await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS);
    expect(told.length).toBeGreaterThanOrEqual(5);
    expect(told.every((error) => error === gone)).toBe(true);
    expect(wait.settled.value).toBe(false);
    isAway = false;
    await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS);
    expect(await wait.result).toEqual([{ queue: "a", ...COMPLETE }]);
  });

  test("at the very first step is ridden out as well", async () => {
    const clock = new ManualClock();
    await put();
    let marks = 0;
    const busy = interpose(backend, {
      mark(selection) {
        marks += 1;
        return marks < 3 ? Promise.reject(new QueueFSError("store-busy", "busy")) : backend.mark(selection);
      },
    });
    const wait = watched(ONLY_A, { upTo: "now", clock }, busy);
    await clock.advanceAndSettle(3 * DEFAULT_WAIT_POLL_MS);
    expect([marks, wait.seen.length > 0, wait.settled.value]).toEqual([3, true, false]);
    await backend.clear(A);
    await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS);
    await wait.result;
  });

  test("for longer than the time allowed is a timeout with its cause", async () => {
    const gone = new QueueFSError("store-unreachable", "away");
    const away = around(backend, () => Promise.reject(gone));
    expect(await failure(waitComplete(away, ONLY_A, { timeoutMs: 0 }))).toMatchObject({ code: "timed-out", cause: gone });
    const error = await failure(waitComplete(away, ONLY_A, { timeoutMs: 30 }));
    expect(error).toMatchObject({ code: "timed-out", cause: gone });
    expect((error as WaitTimeoutError).statuses).toBeUndefined();
  });

  test("without an answer at all does not hold up deadline or abort", async () => {
    const { hinted, listeners } = handHinted();
    const silent = around(hinted, () => new Promise(() => {}));
    const clock = new ManualClock();
    const timed = failure(waitComplete(silent, ONLY_A, { timeoutMs: 50, clock }));
    await clock.advanceAndSettle(50);
    expect(await timed).toBeInstanceOf(WaitTimeoutError);
    const controller = new AbortController();
    const aborted = failure(waitComplete(silent, ONLY_A, { signal: controller.signal }));
    controller.abort("enough");
    expect(await aborted).toBe("enough");
    expect([listeners.size, clock.timerCount]).toEqual([0, 0]);
  });

  test.each(["store-corrupt", "closed", "internal"] as const)("with %s ends the wait with that", async (code) => {
    const broken = new QueueFSError(code, "broken");
    const failing = around(backend, () => Promise.reject(broken));
    await expect(waitComplete(failing, ONLY_A)).rejects.toBe(broken);
  });
});

describe("what wakes it", () => {
  test("a hint about one of its queues, and no other", async () => {
    const { hinted, hint, looks } = handHinted();
    const clock = new ManualClock();
    await put();
    const named = watched(ONLY_A, { clock }, hinted);
    const under = watched({ under: A }, { clock }, hinted);
    await clock.advanceAndSettle(WAIT_GAP_MS);
    expect(looks.all).toBe(2);
    hint(new Set([B, parseQueueName("a_b")]));
    await clock.advanceAndSettle(WAIT_GAP_MS);
    expect(looks.all).toBe(2);
    hint(new Set([B, parseQueueName("a/b")]));
    await clock.advanceAndSettle(WAIT_GAP_MS);
    expect(looks.all).toBe(3);
    hint(new Set([B, A]));
    await clock.advanceAndSettle(0);
    expect(looks.all).toBe(5);
    await backend.clear(A);
    hint(undefined);
    await clock.advanceAndSettle(WAIT_GAP_MS);
    await Promise.all([named.result, under.result]);
  });

  test("a slow poll when every hint is lost", async () => {
    const { hinted } = handHinted();
    const clock = new ManualClock();
    await put();
    const wait = watched(ONLY_A, { clock }, hinted);
    await clock.advanceAndSettle(0);
    await backend.clear(A);
    await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS - 1);
    expect(wait.settled.value).toBe(false);
    await clock.advanceAndSettle(1);
    await wait.result;
  });

  test("a hint that comes while it looks is not lost", async () => {
    const { hinted, hint } = handHinted();
    const clock = new ManualClock();
    await put();
    let isFirst = true;
    const racing = around(hinted, async (real) => {
      const answer = await real();
      if (isFirst) {
        isFirst = false;
        await backend.clear(A);
        hint(undefined);
      }
      return answer;
    });
    const wait = watched(ONLY_A, { clock }, racing);
    await clock.advanceAndSettle(WAIT_GAP_MS);
    expect(wait.seen).toEqual([[{ queue: "a", pending: 1, processing: 0 }], [{ queue: "a", ...COMPLETE }]]);
    await wait.result;
  });

  test("a storm of hints, with one read in the air at most and few in all", async () => {
    const { hinted, hint, looks } = handHinted();
    const clock = new ManualClock();
    await put();
    const wait = watched(ONLY_A, { clock }, hinted);
    for (let burst = 0; burst < 100; burst += 1) {
      for (let index = 0; index < 100; index += 1) hint(undefined);
      await clock.advanceAndSettle(1);
    }
    expect(looks.most).toBe(1);
    expect(looks.all).toBeGreaterThanOrEqual(100 / WAIT_GAP_MS);
    expect(looks.all).toBeLessThanOrEqual(100 / WAIT_GAP_MS + 7);
    await backend.clear(A);
    await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS);
    await wait.result;
  });
});

test("nothing is left behind, however it ends", async () => {
  const { hinted, listeners } = handHinted();
  const clock = new ManualClock();
  const controller = new AbortController();
  const endings: ((wait: ReturnType<typeof watched>) => Promise<unknown>)[] = [
    async () => {
      await backend.clear(A);
      await clock.advanceAndSettle(DEFAULT_WAIT_POLL_MS);
    },
    () => clock.advanceAndSettle(60_000),
    async () => controller.abort("enough"),
  ];
  for (const end of endings) {
    await put();
    const wait = watched(ONLY_A, { clock, signal: controller.signal, timeoutMs: 60_000 }, hinted);
    await wait.until(() => true);
    await turns();
    expect([listeners.size, getEventListeners(controller.signal, "abort").length]).toEqual([1, 1]);
    expect(clock.timerCount).toBe(2);
    await end(wait);
    await wait.result.catch(() => {});
    expect([listeners.size, getEventListeners(controller.signal, "abort").length, clock.timerCount]).toEqual([0, 0, 0]);
  }
});

test("the process stays alive while it waits, and ends by itself afterwards", async () => {
  // Everything else that is open lets the process end: without care, node would leave the wait unsettled and exit with 13.
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "wait-alone.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [exitCode] = (await once(child, "close")) as [number | null];
  expect([output, exitCode]).toEqual(["timed-out\n", 0]);
});
