/** A moment to wait for: all that was enqueued before it. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import type { Mark } from "../../core/message.ts";
import { section } from "./case.ts";
import { ack, bytes, JOBS, make, name, put, refused, take } from "./steps.ts";

async function reached(backend: Backend, mark: Mark): Promise<boolean> {
  return (await backend.reached(mark)).reached;
}

/** The cases of the section "marks". */
export const markCases = section("marks", [
  {
    name: "a mark of an empty queue is reached at once, and a later message does not hold it up",
    async run({ backend }) {
      await make(backend, JOBS);
      const mark = await backend.mark({ queues: [JOBS] });
      assert.deepEqual(await backend.reached(mark), { reached: true, statuses: [{ queue: JOBS, pending: 0, processing: 0 }] });
      await put(backend, JOBS, "later");
      assert.deepEqual(await backend.reached(mark), { reached: true, statuses: [{ queue: JOBS, pending: 1, processing: 0 }] });
    },
  },
  {
    name: "a mark is reached when all that was enqueued before it is acked, in whatever order, and not before",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      await put(backend, JOBS, "1", "2", "3");
      const early = await take(backend, JOBS);
      const mark = await other.mark({ queues: [JOBS] });
      await put(backend, JOBS, "4", "5");
      const [two, three, four] = await backend.dequeue(JOBS, { limit: 3 });
      assert.ok(two && three && four);
      assert.equal(await reached(other, mark), false);
      await ack(backend, JOBS, four, three);
      assert.equal(await reached(other, mark), false);
      await ack(backend, JOBS, early);
      assert.deepEqual(await other.reached(mark), { reached: false, statuses: [{ queue: JOBS, pending: 1, processing: 1 }] });
      await ack(backend, JOBS, two);
      assert.deepEqual(await other.reached(mark), { reached: true, statuses: [{ queue: JOBS, pending: 1, processing: 0 }] });
    },
  },
  {
    name: "redelivery does not move a message across the mark: not nack, release, recovery nor redrive",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3", "4");
      const mark = await backend.mark({ queues: [JOBS] });
      await put(backend, JOBS, "later");
      const [nacked, released, lost, dead] = await backend.dequeue(JOBS, { limit: 4, leaseMs: spanMs });
      assert.ok(nacked && released && lost && dead);
      await backend.nack(JOBS, [{ receipt: nacked.receipt }, { receipt: dead.receipt, giveUp: true }]);
      await backend.release(JOBS, [released.receipt]);
      await passTime(spanMs);
      await backend.recover();
      assert.equal(await reached(backend, mark), false);
      await ack(backend, JOBS, await take(backend, JOBS), await take(backend, JOBS));
      assert.equal(await reached(backend, mark), false);
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.equal(await reached(backend, mark), true, "a dead letter is settled");
      await backend.redrive(JOBS, [dead.id]);
      assert.equal(await reached(backend, mark), false, "a redriven one is work again");
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.equal(await reached(backend, mark), true);
      const after = await backend.mark({ queues: [JOBS] });
      assert.equal(await reached(backend, after), false);
    },
  },
  {
    name: "a delayed message before the mark holds it up, also while it waits",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: bytes("late"), delayMs: spanMs }]);
      const mark = await backend.mark({ queues: [JOBS] });
      assert.equal(await reached(backend, mark), false);
      await put(backend, JOBS, "later");
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.equal(await reached(backend, mark), false);
      await passTime(spanMs);
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.equal(await reached(backend, mark), true);
    },
  },
  {
    name: "a mark of several queues is reached when all are, judged in one snapshot",
    async run({ backend }) {
      await make(backend, "a", "b", "c/d");
      for (const queue of ["a", "b", "c/d"]) await put(backend, name(queue), "before");
      const named = await backend.mark({ queues: ["b", "a"].map(name) });
      const subtree = await backend.mark({ under: "" });
      await make(backend, "later");
      await put(backend, name("later"), "not covered");
      assert.deepEqual(
        named.queues.map((one) => one.queue),
        ["b", "a"],
      );
      assert.deepEqual(
        (await backend.reached(named)).statuses.map((one) => one.queue),
        ["b", "a"],
      );
      await ack(backend, name("a"), await take(backend, name("a")));
      assert.equal(await reached(backend, named), false);
      await ack(backend, name("b"), await take(backend, name("b")));
      assert.equal(await reached(backend, named), true);
      assert.equal(await reached(backend, subtree), false);
      await ack(backend, name("c/d"), await take(backend, name("c/d")));
      assert.deepEqual(await backend.reached(subtree), {
        reached: true,
        statuses: [
          { queue: "a", pending: 0, processing: 0 },
          { queue: "b", pending: 0, processing: 0 },
          { queue: "c/d", pending: 0, processing: 0 },
        ],
      });
    },
  },
  {
    name: "a queue cleared since counts as settled, whatever came after",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      await take(backend, JOBS);
      const mark = await backend.mark({ queues: [JOBS] });
      await backend.clear(JOBS);
      assert.equal(await reached(backend, mark), true);
      await put(backend, JOBS, "3", "4", "5", "6");
      await take(backend, JOBS);
      assert.equal(await reached(backend, mark), true);
      await backend.clear(JOBS);
      await put(backend, JOBS, "7");
      assert.equal(await reached(backend, mark), true);
      const second = await backend.mark({ queues: [JOBS] });
      assert.equal(await reached(backend, second), false);
    },
  },
  {
    name: "a removed queue rejects with not-found, also when a new one has its name",
    async run({ backend }) {
      await make(backend, JOBS, "other");
      await put(backend, JOBS, "1");
      const mark = await backend.mark({ queues: [name("other"), JOBS] });
      await backend.removeQueue(JOBS);
      await refused(() => backend.reached(mark), "queue-not-found");
      await make(backend, JOBS);
      await refused(() => backend.reached(mark), "queue-not-found");
      await put(backend, JOBS, "1", "2", "3");
      await refused(() => backend.reached(mark), "queue-not-found");
    },
  },
  {
    name: "a mark is plain data: it can be written down and used by another client",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const mark = JSON.parse(JSON.stringify(await backend.mark({ queues: [JOBS] }))) as Mark;
      const other = await open();
      assert.equal(await reached(other, mark), false);
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.equal(await reached(other, mark), true);
    },
  },
  {
    name: "a mark of nothing is reached",
    async run({ backend }) {
      assert.deepEqual(await backend.reached(await backend.mark({ queues: [] })), { reached: true, statuses: [] });
      assert.deepEqual(await backend.reached(await backend.mark({ under: "" })), { reached: true, statuses: [] });
    },
  },
  {
    name: "what one handler forwards is later than the mark",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const mark = await backend.mark({ queues: [JOBS] });
      const held = await take(backend, JOBS);
      await backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: JOBS, messages: [{ data: bytes("2") }] }] }]);
      assert.deepEqual(await backend.reached(mark), { reached: true, statuses: [{ queue: JOBS, pending: 1, processing: 0 }] });
    },
  },
]);
