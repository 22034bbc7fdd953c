/** Calls of one turn share a transaction, and those of one kind are done together: each must get the answer that it would get alone. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import { parseChosenMessageId, parseQueueName, type Receipt } from "../../../src/core/names.ts";
import { assertSound, ManualClock, SeededRandom } from "../../../src/testing/index.ts";

const JOBS = parseQueueName("jobs");
const MORE = parseQueueName("more");
const NONE = parseQueueName("none");
const clock = new ManualClock();
let folder: string;
let backend: Backend;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-together-"));
  backend = await openSqlite({ path: join(folder, "queue.db"), durability: "normal", clock, bootId: "test", sweepIntervalMs: 3_600_000 });
  await backend.createQueue(JOBS);
  await backend.createQueue(MORE);
});
afterEach(async () => {
  await assertSound(backend);
  await backend.close();
  await rm(folder, { recursive: true });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const texts = (messages: readonly DeliveredMessage[]): string[] => messages.map(({ data }) => new TextDecoder().decode(data));
const put = (from: number, count: number) =>
  backend.enqueue(
    JOBS,
    Array.from({ length: count }, (_, index) => ({ data: bytes(String(from + index)) })),
  );

test("dequeues of one turn share out what there is, in order, and the last get nothing", async () => {
  await put(0, 10);
  const answers = await Promise.all([
    backend.dequeue(JOBS, { limit: 3 }),
    backend.dequeue(JOBS),
    backend.dequeue(MORE),
    backend.dequeue(JOBS, { limit: 4, owner: "receipt" }),
    backend.dequeue(NONE).catch((error: unknown) => error),
    backend.dequeue(JOBS, { limit: 5 }),
    backend.dequeue(JOBS),
  ]);
  expect(answers[4]).toMatchObject({ code: "queue-not-found" });
  expect([0, 1, 2, 3, 5, 6].map((index) => texts(answers[index] as DeliveredMessage[]))).toEqual([
    ["0", "1", "2"],
    ["3"],
    [],
    ["4", "5", "6", "7"],
    ["8", "9"],
    [],
  ]);
});

test("messages given back, delayed and untouched come in their order through dequeues of one turn", async () => {
  await put(0, 6);
  const held = await backend.dequeue(JOBS, { limit: 4 });
  await backend.nack(JOBS, [{ receipt: held[1]?.receipt as Receipt }, { receipt: held[3]?.receipt as Receipt, delayMs: 1_000 }]);
  await backend.enqueue(JOBS, [{ data: bytes("late"), delayMs: 1_000 }]);
  clock.advance(1_000);
  const answers = await Promise.all(Array.from({ length: 6 }, () => backend.dequeue(JOBS)));
  expect(answers.map((answer) => texts(answer).join())).toEqual(["1", "3", "4", "5", "late", ""]);
});

test("leases that ended beyond the bound of one recovery are found by dequeues of one turn", async () => {
  await put(0, 1_200);
  await backend.dequeue(JOBS, { limit: 1_000, leaseMs: 1_000 });
  await backend.dequeue(JOBS, { limit: 200, leaseMs: 1_000 });
  clock.advance(1_000);
  const answers = await Promise.all(Array.from({ length: 4 }, () => backend.dequeue(JOBS, { limit: 400 })));
  expect(answers.map((answer) => answer.length)).toEqual([400, 400, 400, 0]);
  expect(new Set(answers.flat().map(({ id }) => id)).size).toBe(1_200);
});

test("acks of one turn are each answered for themselves: current, stale, twice, with chosen ids, of queues that are not there", async () => {
  await put(0, 8);
  await backend.enqueue(JOBS, [{ data: bytes("8"), id: parseChosenMessageId("eight") }]);
  await put(9, 11);
  const held = await backend.dequeue(JOBS, { limit: 20 });
  const receipt = (index: number): Receipt => held[index]?.receipt as Receipt;
  // The message of place 5 is delivered anew, so that its first receipt is stale in the middle of a stretch; 12 is pending.
  await backend.release(JOBS, [receipt(5), receipt(12)]);
  const [again] = await backend.dequeue(JOBS);
  const answers = await Promise.all([
    ...Array.from({ length: 16 }, (_, index) => backend.ack(JOBS, [{ receipt: receipt(index) }])),
    backend.ack(JOBS, [{ receipt: receipt(3) }]),
    backend.ack(NONE, [{ receipt: receipt(16) }]).catch((error: unknown) => error as { code: string }),
    backend.ack(MORE, [{ receipt: receipt(16) }]),
    backend.ack(JOBS, [{ receipt: "r-none" as Receipt }, { receipt: receipt(17) }, { receipt: receipt(17) }, { receipt: receipt(19) }]),
  ]);
  const outcomes = answers.map((answer) => (Array.isArray(answer) ? answer.map((one) => one.outcome).join() : answer.code));
  expect(outcomes).toEqual([
    ...Array.from({ length: 16 }, (_, index) => (index === 5 || index === 12 ? "stale" : "acked")),
    "stale",
    "queue-not-found",
    "stale",
    "stale,acked,stale,acked",
  ]);
  expect(await backend.status(JOBS)).toEqual({ pending: 1, processing: 3 });
  expect((await backend.statistics(JOBS)).acked).toBe(16);
  expect((await backend.messages(JOBS)).items.map(({ data }) => new TextDecoder().decode(data))).toEqual(["5", "12", "16", "18"]);
  expect(await backend.ack(JOBS, [{ receipt: again?.receipt as Receipt }])).toEqual([{ outcome: "acked", forwarded: [] }]);
  expect((await backend.enqueue(JOBS, [{ data: bytes("8"), id: parseChosenMessageId("eight") }]))[0]?.outcome).toBe("repeated");
});

test("tasks count the acks of one turn, and end with the last", async () => {
  const ids = [];
  for (let index = 0; index < 5; index += 1) {
    const { task } = await backend.createTask({ type: "t" }, [
      { queue: JOBS, messages: [bytes("a"), bytes("b")].map((data) => ({ data })) },
    ]);
    ids.push(task.id);
  }
  const held = await backend.dequeue(JOBS, { limit: 10 });
  await Promise.all(held.slice(0, 9).map(({ receipt }) => backend.ack(JOBS, [{ receipt }])));
  const statuses = await Promise.all(ids.map(async (id) => (await backend.task(id)).status));
  expect(statuses).toEqual(["completed", "completed", "completed", "completed", "running"]);
});

test("what one caller does in one turn without waiting happens in its order between the kinds", async () => {
  const made = parseQueueName("made/now");
  void backend.createQueue(made);
  void backend.enqueue(made, [{ data: bytes("x") }]);
  expect(texts(await backend.dequeue(made))).toEqual(["x"]);
});

test("random calls at once leave the counts right and hand out each message once", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = new SeededRandom(seed);
  const held: DeliveredMessage[] = [];
  const acked = new Set<string>();
  let enqueued = 0;
  for (let turn = 0; turn < 60; turn += 1) {
    const calls: Promise<unknown>[] = [];
    for (let count = Math.floor(random.fraction() * 40); count >= 0; count -= 1) {
      const kind = random.fraction();
      if (kind < 0.3) {
        enqueued += 1;
        calls.push(put(enqueued, 1));
      } else if (kind < 0.65) {
        calls.push(
          backend.dequeue(JOBS, { limit: 1 + Math.floor(random.fraction() * 3) }).then((messages) => {
            held.push(...messages);
          }),
        );
      } else {
        const [message] = held.splice(Math.floor(random.fraction() * held.length), 1);
        if (message === undefined) continue;
        const isGivenBack = random.fraction() < 0.15;
        const call = isGivenBack ? backend.release(JOBS, [message.receipt]) : backend.ack(JOBS, [{ receipt: message.receipt }]);
        calls.push(
          call.then(([answer]) => {
            expect(isGivenBack ? answer : (answer as { outcome: string }).outcome, `seed ${seed}`).toBe(isGivenBack ? "released" : "acked");
            if (isGivenBack) return;
            expect(acked.has(message.id), `seed ${seed}`).toBe(false);
            acked.add(message.id);
          }),
        );
      }
    }
    await Promise.all(calls);
    const { pending, processing } = await backend.status(JOBS);
    expect({ processing, all: pending + processing + acked.size }, `seed ${seed}`).toEqual({ processing: held.length, all: enqueued });
  }
});

test("a producer that never awaits is refused before it fills the memory, and what was taken is stored", async () => {
  const bounded = await openSqlite({ path: join(folder, "queue.db"), durability: "normal", maxWaitingBytes: 64 * 1024, onError: () => {} });
  const data = new Uint8Array(1024);
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, () =>
      bounded.enqueue(JOBS, [{ data }]).then(
        () => "stored",
        (error: unknown) => (error as { code: string }).code,
      ),
    ),
  );
  const stored = outcomes.filter((outcome) => outcome === "stored").length;
  expect(new Set(outcomes)).toEqual(new Set(["stored", "store-busy"]));
  expect(stored).toBeGreaterThan(40);
  expect((await bounded.status(JOBS)).pending).toBe(stored);
  // Then it takes more again.
  await bounded.enqueue(JOBS, [{ data }]);
  await bounded.close();
});
