/** Sealing tasks, and producers that fail or go away before they do. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { ack, bytes, JOBS, make, name, recoverAll, refused, take, withId } from "./steps.ts";
import { assertTask, batch, beginOpen, putFor } from "./task-steps.ts";

const NEXT = name("next");

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
    name: "a repeat by id gets its first answer after its task has ended; what would be stored is refused, with all of its call",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { id: task } = await beginOpen(backend);
      const first = withId("first", "1", { task });
      const second = withId("second", "2", { task });
      assert.deepEqual(await backend.enqueue(JOBS, [first]), [{ outcome: "enqueued", id: first.id }]);
      await backend.sealTask(task);
      await ack(backend, JOBS, await take(backend, JOBS));
      await assertTask(backend, task, "completed");

      assert.deepEqual(await backend.enqueue(JOBS, [first]), [{ outcome: "repeated", id: first.id }]);
      assert.deepEqual(await backend.enqueue(JOBS, [{ ...first, data: bytes("x") }]), [{ outcome: "conflict", id: first.id }]);
      for (const messages of [[second], [first, second], [first, { data: bytes("3"), task }], [withId("third", "1", { task }), first]]) {
        await refused(() => backend.enqueue(JOBS, messages), "task-ended");
      }
      // The id is one of that queue.
      await refused(() => backend.enqueue(NEXT, [first]), "task-ended");

      // As what an ack forwards, too.
      await backend.enqueue(NEXT, [{ data: bytes("source") }]);
      const { receipt } = await take(backend, NEXT);
      await refused(() => backend.ack(NEXT, [{ receipt, forward: [{ queue: JOBS, messages: [first, second] }] }]), "task-ended");
      assert.deepEqual(await backend.ack(NEXT, [{ receipt, forward: [{ queue: JOBS, messages: [first] }] }]), [
        { outcome: "acked", forwarded: [[{ outcome: "repeated", id: first.id }]] },
      ]);
      assert.deepEqual(await backend.status(JOBS), { pending: 0, processing: 0 });
      await assertTask(backend, task, "completed", { total: 1 });
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
