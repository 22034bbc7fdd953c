/** Cancelling tasks: what waits goes at once, what is in hand when it is settled. */

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
import { assertTask, batch, begin, beginOpen, cancelAll, putFor } from "./task-steps.ts";

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
