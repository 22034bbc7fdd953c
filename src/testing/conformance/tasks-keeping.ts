/** Listing tasks, and how long ended ones are kept. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { ack, content, everyMessage, JOBS, make, recoverAll, refused, take } from "./steps.ts";
import { assertTask, batch, begin, beginOpen, everyTask, taskId } from "./task-steps.ts";

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
