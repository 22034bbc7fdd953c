/** Making, listing, configuring and removing queues. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import { DEFAULT_MAX_DELIVERIES } from "../../core/limits.ts";
import type { QueueName } from "../../core/names.ts";
import { section } from "./case.ts";
import {
  ackOutcome,
  assertStale,
  counts,
  empty,
  everyListed,
  everyMessage,
  id,
  JOBS,
  make,
  name,
  put,
  refused,
  take,
  takeTexts,
  whileLooking,
  withId,
} from "./steps.ts";

async function listed(backend: Backend, under: QueueName | "" = "", limit = 1000): Promise<string[]> {
  return everyListed((after) => backend.listQueues(after === undefined ? { under, limit } : { under, limit, after }));
}

/** The cases of the section "queues". */
export const queueCases = section("queues", [
  {
    name: "a queue is made once; making it again answers exists and changes nothing",
    async run({ backend }) {
      assert.equal(await backend.createQueue(JOBS, { maxDeliveries: 3 }), "created");
      await put(backend, JOBS, "a");
      assert.equal(await backend.createQueue(JOBS, { maxDeliveries: 7 }), "exists");
      await counts(backend, JOBS, 1, 0);
      assert.deepEqual((await backend.statistics(JOBS)).settings, { maxDeliveries: 3 });
    },
  },
  {
    name: "of many clients that make a queue at once, exactly one made it",
    async run({ backend, open }) {
      const other = await open();
      const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 2 ? backend : other).createQueue(JOBS)));
      assert.equal(answers.filter((answer) => answer === "created").length, 1);
      assert.equal(answers.filter((answer) => answer === "exists").length, 19);
    },
  },
  {
    name: "a new queue is empty, for every client",
    async run({ backend, open }) {
      const other = await open();
      await make(backend, JOBS);
      for (const client of [backend, other]) {
        await counts(client, JOBS, 0, 0);
        await empty(client, JOBS);
        assert.equal(await client.peek(JOBS), undefined);
        assert.deepEqual(await client.messages(JOBS), { items: [] });
        assert.deepEqual(await client.deadLetters(JOBS), { items: [] });
      }
    },
  },
  {
    name: "every use of a missing queue is not-found, never an empty answer",
    async run({ backend }) {
      await make(backend, "jobs2", "jobs/child");
      const uses: Record<string, () => Promise<unknown>> = {
        configureQueue: () => backend.configureQueue(JOBS, { maxDeliveries: 3 }),
        removeQueue: () => backend.removeQueue(name("job")),
        "removeQueue, recursive": () => backend.removeQueue(name("job"), { recursive: true }),
        enqueue: () => backend.enqueue(JOBS, [{ data: new Uint8Array(1) }]),
        "enqueue of nothing": () => backend.enqueue(JOBS, []),
        dequeue: () => backend.dequeue(JOBS),
        "dequeue with a request id": () => backend.dequeue(JOBS, { requestId: "q1" }),
        ack: () => backend.ack(JOBS, [{ receipt: "r-1-1-1" as never }]),
        ackById: () => backend.ackById(JOBS, [id("x")]),
        nack: () => backend.nack(JOBS, [{ receipt: "r-1-1-1" as never }]),
        release: () => backend.release(JOBS, ["r-1-1-1" as never]),
        extend: () => backend.extend(JOBS, [{ receipt: "r-1-1-1" as never, leaseMs: 1000 }]),
        nextDue: () => backend.nextDue(JOBS),
        peek: () => backend.peek(JOBS),
        messages: () => backend.messages(JOBS),
        clear: () => backend.clear(JOBS),
        status: () => backend.status(JOBS),
        statuses: () => backend.statuses({ queues: [name("jobs2"), JOBS] }),
        mark: () => backend.mark({ queues: [JOBS] }),
        statistics: () => backend.statistics(JOBS),
        deadLetters: () => backend.deadLetters(JOBS),
        redrive: () => backend.redrive(JOBS, [id("x")]),
        drop: () => backend.drop(JOBS, [id("x")]),
      };
      for (const [what, use] of Object.entries(uses)) {
        const message = await refused(use, "queue-not-found");
        assert.match(message, /not found/, what);
      }
      assert.deepEqual(await listed(backend), ["jobs/child", "jobs2"], "nothing was made on the way");
    },
  },
  {
    name: "settings start with the defaults, and change only where told",
    async run({ backend, open }) {
      await make(backend, JOBS);
      assert.deepEqual((await backend.statistics(JOBS)).settings, { maxDeliveries: DEFAULT_MAX_DELIVERIES });
      assert.deepEqual(await backend.configureQueue(JOBS, { maxDeliveries: 0 }), { maxDeliveries: 0 });
      assert.deepEqual(await backend.configureQueue(JOBS, {}), { maxDeliveries: 0 });
      assert.deepEqual((await (await open()).statistics(JOBS)).settings, { maxDeliveries: 0 });
    },
  },
  {
    name: "a refused setting makes and changes nothing",
    async run({ backend }) {
      await make(backend, "other");
      for (const settings of [
        { maxDeliveries: -1 },
        { maxDeliveries: 1.5 },
        { maxDeliveries: 1_000_001 },
        { maxDeliveries: "3" },
        { maxDeliverys: 3 },
      ]) {
        await refused(() => backend.createQueue(JOBS, settings as never), "invalid-argument");
        await refused(() => backend.configureQueue(name("other"), settings as never), "invalid-argument");
      }
      assert.deepEqual(await listed(backend), ["other"]);
      assert.deepEqual((await backend.statistics(name("other"))).settings, { maxDeliveries: DEFAULT_MAX_DELIVERIES });
    },
  },
  {
    name: "queues may lie under queues, and parents are not made on the way",
    async run({ backend }) {
      await make(backend, "a/b/c", "a");
      assert.deepEqual(await listed(backend), ["a", "a/b/c"]);
      await refused(() => backend.status(name("a/b")), "queue-not-found");
      await put(backend, name("a"), "parent");
      await put(backend, name("a/b/c"), "child");
      assert.deepEqual(await takeTexts(backend, name("a")), ["parent"]);
      assert.deepEqual(await takeTexts(backend, name("a/b/c")), ["child"]);
    },
  },
  {
    name: "a listing holds the queues at and under a path, in byte order, and no neighbours",
    async run({ backend }) {
      const order = ["a", "a b", "a!", "a-b", "a.b", "a/b", "a/b/c", "a/z", "a0", "aa", "b"];
      await make(backend, ...order.toReversed());
      assert.deepEqual(await listed(backend), order);
      assert.deepEqual(await listed(backend, name("a")), ["a", "a/b", "a/b/c", "a/z"]);
      assert.deepEqual(await listed(backend, name("a/b")), ["a/b", "a/b/c"]);
      assert.deepEqual(await listed(backend, name("c")), []);
      assert.deepEqual(await listed(backend, name("a/b/c/d")), []);
    },
  },
  {
    name: "a listing is paged: each page leads on, the last has no next, and after may be any text",
    async run({ backend }) {
      const all = Array.from({ length: 25 }, (_, index) => `q/${String(index).padStart(2, "0")}`);
      await make(backend, ...all, "p", "r");
      for (const limit of [1, 7, 25, 26]) assert.deepEqual(await listed(backend, name("q"), limit), all, `pages of ${limit}`);
      const page = await backend.listQueues({ under: name("q"), limit: 5 });
      assert.deepEqual(page.items, all.slice(0, 5));
      assert.ok(page.next !== undefined);
      assert.deepEqual((await backend.listQueues({ under: name("q"), after: "q/055", limit: 2 })).items, ["q/06", "q/07"]);
      assert.deepEqual((await backend.listQueues({ under: name("q"), after: "q/%_*[\u0000", limit: 1 })).items, ["q/00"]);
      assert.deepEqual((await backend.listQueues({ after: "z" })).items, []);
      assert.equal((await backend.listQueues({ limit: 27 })).next, undefined, "a page that holds the last entry has no next");
    },
  },
  {
    name: "a listing skips and repeats nothing that stayed, while queues come and go between its pages",
    async run({ backend }) {
      await make(backend, "b", "d", "f", "h");
      const first = await backend.listQueues({ limit: 2 });
      assert.deepEqual(first.items, ["b", "d"]);
      await backend.removeQueue(name("d"));
      await make(backend, "a", "e");
      const second = await backend.listQueues({ limit: 10, after: first.next as string });
      assert.deepEqual(second.items, ["e", "f", "h"]);
    },
  },
  {
    name: "removing a queue removes its messages and dead letters, and its receipts are stale",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a", "b", "c");
      const held = await take(backend, JOBS);
      const dead = await take(backend, JOBS);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: dead.receipt, giveUp: true }]), ["dead"]);
      assert.equal(await backend.removeQueue(JOBS), 1);
      await refused(() => backend.status(JOBS), "queue-not-found");
      await refused(() => backend.ack(JOBS, [{ receipt: held.receipt }]), "queue-not-found");
      assert.deepEqual(await listed(await open()), []);
      await refused(() => backend.removeQueue(JOBS), "queue-not-found");
    },
  },
  {
    name: "a queue made anew starts at (0,0): no message, dead letter, count, setting, id or receipt of the old one lives on",
    async run({ backend }) {
      assert.equal(await backend.createQueue(JOBS, { maxDeliveries: 2 }), "created");
      await backend.enqueue(JOBS, [withId("x", "old"), withId("y", "old"), withId("z", "old")]);
      const held = await take(backend, JOBS);
      const asked = await take(backend, JOBS, { requestId: "q1" });
      await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt, giveUp: true }]);
      await backend.removeQueue(JOBS);
      await make(backend, JOBS);
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual(await backend.messages(JOBS), { items: [] });
      assert.deepEqual(await backend.deadLetters(JOBS), { items: [] });
      const statistics = await backend.statistics(JOBS);
      assert.deepEqual(
        { ...statistics, createdAtMs: 0 },
        {
          pending: 0,
          processing: 0,
          delayed: 0,
          dead: 0,
          enqueued: 0,
          delivered: 0,
          acked: 0,
          returned: 0,
          deadLettered: 0,
          cleared: 0,
          createdAtMs: 0,
          settings: { maxDeliveries: DEFAULT_MAX_DELIVERIES },
        },
      );
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "new")]), [{ outcome: "enqueued", id: "x" }]);
      await assertStale(backend, JOBS, held.receipt);
      await assertStale(backend, JOBS, asked.receipt);
      assert.deepEqual(await backend.ackById(JOBS, [id("y")]), ["not-in-processing"]);
      assert.deepEqual(await backend.redrive(JOBS, [id("z")]), ["not-found"]);
      const fresh = await take(backend, JOBS, { requestId: "q1" });
      assert.equal(fresh.id, "x");
      assert.equal(fresh.deliveryCount, 1);
      await assertStale(backend, JOBS, held.receipt);
      assert.equal(await ackOutcome(backend, JOBS, fresh.receipt), "acked");
    },
  },
  {
    name: "receipts and made ids differ between the lives of a queue",
    async run({ backend }) {
      const seen = new Set<string>();
      for (let life = 0; life < 5; life += 1) {
        await make(backend, JOBS);
        const [made] = await put(backend, JOBS, "same");
        const delivered = await take(backend, JOBS);
        assert.equal(delivered.id, made);
        for (const one of [delivered.id, delivered.receipt]) {
          assert.ok(!seen.has(one), `${one} is new`);
          seen.add(one);
        }
        await backend.removeQueue(JOBS);
      }
    },
  },
  {
    name: "a queue with queues under it is removed only recursively, and then with all of them and no neighbour",
    async run({ backend }) {
      await make(backend, "a", "a/b", "a/b/c", "a_b", "ab", "a b", "A", "b/a");
      await put(backend, name("a/b/c"), "deep");
      await refused(() => backend.removeQueue(name("a")), "not-empty");
      await refused(() => backend.removeQueue(name("a"), { recursive: false }), "not-empty");
      assert.equal((await listed(backend)).length, 8, "a refused removal removes nothing");
      assert.equal(await backend.removeQueue(name("a"), { recursive: true }), 3);
      assert.deepEqual(await listed(backend), ["A", "a b", "a_b", "ab", "b/a"]);
      await refused(() => backend.removeQueue(name("a"), { recursive: true }), "queue-not-found");
    },
  },
  {
    name: "a plain directory is removed only recursively, with the queues under it",
    async run({ backend }) {
      await make(backend, "d/x", "d/y/z", "e/x");
      await refused(() => backend.removeQueue(name("d")), "not-empty");
      assert.equal(await backend.removeQueue(name("d"), { recursive: true }), 2);
      assert.deepEqual(await listed(backend), ["e/x"]);
    },
  },
  {
    name: "a leaf goes without recursive, and its parent stays",
    async run({ backend }) {
      await make(backend, "a", "a/b");
      assert.equal(await backend.removeQueue(name("a/b")), 1);
      assert.equal(await backend.removeQueue(name("a")), 1);
      assert.deepEqual(await listed(backend), []);
    },
  },
  {
    name: "removing a thousand queues under a path is one step",
    async run({ backend, open }) {
      const other = await open();
      const all = Array.from({ length: 1000 }, (_, index) => name(`big/${index}`));
      await Promise.all(all.map((queue) => backend.createQueue(queue)));
      await put(backend, name("big/7"), "a");
      let seen = 1000;
      const look = async (): Promise<void> => {
        const found = (await other.statuses({ under: name("big") })).length;
        assert.ok(found === 1000 || found === 0, `all or none, not ${found}`);
        assert.ok(found <= seen);
        seen = found;
      };
      assert.equal(await whileLooking(look, () => backend.removeQueue(name("big"), { recursive: true })), 1000);
      assert.deepEqual(await other.statuses({ under: name("big") }), []);
      await make(backend, "big/7");
      assert.deepEqual(await everyMessage(backend, name("big/7")), []);
    },
  },
]);
