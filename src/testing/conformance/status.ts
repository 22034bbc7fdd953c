/** Status: one snapshot, of one queue or many, and true at all times. */

import assert from "node:assert/strict";
import { MAX_SNAPSHOT_QUEUES } from "../../core/limits.ts";
import { isComplete } from "../../core/message.ts";
import { section } from "./case.ts";
import { ack, ackOutcome, bytes, counts, everyMessage, JOBS, make, name, put, refused, take, turn, whileLooking } from "./steps.ts";

/** The cases of the section "status". */
export const statusCases = section("status", [
  {
    name: "every step shows in the status of every client at once",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      const both = async (pending: number, processing: number): Promise<void> => {
        await counts(backend, JOBS, pending, processing);
        await counts(other, JOBS, pending, processing);
      };
      await both(0, 0);
      await put(backend, JOBS, "1", "2", "3");
      await both(3, 0);
      const [one, two, three] = (await other.dequeue(JOBS, { limit: 3 })).map((delivered) => delivered.receipt);
      assert.ok(one && two && three);
      await both(0, 3);
      await backend.ack(JOBS, [{ receipt: one }]);
      await both(0, 2);
      await backend.nack(JOBS, [{ receipt: two }]);
      await both(1, 1);
      await backend.release(JOBS, [three]);
      await both(2, 0);
      const four = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: four.receipt, giveUp: true }]);
      await both(1, 0);
      await backend.redrive(JOBS, [four.id]);
      await both(2, 0);
      await other.clear(JOBS);
      await both(0, 0);
    },
  },
  {
    name: "a status has these two keys and nothing else",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.deepEqual(Object.keys(await backend.status(JOBS)), ["pending", "processing"]);
    },
  },
  {
    name: "an empty pending list says nothing: while a message is in processing the queue is not complete",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      for (let round = 0; round < 100; round += 1) {
        await put(backend, JOBS, `${round}`);
        assert.equal(isComplete([await other.status(JOBS)]), false);
        const held = await take(backend, JOBS);
        await counts(other, JOBS, 0, 1);
        await ack(backend, JOBS, held);
        assert.equal(isComplete([await other.status(JOBS)]), true);
      }
    },
  },
  {
    name: "with producers and consumers at work, each snapshot lies between what surely and what possibly was there",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const clients = [backend, await open()];
      const poller = await open();
      const total = 2000;
      const made = { begun: 0, done: 0 };
      const acked = { begun: 0, done: 0 };
      const seen = new Set<string>();
      const produce = async (producer: number): Promise<void> => {
        for (let index = 0; index < total / 4; index += 1) {
          made.begun += 1;
          await clients[producer % 2]?.enqueue(JOBS, [{ data: bytes(`${producer}-${index}`) }]);
          made.done += 1;
        }
      };
      const consume = async (consumer: number): Promise<void> => {
        const client = clients[consumer % 2] ?? backend;
        while (acked.begun < total) {
          await turn();
          for (const held of await client.dequeue(JOBS, { limit: 4 })) {
            assert.ok(!seen.has(held.id), "each message is delivered once");
            seen.add(held.id);
            acked.begun += 1;
            assert.equal(await ackOutcome(client, JOBS, held.receipt), "acked");
            acked.done += 1;
          }
        }
      };
      const look = async (): Promise<void> => {
        const surelyMade = made.done;
        const surelyAcked = acked.done;
        const { pending, processing } = await poller.status(JOBS);
        assert.ok(pending >= 0 && processing >= 0);
        const unacked = pending + processing;
        assert.ok(
          unacked >= surelyMade - acked.begun && unacked <= made.begun - surelyAcked,
          `${surelyMade - acked.begun} <= ${unacked} <= ${made.begun - surelyAcked}`,
        );
      };
      await whileLooking(look, () => Promise.all([...[0, 1, 2, 3].map(produce), ...[0, 1, 2, 3, 4, 5, 6, 7].map(consume)]));
      assert.equal(seen.size, total);
      await counts(poller, JOBS, 0, 0);
      assert.deepEqual(await everyMessage(poller, JOBS), []);
    },
  },
  {
    name: "several named queues are answered in the order asked for, from one snapshot",
    async run({ backend }) {
      await make(backend, "b", "a", "c/d");
      await put(backend, name("a"), "1");
      await put(backend, name("c/d"), "1", "2");
      await take(backend, name("c/d"));
      assert.deepEqual(await backend.statuses({ queues: ["c/d", "a", "b"].map(name) }), [
        { queue: "c/d", pending: 1, processing: 1 },
        { queue: "a", pending: 1, processing: 0 },
        { queue: "b", pending: 0, processing: 0 },
      ]);
      assert.deepEqual(await backend.statuses({ queues: [] }), []);
      const message = await refused(() => backend.statuses({ queues: ["a", "gone", "b"].map(name) }), "queue-not-found");
      assert.match(message, /gone/);
    },
  },
  {
    name: "a subtree is answered in the order of listing, and may be empty",
    async run({ backend }) {
      await make(backend, "a/z", "a", "a_b", "a/b/c", "b");
      await put(backend, name("a/b/c"), "1");
      assert.deepEqual(await backend.statuses({ under: name("a") }), [
        { queue: "a", pending: 0, processing: 0 },
        { queue: "a/b/c", pending: 1, processing: 0 },
        { queue: "a/z", pending: 0, processing: 0 },
      ]);
      assert.deepEqual(
        (await backend.statuses({ under: "" })).map((one) => one.queue),
        ["a", "a/b/c", "a/z", "a_b", "b"],
      );
      assert.deepEqual(
        (await backend.statuses({ under: name("a/b") })).map((one) => one.queue),
        ["a/b/c"],
      );
      assert.deepEqual(await backend.statuses({ under: name("nothing") }), []);
    },
  },
  {
    name: "a snapshot takes thousands of named queues, and refuses more than it can",
    async run({ backend }) {
      const queues = Array.from({ length: 1500 }, (_, index) => name(`q${index}`));
      await Promise.all(queues.map((queue) => backend.createQueue(queue)));
      await put(backend, name("q1499"), "1");
      const statuses = await backend.statuses({ queues: queues.toReversed() });
      assert.deepEqual(
        statuses.map((one) => one.queue),
        queues.toReversed(),
      );
      assert.deepEqual(statuses[0], { queue: "q1499", pending: 1, processing: 0 });
      assert.equal((await backend.statuses({ under: "" })).length, 1500);
      await refused(
        () => backend.statuses({ queues: Array.from({ length: MAX_SNAPSHOT_QUEUES + 1 }, () => name("q0")) }),
        "invalid-argument",
      );
      await refused(() => backend.mark({ queues: Array.from({ length: MAX_SNAPSHOT_QUEUES + 1 }, () => name("q0")) }), "invalid-argument");
    },
  },
  {
    name: "hand-offs by a handler that enqueues before it acks are never missed by a snapshot of both queues",
    async run({ backend, open }) {
      await make(backend, "a", "b");
      const poller = await open();
      await put(backend, name("a"), "work");
      const look = async (): Promise<void> => {
        for (const selection of [{ queues: ["b", "a"].map(name) }, { queues: ["a", "b"].map(name) }, { under: "" as const }]) {
          assert.equal(isComplete(await poller.statuses(selection)), false, "work existed throughout");
        }
      };
      await whileLooking(look, async () => {
        for (let round = 0; round < 100; round += 1) {
          const [from, to] = round % 2 ? [name("b"), name("a")] : [name("a"), name("b")];
          const held = await take(backend, from);
          await backend.enqueue(to, [{ data: held.data }]);
          await ack(backend, from, held);
        }
      });
    },
  },
]);
