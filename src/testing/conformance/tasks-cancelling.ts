/** Cancelling tasks, sealing them, producers that go away, listing and keeping them. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import {
  ack,
  bytes,
  content,
  counts,
  empty,
  everyMessage,
  JOBS,
  make,
  name,
  put,
  recoverAll,
  refused,
  take,
  takeTexts,
  withId,
} from "./steps.ts";
import { assertTask, batch, begin, beginOpen, cancelAll, everyTask, putFor, taskId } from "./task-steps.ts";

const NEXT = name("next");

/** The cases of the section "cancelling tasks". */
export const taskCancelCases = section("cancelling tasks", [
  {
    name: "pending messages go at once, others of the queue stay in their order",
    async run(context) {
      const { backend } = context;
      await make(backend, JOBS, NEXT);
      await put(backend, JOBS, "1");
      const { task } = await begin(backend, [batch(JOBS, "x", "y"), batch(NEXT, "z")]);
      await put(backend, JOBS, "2");
      await backend.enqueue(JOBS, [
        { ...withId("chosen", "x2"), task: task.id },
        { data: bytes("x3"), delayMs: context.spanMs, task: task.id },
        withId("kept", "3"),
      ]);
      const cancelled = await backend.cancelTask(task.id, { reason: "not wanted" });
      assert.equal(cancelled.removed, 5);
      assert.equal(cancelled.more, false);
      const ended = await assertTask(backend, task.id, "cancelled", { total: 5, cancelled: 5 });
      assert.deepEqual(ended.error, { reason: "not wanted" });
      await counts(backend, JOBS, 3, 0);
      await counts(backend, NEXT, 0, 0);
      assert.deepEqual((await everyMessage(backend, JOBS)).map(content), ["1", "2", "3"]);
      assert.equal((await backend.statistics(JOBS)).cleared, 4);
      await put(backend, JOBS, "4");
      assert.deepEqual(await takeTexts(backend, JOBS), ["1", "2", "3", "4"]);
    },
  },
  {
    name: "messages in processing keep it cancelling until each is settled, whichever way",
    async run(context) {
      const { backend } = context;
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "ack", "nack", "release", "give up", "lease", "pending")]);
      const [acked, nacked, released, given] = await backend.dequeue(JOBS, { limit: 4 });
      await take(backend, JOBS, { leaseMs: context.spanMs });
      assert.ok(acked && nacked && released && given);
      assert.deepEqual((await backend.cancelTask(task.id)).removed, 1);
      await assertTask(backend, task.id, "cancelling", { cancelled: 1, unacked: 5 });
      await empty(backend, JOBS);
      await ack(backend, JOBS, acked);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: nacked.receipt, delayMs: 5_000 }]), ["cancelled"]);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: nacked.receipt }]), ["stale"]);
      assert.deepEqual(await backend.release(JOBS, [released.receipt]), ["cancelled"]);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: given.receipt, giveUp: true }]), ["dead"]);
      await assertTask(backend, task.id, "cancelling", { done: 1, failed: 1, cancelled: 3, unacked: 1 });
      await context.passTime(context.spanMs + 1);
      await recoverAll(backend);
      await assertTask(backend, task.id, "cancelled", { total: 6, done: 1, failed: 1, cancelled: 4 });
      await counts(backend, JOBS, 0, 0);
      await empty(backend, JOBS);
    },
  },
  {
    name: "a lease that ends is seen to by the next dequeue too, and the message is not handed out again",
    async run(context) {
      const { backend } = context;
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "x")]);
      await put(backend, JOBS, "y");
      const held = await take(backend, JOBS, { leaseMs: context.spanMs });
      await cancelAll(backend, task.id);
      await context.passTime(context.spanMs + 1);
      assert.equal(content((await backend.peek(JOBS)) as never), "y");
      assert.deepEqual(await takeTexts(backend, JOBS), ["y"]);
      await assertTask(backend, task.id, "cancelled", { cancelled: 1 });
      assert.deepEqual(await backend.ack(JOBS, [{ receipt: held.receipt }]), [{ outcome: "stale" }]);
    },
  },
  {
    name: "from the first step on the task takes no more work and nothing of it is handed out",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const texts = Array.from({ length: 3_000 }, (_, index) => String(index));
      const { id, producer } = await beginOpen(backend, [batch(JOBS, ...texts)]);
      await put(backend, JOBS, "other");
      await put(backend, NEXT, "source");
      const source = await take(backend, NEXT);
      const first = await backend.cancelTask(id);
      assert.ok(first.removed > 0);
      assert.equal(first.task.sealed, true);
      await refused(() => putFor(backend, JOBS, id, "late"), "task-ended");
      const forward = [{ queue: JOBS, messages: [{ data: bytes("late"), task: id }] }];
      await refused(() => backend.ack(NEXT, [{ receipt: source.receipt, forward }]), "task-ended");
      assert.equal((await backend.sealTask(id, { producer })).outcome, "stale");
      assert.deepEqual(await backend.renewProducers([{ task: id, producer, leaseMs: 1000 }]), ["stale"]);
      const rest = first.more ? await cancelAll(backend, id) : { removed: 0, steps: 0 };
      assert.equal(first.removed + rest.removed, 3_000);
      await assertTask(backend, id, "cancelled", { cancelled: 3_000 });
      assert.deepEqual(await takeTexts(backend, JOBS), ["other"]);
    },
  },
  {
    name: "a dequeue between two steps of cancelling passes over what is left",
    async run({ backend }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 2_000 }, (_, index) => String(index));
      const { task } = await begin(backend, [batch(JOBS, ...texts)]);
      await put(backend, JOBS, "other");
      await backend.cancelTask(task.id);
      const got = [];
      // One dequeue may stop at a bound of its own; it never hands out what is cancelled.
      for (let tries = 0; tries < 100 && got.length === 0; tries += 1) got.push(...(await takeTexts(backend, JOBS)));
      assert.deepEqual(got, ["other"]);
      await cancelAll(backend, task.id);
      await assertTask(backend, task.id, "cancelled", { cancelled: 2_000 });
      await counts(backend, JOBS, 0, 1);
    },
  },
  {
    name: "recovery goes on with a cancelling that its caller left",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 3_000 }, (_, index) => String(index));
      const { task } = await begin(backend, [batch(JOBS, ...texts)]);
      const gone = await open();
      await gone.cancelTask(task.id);
      await gone.close();
      await recoverAll(backend);
      await assertTask(backend, task.id, "cancelled", { cancelled: 3_000 });
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "cancelling again changes nothing, and an ended task stays as it ended",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      const held = await take(backend, JOBS);
      await backend.cancelTask(task.id, { reason: "first" });
      const again = await backend.cancelTask(task.id, { reason: "second" });
      assert.equal(again.task.status, "cancelling");
      assert.deepEqual(again.task.error, { reason: "first" });
      await ack(backend, JOBS, held);
      const ended = await assertTask(backend, task.id, "cancelled", { done: 1 });
      assert.deepEqual((await backend.cancelTask(task.id)).task, ended);
      const completed = (await begin(backend)).task;
      assert.deepEqual((await backend.cancelTask(completed.id)).task, completed);
    },
  },
  {
    name: "messages given back before the cancelling go too",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a", "b", "c")]);
      const [a, b] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(a && b);
      await backend.nack(JOBS, [{ receipt: a.receipt, delayMs: 3_600_000 }]);
      await backend.release(JOBS, [b.receipt]);
      assert.equal((await backend.cancelTask(task.id)).removed, 3);
      await assertTask(backend, task.id, "cancelled", { cancelled: 3 });
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "a dead letter of a cancelling task is redriven for nobody",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a", "b")]);
      const [a, b] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(a && b);
      await backend.nack(JOBS, [{ receipt: a.receipt, giveUp: true }]);
      await backend.cancelTask(task.id);
      assert.deepEqual(await backend.redrive(JOBS, [a.id]), ["redriven"]);
      assert.equal((await take(backend, JOBS)).task, undefined);
      await ack(backend, JOBS, b);
      await assertTask(backend, task.id, "cancelled", { total: 2, failed: 1, done: 1 });
    },
  },
  {
    name: "a clear while cancelling ends it",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      await take(backend, JOBS);
      await backend.cancelTask(task.id);
      await backend.clear(JOBS);
      await assertTask(backend, task.id, "cancelled", { failed: 1 });
    },
  },
]);

/** The cases of the section "sealing tasks". */
export const taskSealCases = section("sealing tasks", [
  {
    name: "a task that is not sealed does not end between two of its producer's messages",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend);
      for (const text of ["1", "2", "3"]) {
        await putFor(backend, JOBS, id, text);
        await ack(backend, JOBS, await take(backend, JOBS));
        await assertTask(backend, id, "pending", { unacked: 0, done: Number(text) });
      }
      const sealed = await backend.sealTask(id, { producer });
      assert.equal(sealed.outcome, "sealed");
      assert.equal(sealed.task.status, "completed");
      assert.equal((await backend.sealTask(id, { producer })).outcome, "stale");
    },
  },
  {
    name: "sealed with work left, it ends with the last ack; its handlers may still add",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend, [batch(JOBS, "a")]);
      const held = await take(backend, JOBS);
      assert.equal((await backend.sealTask(id, { producer })).task.status, "running");
      await putFor(backend, JOBS, id, "child");
      await ack(backend, JOBS, held);
      await assertTask(backend, id, "running", { total: 2, unacked: 1 });
      await ack(backend, JOBS, await take(backend, JOBS));
      await assertTask(backend, id, "completed", { total: 2 });
    },
  },
  {
    name: "only its own producer seals, or whoever names none",
    async run({ backend }) {
      const { id } = await beginOpen(backend);
      const other = await beginOpen(backend);
      assert.equal((await backend.sealTask(id, { producer: other.producer })).outcome, "stale");
      await assertTask(backend, id, "pending");
      assert.equal((await backend.sealTask(id)).task.status, "completed");
    },
  },
  {
    name: "a producer that fails makes the task failed once its messages are settled",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend, [batch(JOBS, "a")]);
      const sealed = await backend.sealTask(id, { producer, error: "disk unreadable" });
      assert.equal(sealed.outcome, "sealed");
      assert.deepEqual(sealed.task.error, { reason: "disk unreadable" });
      await assertTask(backend, id, "pending", { unacked: 1 });
      await ack(backend, JOBS, await take(backend, JOBS));
      const ended = await assertTask(backend, id, "failed", { done: 1, failed: 0 });
      assert.deepEqual(ended.error, { reason: "disk unreadable" });
    },
  },
  {
    name: "a producer whose lease ends is taken for gone: the task fails once its messages are settled",
    async run(context) {
      const { backend, open } = context;
      await make(backend, JOBS);
      const lease = { producer: { leaseMs: 2 * context.spanMs, owner: "receipt" as const } };
      const { id, producer } = await beginOpen(backend, [batch(JOBS, "a")], lease);
      const idle = await beginOpen(backend, [], lease);
      await context.passTime(context.spanMs);
      const renewal = { producer, leaseMs: 20 * context.spanMs };
      assert.deepEqual(await backend.renewProducers([{ task: id, ...renewal }]), ["renewed"]);
      await context.passTime(1.5 * context.spanMs);
      await recoverAll(await open());
      const gone = await assertTask(backend, idle.id, "failed", { total: 0 });
      assert.match(gone.error?.reason ?? "", /producer/);
      assert.equal((await backend.task(id)).sealed, false, "a renewed producer is still there");
      await backend.renewProducers([{ task: id, producer, leaseMs: 10 }]);
      await context.passTime(context.spanMs);
      await recoverAll(backend);
      await assertTask(backend, id, "pending", { unacked: 1 });
      assert.equal((await backend.task(id)).sealed, true);
      assert.equal((await backend.sealTask(id, { producer })).outcome, "stale");
      assert.deepEqual(await backend.renewProducers([{ task: id, producer, leaseMs: 1_000 }]), ["stale"]);
      await ack(backend, JOBS, await take(backend, JOBS));
      await assertTask(backend, id, "failed", { done: 1 });
    },
  },
  {
    name: "a producer is found gone by the sweep of any client, unasked",
    options: { sweepIntervalMs: 50 },
    async run(context) {
      const { backend } = context;
      const { id } = await beginOpen(backend, [], { producer: { leaseMs: 50, owner: "receipt" } });
      for (let tries = 0; (await backend.task(id)).status !== "failed"; tries += 1) {
        assert.ok(tries < 200, "the sweep finds it");
        await context.passTime(50);
      }
    },
  },
]);

/** The cases of the section "keeping tasks". */
export const taskKeepingCases = section("keeping tasks", [
  {
    name: "tasks are listed newest first, filtered, in pages",
    async run(context) {
      const { backend } = context;
      await make(backend, JOBS);
      const ids: string[] = [];
      for (let index = 0; index < 25; index += 1) {
        const { task } = await begin(backend, index % 5 === 0 ? [batch(JOBS, "x")] : [], {
          type: index % 2 === 0 ? "import" : "commit",
          resource: `r${index % 3}`,
        });
        ids.unshift(task.id);
      }
      assert.deepEqual(
        (await everyTask(backend, { limit: 4 })).map((task) => task.id),
        ids,
      );
      const page = await backend.tasks({ limit: 4 });
      assert.equal(page.items.length, 4);
      assert.ok(page.next);
      assert.deepEqual((await everyTask(backend, { type: "commit" })).length, 12);
      assert.deepEqual((await everyTask(backend, { status: "pending" })).length, 5);
      assert.deepEqual(
        (await everyTask(backend, { status: "completed", type: "import", resource: "r1" })).every((task) => task.type === "import"),
        true,
      );
      assert.deepEqual((await everyTask(backend, { resource: "r2", limit: 1 })).length, 8);
      assert.deepEqual(await everyTask(backend, { status: "failed" }), []);
      await refused(() => backend.tasks({ status: "done" as never }), "invalid-argument");
      await refused(() => backend.tasks({ after: "nonsense!" }), "invalid-argument");
      await refused(() => backend.tasks({ limit: 0 }), "invalid-argument");
    },
  },
  {
    name: "tasks are listed by the time of their making",
    async run(context) {
      const { backend } = context;
      const first = (await begin(backend)).task;
      await context.passTime(20);
      const second = (await begin(backend)).task;
      assert.ok(second.createdAtMs > first.createdAtMs);
      assert.deepEqual(
        (await everyTask(backend, { fromMs: second.createdAtMs })).map((task) => task.id),
        [second.id],
      );
      assert.deepEqual(
        (await everyTask(backend, { toMs: second.createdAtMs })).map((task) => task.id),
        [first.id],
      );
    },
  },
  {
    name: "an ended task can be removed, one that goes on cannot",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      await refused(() => backend.removeTask(task.id), "task-active");
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      await backend.removeTask(task.id);
      await refused(() => backend.task(task.id), "task-not-found");
      await refused(() => backend.removeTask(task.id), "task-not-found");
      assert.deepEqual((await backend.tasks()).items, []);
      const [dead] = (await backend.deadLetters(JOBS)).items;
      assert.equal(dead?.id, held.id, "its dead letter stays");
      assert.equal(dead?.task, undefined);
      await backend.redrive(JOBS, [held.id]);
      assert.equal((await take(backend, JOBS)).task, undefined);
    },
  },
  {
    name: "an id of a removed task is free again, and nothing of the old one comes with it",
    async run({ backend }) {
      await make(backend, JOBS);
      const chosen = { id: taskId("again") };
      await begin(backend, [batch(JOBS, "a")], chosen);
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      await backend.removeTask(chosen.id);
      const { task } = await begin(backend, [batch(JOBS, "b")], chosen);
      await assertTask(backend, task.id, "pending", { total: 1, failed: 0 });
      assert.deepEqual((await backend.taskFailures(task.id)).items, []);
      await backend.redrive(JOBS, [held.id]);
      await assertTask(backend, task.id, "pending", { total: 1, failed: 0 });
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((message) => [content(message), message.task]),
        [
          ["a", undefined],
          ["b", task.id],
        ],
      );
    },
  },
  {
    name: "ended tasks are removed when they were kept as long as their status says",
    async run(context) {
      const { backend, passTime, spanMs } = context;
      const keepMs = { completed: 2 * spanMs, cancelled: 6 * spanMs, failed: 10 * spanMs };
      const completed = (await begin(backend, [], { keepMs })).task.id;
      const open = await beginOpen(backend, [], { keepMs });
      const failed = await beginOpen(backend, [], { keepMs });
      await backend.sealTask(failed.id, { error: "x" });
      const cancelled = await beginOpen(backend, [], { keepMs });
      await backend.cancelTask(cancelled.id);
      const left = async (): Promise<string[]> => {
        await recoverAll(backend);
        return (await everyTask(backend)).map((task) => task.id);
      };
      assert.deepEqual(await left(), [cancelled.id, failed.id, open.id, completed]);
      await passTime(3 * spanMs);
      assert.deepEqual(await left(), [cancelled.id, failed.id, open.id]);
      await passTime(4 * spanMs);
      assert.deepEqual(await left(), [failed.id, open.id]);
      await passTime(4 * spanMs);
      assert.deepEqual(await left(), [open.id]);
    },
  },
  {
    name: "a task that is kept for no time is removed by the next recovery",
    async run(context) {
      const { backend } = context;
      await begin(backend, [], { keepMs: { completed: 0 } });
      await context.passTime(5);
      await recoverAll(backend);
      assert.deepEqual(await everyTask(backend), []);
    },
  },
  {
    name: "tasks outlive their clients",
    needs: ["durable"],
    async run({ backend, open }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a", "b")], { resource: "r", meta: { a: 1 }, stage: "s" });
      await ack(backend, JOBS, await take(backend, JOBS));
      const before = await backend.task(task.id);
      await backend.close();
      const again = await open();
      assert.deepEqual(await again.task(task.id), before);
      await ack(again, JOBS, await take(again, JOBS));
      const ended = await assertTask(again, task.id, "completed", { done: 2 });
      await again.close();
      assert.deepEqual(await (await open()).task(task.id), ended);
    },
  },
]);
