/** Tasks: made with their messages, counted with them, ended with the last one. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { ack, bytes, content, counts, empty, everyMessage, JOBS, make, name, put, refused, take, whileLooking, withId } from "./steps.ts";
import { assertTask, batch, begin, beginOpen, putFor, taskId } from "./task-steps.ts";

const NEXT = name("next");

/** The cases of the section "tasks". */
export const taskCases = section("tasks", [
  {
    name: "a task is made with its messages in one step, and ends as completed with the ack of the last",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { task, enqueued, producer } = await begin(backend, [batch(JOBS, "a", "b"), batch(NEXT, "c")], {
        resource: "docs/handbook",
        stage: "reading",
        meta: { by: ["ann", 1, null, true], text: "ünï" },
      });
      assert.equal(producer, undefined, "a sealed task has no producer");
      assert.deepEqual(
        enqueued.map((answers) => answers.map((one) => one.outcome)),
        [["enqueued", "enqueued"], ["enqueued"]],
      );
      assert.equal(task.type, "import");
      assert.equal(task.resource, "docs/handbook");
      assert.equal(task.stage, "reading");
      assert.deepEqual(task.meta, { by: ["ann", 1, null, true], text: "ünï" });
      assert.equal(task.sealed, true);
      await assertTask(backend, task.id, "pending", { total: 3, unacked: 3, done: 0, failed: 0, cancelled: 0 });
      const first = await take(backend, JOBS);
      assert.equal(first.task, task.id, "a delivery names the task of its message");
      await assertTask(backend, task.id, "running", { total: 3, unacked: 3 });
      const second = await take(backend, JOBS);
      const third = await take(backend, NEXT);
      await ack(backend, JOBS, first, second);
      await assertTask(backend, task.id, "running", { done: 2, unacked: 1 });
      await ack(backend, NEXT, third);
      const ended = await assertTask(backend, task.id, "completed", { total: 3, done: 3, unacked: 0 });
      assert.equal(ended.error, undefined);
      assert.ok((ended.finishedAtMs as number) >= ended.createdAtMs && ended.updatedAtMs === ended.finishedAtMs);
      await counts(backend, JOBS, 0, 0);
      await counts(backend, NEXT, 0, 0);
    },
  },
  {
    name: "a sealed task without messages is completed at once",
    async run({ backend }) {
      const { task } = await begin(backend);
      assert.equal(task.status, "completed");
      await assertTask(backend, task.id, "completed", { total: 0 });
    },
  },
  {
    name: "an id is the task's, and made when the caller gives none",
    async run({ backend }) {
      const chosen = await begin(backend, [], { id: taskId("import-7") });
      assert.equal(chosen.task.id, "import-7");
      const made = [(await begin(backend)).task.id, (await begin(backend)).task.id];
      assert.notEqual(made[0], made[1]);
      for (const one of made) assert.ok(one.startsWith("t-"), one);
    },
  },
  {
    name: "the same task id again makes nothing and stores nothing, also after its end",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")], { id: taskId("once"), meta: 1 });
      const again = await backend.createTask({ id: task.id, type: "import", meta: 2 }, [batch(JOBS, "b")]);
      assert.equal(again.outcome, "exists");
      assert.equal(again.task.meta, 1);
      await counts(backend, JOBS, 1, 0);
      await ack(backend, JOBS, await take(backend, JOBS));
      const later = await backend.createTask({ id: task.id, type: "import" }, [batch(JOBS, "b")]);
      assert.equal(later.outcome, "exists");
      assert.equal(later.task.status, "completed");
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "a missing queue fails the making of the task as a whole",
    async run({ backend }) {
      await make(backend, JOBS);
      await refused(
        () => backend.createTask({ id: taskId("half"), type: "import" }, [batch(JOBS, "a"), batch(NEXT, "b")]),
        "queue-not-found",
      );
      await counts(backend, JOBS, 0, 0);
      await refused(() => backend.task(taskId("half")), "task-not-found");
    },
  },
  {
    name: "what cannot be a task is refused",
    async run({ backend }) {
      const bad: readonly unknown[] = [
        undefined,
        null,
        {},
        { type: "" },
        { type: "a\nb" },
        { type: "x".repeat(256) },
        { type: 7 },
        { type: "a", stages: "b" },
        { type: "a", stage: "x".repeat(256) },
        { type: "a", resource: "\0" },
        { type: "a", resource: "x".repeat(4_097) },
        { type: "a", keepMs: { completed: -1 } },
        { type: "a", keepMs: { ended: 1 } },
        { type: "a", producer: {} },
        { type: "a", producer: { leaseMs: 1 } },
        { type: "a", producer: { leaseMs: 1_000, owner: "me" } },
      ];
      for (const task of bad) await refused(() => backend.createTask(task as never), "invalid-argument");
      for (const id of ["", "t-own", ".x", "a/b", "a b", "x".repeat(129), "ä", 7])
        await refused(() => backend.createTask({ id: id as never, type: "a" }), "invalid-name", "invalid-argument");
      await refused(() => backend.createTask({ type: "a", meta: "x".repeat(64 * 1024) }), "message-too-large");
      await refused(() => backend.createTask({ type: "a", meta: (() => 1) as never }), "invalid-argument");
      assert.deepEqual((await backend.tasks()).items, []);
    },
  },
  {
    name: "an unknown task is not found, whatever is asked of it",
    async run({ backend }) {
      await make(backend, JOBS);
      const none = taskId("none");
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      await refused(() => backend.task(none), "task-not-found");
      await refused(() => backend.updateTask(none, { stage: "x" }), "task-not-found");
      await refused(() => backend.sealTask(none), "task-not-found");
      await refused(() => backend.cancelTask(none), "task-not-found");
      await refused(() => backend.removeTask(none), "task-not-found");
      await refused(() => backend.taskFailures(none), "task-not-found");
      await refused(() => backend.redriveTask(none, task.id), "task-not-found");
      await refused(() => backend.redriveTask(task.id, none), "task-not-found");
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("x") }, { data: bytes("y"), task: none }]), "task-not-found");
      await counts(backend, JOBS, 1, 0);
      assert.deepEqual(await backend.renewProducers([{ task: none, producer: "p-1", leaseMs: 1000 }]), ["stale"]);
    },
  },
  {
    name: "messages enqueued into a task are its own, and it does not end before they are acked",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend, [batch(JOBS, "1")]);
      await put(backend, JOBS, "of nobody");
      await putFor(backend, JOBS, id, "2", "3");
      await backend.enqueue(JOBS, [
        { ...withId("chosen", "4"), task: id },
        { data: bytes("5"), delayMs: 0, task: id },
      ]);
      await assertTask(backend, id, "pending", { total: 5, unacked: 5 });
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((message) => [content(message), message.task]),
        [
          ["1", id],
          ["of nobody", undefined],
          ["2", id],
          ["3", id],
          ["4", id],
          ["5", id],
        ],
      );
      assert.equal((await backend.peek(JOBS))?.task, id);
      const held = await backend.dequeue(JOBS, { limit: 10 });
      assert.deepEqual(
        held.map((one) => one.task),
        [id, undefined, id, id, id, id],
      );
      await ack(backend, JOBS, ...held);
      await assertTask(backend, id, "pending", { done: 5, unacked: 0 });
      assert.equal((await backend.sealTask(id, { producer })).task.status, "completed");
      await assertTask(backend, id, "completed", { total: 5, done: 5 });
    },
  },
  {
    name: "a repeated message stays whose it was and counts once",
    async run({ backend }) {
      await make(backend, JOBS);
      const { id, producer } = await beginOpen(backend);
      const other = await beginOpen(backend);
      await backend.enqueue(JOBS, [{ ...withId("m", "x"), task: id }]);
      const [again, conflict] = await backend.enqueue(JOBS, [
        { ...withId("m", "x"), task: other.id },
        { ...withId("m", "y"), task: other.id },
      ]);
      assert.equal(again?.outcome, "repeated");
      assert.equal(conflict?.outcome, "conflict");
      await assertTask(backend, id, "pending", { total: 1 });
      await assertTask(backend, other.id, "pending", { total: 0 });
      await backend.sealTask(id, { producer });
      await ack(backend, JOBS, await take(backend, JOBS));
      await assertTask(backend, id, "completed", { total: 1, done: 1 });
      await backend.enqueue(JOBS, [{ ...withId("m", "x"), task: other.id }]);
      await assertTask(backend, other.id, "pending", { total: 0 });
    },
  },
  {
    name: "an ack that forwards into the same task never ends it in between",
    async run({ backend, open }) {
      await make(backend, JOBS, NEXT);
      const other = await open();
      const { task } = await begin(backend, [batch(JOBS, "0")]);
      const look = async (): Promise<void> => {
        const { status, progress } = await other.task(task.id);
        assert.ok(status === "running" || status === "pending", `never ended, not ${status}`);
        assert.equal(progress.unacked, 1);
      };
      let held = await take(backend, JOBS);
      await whileLooking(look, async () => {
        for (let round = 1; round <= 100; round += 1) {
          const [from, to] = round % 2 === 1 ? [JOBS, NEXT] : [NEXT, JOBS];
          const [answer] = await backend.ack(from, [
            { receipt: held.receipt, forward: [{ queue: to, messages: [{ data: bytes(String(round)), task: task.id }] }] },
          ]);
          assert.equal(answer?.outcome, "acked");
          held = await take(backend, to);
          assert.equal(held.task, task.id);
        }
      });
      await assertTask(backend, task.id, "running", { total: 101, done: 100, unacked: 1 });
      await ack(backend, JOBS, held);
      await assertTask(backend, task.id, "completed", { total: 101, done: 101 });
    },
  },
  {
    name: "a message forwarded without a task belongs to none",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      const held = await take(backend, JOBS);
      await backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: NEXT, messages: [{ data: bytes("b") }] }] }]);
      await assertTask(backend, task.id, "completed", { total: 1, done: 1 });
      assert.equal((await take(backend, NEXT)).task, undefined);
    },
  },
  {
    name: "an ended task takes no more work, and nothing of the call happens",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      const { task } = await begin(backend);
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("x") }, { data: bytes("y"), task: task.id }]), "task-ended");
      await counts(backend, JOBS, 0, 0);
      await put(backend, JOBS, "z");
      const held = await take(backend, JOBS);
      const forward = [{ queue: NEXT, messages: [{ data: bytes("y"), task: task.id }] }];
      await refused(() => backend.ack(JOBS, [{ receipt: held.receipt, forward }]), "task-ended");
      await counts(backend, JOBS, 0, 1);
      await counts(backend, NEXT, 0, 0);
      await refused(() => backend.updateTask(task.id, { stage: "late" }), "task-ended");
      await ack(backend, JOBS, held);
    },
  },
  {
    name: "every way of acking counts, a stale one does not",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task, enqueued } = await begin(backend, [batch(JOBS, "a", "b", "c")]);
      const [first, second, third] = await backend.dequeue(JOBS, { limit: 3 });
      assert.ok(first && second && third);
      const id = enqueued[0]?.[1]?.id;
      assert.ok(id);
      assert.deepEqual(await backend.ackById(JOBS, [id, id]), ["acked", "not-in-processing"]);
      await ack(backend, JOBS, first);
      assert.deepEqual(await backend.ack(JOBS, [{ receipt: first.receipt }, { receipt: second.receipt }]), [
        { outcome: "stale" },
        { outcome: "stale" },
      ]);
      await assertTask(backend, task.id, "running", { done: 2, unacked: 1 });
      const answers = await backend.ack(JOBS, [{ receipt: third.receipt }, { receipt: third.receipt }]);
      assert.deepEqual(
        answers.map((answer) => answer.outcome),
        ["acked", "stale"],
      );
      await assertTask(backend, task.id, "completed", { total: 3, done: 3 });
    },
  },
  {
    name: "nack, release and recovery leave the message unacked and its task running",
    async run(context) {
      const { backend } = context;
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      const first = await take(backend, JOBS);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: first.receipt, reason: "no" }]), ["pending"]);
      await assertTask(backend, task.id, "running", { unacked: 1 });
      const second = await take(backend, JOBS);
      assert.equal(second.task, task.id);
      assert.deepEqual(await backend.release(JOBS, [second.receipt]), ["released"]);
      await take(backend, JOBS, { leaseMs: context.spanMs });
      await context.passTime(context.spanMs + 1);
      const last = await take(backend, JOBS);
      assert.equal(last.task, task.id);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: last.receipt, delayMs: context.spanMs }]), ["pending"]);
      await assertTask(backend, task.id, "running", { unacked: 1 });
      await empty(backend, JOBS);
      await context.passTime(context.spanMs + 1);
      const again = await take(backend, JOBS);
      assert.equal(again.task, task.id);
      await ack(backend, JOBS, again);
      await assertTask(backend, task.id, "completed", { total: 1, done: 1 });
    },
  },
  {
    name: "a delayed message belongs to its task",
    async run(context) {
      const { backend } = context;
      await make(backend, JOBS);
      const { task } = await begin(backend, [{ queue: JOBS, messages: [{ data: bytes("later"), delayMs: context.spanMs }] }]);
      await empty(backend, JOBS);
      await assertTask(backend, task.id, "pending", { total: 1, unacked: 1 });
      await context.passTime(context.spanMs + 1);
      const held = await take(backend, JOBS);
      assert.equal(held.task, task.id);
      await ack(backend, JOBS, held);
      await assertTask(backend, task.id, "completed", { done: 1 });
    },
  },
  {
    name: "stage, meta and result change one by one and are there at the end",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")], { stage: "one", meta: { step: 1 } });
      assert.equal((await backend.updateTask(task.id, { stage: "two" })).stage, "two");
      assert.deepEqual((await backend.updateTask(task.id, { result: ["partial"] })).meta, { step: 1 });
      const changed = await backend.updateTask(task.id, { meta: null, result: { pages: 12 } });
      assert.equal(changed.meta, null);
      assert.equal(changed.stage, "two");
      await refused(() => backend.updateTask(task.id, { status: "completed" } as never), "invalid-argument");
      await ack(backend, JOBS, await take(backend, JOBS));
      const ended = await assertTask(backend, task.id, "completed");
      assert.deepEqual(ended.result, { pages: 12 });
      assert.equal(ended.stage, "two");
    },
  },
  {
    name: "another client sees the same task, and may end it",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      const { task } = await begin(backend, [batch(JOBS, "a")], { resource: "r", meta: [1] });
      assert.deepEqual(await other.task(task.id), task);
      await ack(other, JOBS, await take(other, JOBS));
      await assertTask(backend, task.id, "completed", { done: 1 });
    },
  },
  {
    name: "a repeated dequeue request names the tasks again",
    async run({ backend }) {
      await make(backend, JOBS);
      const { task } = await begin(backend, [batch(JOBS, "a")]);
      const request = { requestId: "again" };
      const first = await backend.dequeue(JOBS, request);
      assert.deepEqual(await backend.dequeue(JOBS, request), first);
      assert.equal(first[0]?.task, task.id);
    },
  },
  {
    name: "listeners hear of what changes a task alone",
    async run(context) {
      const { backend } = context;
      const { id, producer } = await beginOpen(backend);
      for (const change of [
        () => backend.updateTask(id, { stage: "x" }),
        () => backend.sealTask(id, { producer }),
        () => begin(backend, [], { id: taskId("new") }),
      ]) {
        // Hints are merged: those of earlier changes must have come.
        await context.passTime(100);
        const heard = new Promise<void>((resolve) => {
          const end = backend.subscribe(() => {
            end();
            resolve();
          });
        });
        await change();
        await heard;
      }
    },
  },
  {
    name: "many tasks share a queue, and each ends with its own last message",
    async run({ backend }) {
      await make(backend, JOBS);
      const ids = [];
      for (let index = 0; index < 30; index += 1) ids.push((await begin(backend, [batch(JOBS, `${index}a`, `${index}b`)])).task.id);
      const held = await backend.dequeue(JOBS, { limit: 60 });
      assert.equal(held.length, 60);
      await ack(backend, JOBS, ...held.filter((_one, index) => index % 2 === 0));
      for (const id of ids) await assertTask(backend, id, "running", { done: 1, unacked: 1 });
      await ack(backend, JOBS, ...held.filter((_one, index) => index % 2 === 1));
      for (const id of ids) await assertTask(backend, id, "completed", { done: 2 });
    },
  },
]);
