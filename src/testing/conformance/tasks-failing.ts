/** Tasks of which something fails: dead letters, redrives, clears, removed queues. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { ack, bytes, content, counts, everyDeadLetter, JOBS, make, name, refused, take } from "./steps.ts";
import { assertTask, batch, begin, beginOpen, everyFailure, putFor } from "./task-steps.ts";

const NEXT = name("next");

/** The cases of the section "tasks that fail". */
export const taskFailureCases = section("tasks that fail", [
  {
    name: "one message given up on makes the task failed, with the first error and the count, once all are settled",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { task } = await begin(backend, [batch(JOBS, "good", "bad"), batch(NEXT, "worse", "good too")]);
      const [good, bad] = await backend.dequeue(JOBS, { limit: 2 });
      const [worse, goodToo] = await backend.dequeue(NEXT, { limit: 2 });
      assert.ok(good && bad && worse && goodToo);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: bad.receipt, giveUp: true, reason: "no such page" }]), ["dead"]);
      const running = await assertTask(backend, task.id, "running", { failed: 1, unacked: 3 });
      assert.deepEqual(running.error, { reason: "no such page", queue: JOBS, message: bad.id });
      assert.deepEqual(await backend.nack(NEXT, [{ receipt: worse.receipt, giveUp: true, reason: "broken" }]), ["dead"]);
      await ack(backend, JOBS, good);
      await ack(backend, NEXT, goodToo);
      const ended = await assertTask(backend, task.id, "failed", { total: 4, done: 2, failed: 2 });
      assert.deepEqual(ended.error, { reason: "no such page", queue: JOBS, message: bad.id });
      assert.deepEqual(
        (await everyFailure(backend, task.id)).map(({ queue, id, reason, task: owner, data }) => [
          queue,
          id,
          reason,
          owner,
          content({ data }),
        ]),
        [
          [JOBS, bad.id, "no such page", task.id, "bad"],
          [NEXT, worse.id, "broken", task.id, "worse"],
        ],
      );
      assert.equal((await everyDeadLetter(backend, JOBS))[0]?.task, task.id);
    },
  },
  {
    name: "a failure as the last settlement ends the task in that step",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a", "b")]);
      const [a, b] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(a && b);
      await ack(backend, JOBS, a);
      await backend.nack(JOBS, [{ receipt: b.receipt, giveUp: true }]);
      await assertTask(backend, task.id, "failed", { done: 1, failed: 1 });
    },
  },
  {
    name: "deliveries used up, by nack and by recovery, are failures of the task",
    async run(context) {
      const { backend } = context;
      await backend.createQueue(JOBS, { maxDeliveries: 1 });
      const { task } = await begin(backend, [batch(JOBS, "nacked", "held")]);
      const nacked = await take(backend, JOBS);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: nacked.receipt, reason: "tired" }]), ["dead"]);
      await assertTask(backend, task.id, "running", { failed: 1, unacked: 1 });
      await take(backend, JOBS, { leaseMs: context.spanMs });
      await context.passTime(context.spanMs + 1);
      await backend.recover();
      const ended = await assertTask(backend, task.id, "failed", { failed: 2 });
      assert.equal(ended.error?.reason, "tired");
      assert.equal((await everyFailure(backend, task.id)).length, 2);
    },
  },
  {
    name: "failures come in pages, in the order they came",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const texts = Array.from({ length: 25 }, (_, index) => String(index));
      const { task } = await begin(backend, [batch(JOBS, ...texts), batch(NEXT, "x")]);
      const held = await backend.dequeue(JOBS, { limit: 25 });
      for (const one of held) await backend.nack(JOBS, [{ receipt: one.receipt, giveUp: true }]);
      const page = await backend.taskFailures(task.id, { limit: 10 });
      assert.equal(page.items.length, 10);
      assert.ok(page.next);
      assert.deepEqual((await everyFailure(backend, task.id, 10)).map(content), texts);
      assert.deepEqual((await everyFailure(backend, (await begin(backend)).task.id)).map(content), []);
    },
  },
  {
    name: "a redrive while the task goes on takes the failure back",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a", "b")]);
      const [a, b] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(a && b);
      await backend.nack(JOBS, [{ receipt: a.receipt, giveUp: true, reason: "no" }]);
      assert.deepEqual(await backend.redrive(JOBS, [a.id]), ["redriven"]);
      const again = await assertTask(backend, task.id, "running", { failed: 0, unacked: 2 });
      assert.equal(again.error, undefined);
      const held = await take(backend, JOBS);
      assert.equal(held.task, task.id);
      await ack(backend, JOBS, held, b);
      await assertTask(backend, task.id, "completed", { total: 2, done: 2 });
      assert.deepEqual(await everyFailure(backend, task.id), []);
    },
  },
  {
    name: "a redrive after the end changes the task no more: the message belongs to none",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      const ended = await assertTask(backend, task.id, "failed", { failed: 1 });
      await backend.redrive(JOBS, [held.id]);
      const again = await take(backend, JOBS);
      assert.equal(again.task, undefined);
      await ack(backend, JOBS, again);
      assert.deepEqual(await backend.task(task.id), ended);
      assert.deepEqual(await everyFailure(backend, task.id), []);
    },
  },
  {
    name: "a dropped dead letter stays counted",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      await backend.drop(JOBS, [held.id]);
      await assertTask(backend, task.id, "failed", { total: 1, failed: 1 });
      assert.deepEqual(await everyFailure(backend, task.id), []);
    },
  },
  {
    name: "a new task takes over the dead letters of an ended one, which stays as it is",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { task } = await begin(backend, [batch(JOBS, "a", "b"), batch(NEXT, "c")]);
      for (const queue of [JOBS, NEXT]) {
        for (const one of await backend.dequeue(queue, { limit: 9 })) await backend.nack(queue, [{ receipt: one.receipt, giveUp: true }]);
      }
      const failed = await assertTask(backend, task.id, "failed", { failed: 3 });
      const again = await beginOpen(backend, [], { retryOf: task.id });
      assert.equal((await backend.task(again.id)).retryOf, task.id);
      assert.deepEqual(await backend.redriveTask(task.id, again.id), { redriven: 3, more: false });
      assert.deepEqual(await backend.redriveTask(task.id, again.id), { redriven: 0, more: false });
      await assertTask(backend, again.id, "pending", { total: 3, unacked: 3 });
      await backend.sealTask(again.id, { producer: again.producer });
      for (const queue of [JOBS, NEXT]) {
        const held = await backend.dequeue(queue, { limit: 9 });
        for (const one of held) assert.deepEqual([one.task, one.deliveryCount], [again.id, 1]);
        await ack(backend, queue, ...held);
      }
      await assertTask(backend, again.id, "completed", { total: 3, done: 3 });
      assert.deepEqual(await backend.task(task.id), failed);
      assert.deepEqual(await everyFailure(backend, task.id), []);
    },
  },
  {
    name: "a task that goes on can try its own dead letters again, and no other may have them",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend, [batch(JOBS, "a")]);
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      const other = await beginOpen(backend);
      await refused(() => backend.redriveTask(id, other.id), "task-active");
      assert.deepEqual(await backend.redriveTask(id, id), { redriven: 1, more: false });
      await assertTask(backend, id, "running", { total: 1, unacked: 1, failed: 0 });
      await backend.sealTask(id, { producer });
      await ack(backend, JOBS, await take(backend, JOBS));
      await assertTask(backend, id, "completed", { total: 1, done: 1 });
      await refused(() => backend.redriveTask(id, id), "task-ended");
    },
  },
  {
    name: "many dead letters are taken over in bounded steps",
    async run({ backend }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 1_200 }, (_, index) => String(index));
      const { task } = await begin(backend, [batch(JOBS, ...texts)]);
      for (;;) {
        const held = await backend.dequeue(JOBS, { limit: 600 });
        if (held.length === 0) break;
        await backend.nack(
          JOBS,
          held.map((one) => ({ receipt: one.receipt, giveUp: true })),
        );
      }
      await assertTask(backend, task.id, "failed", { failed: 1_200 });
      const again = await beginOpen(backend);
      let redriven = 0;
      for (let steps = 1; ; steps += 1) {
        const step = await backend.redriveTask(task.id, again.id);
        redriven += step.redriven;
        await assertTask(backend, again.id, "pending", { total: redriven });
        if (!step.more) break;
        assert.ok(steps < 100);
      }
      assert.equal(redriven, 1_200);
      await counts(backend, JOBS, 1_200, 0);
      assert.deepEqual((await backend.dequeue(JOBS, { limit: 3 })).map(content), ["0", "1", "2"]);
    },
  },
  {
    name: "clear counts what it removes as failed, and ends the task",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { task } = await begin(backend, [batch(JOBS, "a", "b", "c"), batch(NEXT, "d")]);
      const held = await take(backend, JOBS);
      await ack(backend, JOBS, held);
      const stale = await take(backend, JOBS);
      await backend.clear(JOBS);
      const running = await assertTask(backend, task.id, "running", { done: 1, failed: 2, unacked: 1 });
      assert.equal(running.error?.queue, JOBS);
      assert.deepEqual(await backend.ack(JOBS, [{ receipt: stale.receipt }]), [{ outcome: "stale" }]);
      await ack(backend, NEXT, await take(backend, NEXT));
      await assertTask(backend, task.id, "failed", { total: 4, done: 2, failed: 2 });
    },
  },
  {
    name: "a cleared queue goes on counting for its tasks",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend, [batch(JOBS, "a")]);
      await backend.clear(JOBS);
      await putFor(backend, JOBS, id, "b");
      await assertTask(backend, id, "pending", { total: 2, failed: 1, unacked: 1 });
      await backend.clear(JOBS);
      await putFor(backend, JOBS, id, "c");
      await backend.sealTask(id, { producer });
      await ack(backend, JOBS, await take(backend, JOBS));
      await assertTask(backend, id, "failed", { total: 3, failed: 2, done: 1 });
    },
  },
  {
    name: "removing queues counts what is removed as failed, and takes dead letters out of the report",
    async run({ backend }) {
      const below = name("jobs/below");
      await make(backend, JOBS, below, NEXT);
      const { task } = await begin(backend, [batch(JOBS, "a", "b"), batch(below, "c"), batch(NEXT, "d")]);
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      const last = await take(backend, NEXT);
      await backend.nack(NEXT, [{ receipt: last.receipt, giveUp: true }]);
      assert.equal((await everyFailure(backend, task.id)).length, 2);
      assert.equal(await backend.removeQueue(JOBS, { recursive: true }), 2);
      await assertTask(backend, task.id, "failed", { total: 4, failed: 4 });
      assert.deepEqual((await everyFailure(backend, task.id)).map(content), ["d"]);
      await make(backend, JOBS);
      assert.equal((await begin(backend, [batch(JOBS, "new")])).task.progress.unacked, 1);
      assert.deepEqual((await everyFailure(backend, task.id)).map(content), ["d"]);
    },
  },
  {
    name: "the failure of one task is none of its neighbours'",
    async run({ backend }) {
      await make(backend, JOBS);
      const one = (await begin(backend, [batch(JOBS, "a")])).task.id;
      const two = (await begin(backend, [{ queue: JOBS, messages: [{ data: bytes("b") }] }])).task.id;
      const [a, b] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(a && b);
      await backend.nack(JOBS, [{ receipt: a.receipt, giveUp: true }]);
      await ack(backend, JOBS, b);
      await assertTask(backend, one, "failed", { failed: 1 });
      await assertTask(backend, two, "completed", { done: 1 });
    },
  },
]);
