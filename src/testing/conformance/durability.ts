/** What outlives all clients of a durable store: everything. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import {
  ack,
  bytes,
  comparable,
  content,
  counts,
  everyDeadLetter,
  fingerprint,
  JOBS,
  make,
  name,
  put,
  sameBytes,
  take,
  withId,
} from "./steps.ts";

/** The cases of the section "durability". */
export const durabilityCases = section("durability", [
  {
    name: "queues, settings, messages, deliveries, delays, dead letters and statistics are the same after all clients were closed",
    needs: ["durable"],
    async run({ backend, open }) {
      await backend.createQueue(JOBS, { maxDeliveries: 7 });
      await make(backend, "jobs/child", "日本/q");
      await put(backend, JOBS, "1", "2", "3", "4", "5");
      await backend.enqueue(JOBS, [withId("late", "6", { delayMs: 600_000 })]);
      const [toNack, toGiveUp, toKeep] = await backend.dequeue(JOBS, { limit: 3, leaseMs: 600_000 });
      assert.ok(toNack && toGiveUp && toKeep);
      await backend.nack(JOBS, [
        { receipt: toNack.receipt, reason: "no" },
        { receipt: toGiveUp.receipt, giveUp: true, reason: "never" },
      ]);
      const before = await fingerprint(backend, JOBS);
      await backend.close();
      const next = await open();
      assert.deepEqual((await next.listQueues()).items, ["jobs", "jobs/child", "日本/q"]);
      assert.deepEqual(await fingerprint(next, JOBS), before);
      await ack(next, JOBS, toKeep);
      const again = await next.dequeue(JOBS, { limit: 10 });
      assert.deepEqual(
        again.map((one) => [content(one), one.deliveryCount]),
        [
          ["1", 2],
          ["4", 1],
          ["5", 1],
        ],
      );
      assert.deepEqual(
        (await everyDeadLetter(next, JOBS)).map((one) => [one.id, one.reason]),
        [[toGiveUp.id, "never"]],
      );
    },
  },
  {
    name: "message ids and request ids are remembered after all clients were closed",
    needs: ["durable"],
    async run({ backend, open }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("acked", "1"), withId("held", "2")]);
      const first = await backend.dequeue(JOBS, { limit: 2, requestId: "q1" });
      await ack(backend, JOBS, first[0] as never);
      await backend.close();
      const next = await open();
      assert.deepEqual(await next.enqueue(JOBS, [withId("acked", "1"), withId("held", "2"), withId("acked", "other")]), [
        { outcome: "repeated", id: "acked" },
        { outcome: "repeated", id: "held" },
        { outcome: "conflict", id: "acked" },
      ]);
      assert.deepEqual((await next.dequeue(JOBS, { limit: 2, requestId: "q1" })).map(comparable), first.map(comparable));
      await counts(next, JOBS, 0, 1);
    },
  },
  {
    name: "made ids and receipts are not used again after all clients were closed",
    needs: ["durable"],
    async run({ backend, open }) {
      await make(backend, JOBS, "gone");
      const seen = new Set<string>();
      let client = backend;
      for (let life = 0; life < 4; life += 1) {
        const [made] = await put(client, JOBS, "x");
        const held = await take(client, JOBS);
        for (const one of [made, held.receipt]) {
          assert.ok(one && !seen.has(one), `${one} is new`);
          seen.add(one);
        }
        if (life % 2) await client.clear(JOBS);
        else await ack(client, JOBS, held);
        await client.removeQueue(name("gone"));
        await make(client, "gone");
        await client.close();
        client = await open();
      }
    },
  },
  {
    name: "what an enqueue answered is there for a client opened afterwards, large and small, many times",
    needs: ["durable"],
    async run({ backend, open }) {
      await make(backend, JOBS);
      let client = backend;
      for (let round = 0; round < 5; round += 1) {
        await client.enqueue(JOBS, [{ data: bytes(`small ${round}`) }, { data: new Uint8Array(300_000).fill(round) }]);
        await client.close();
        client = await open();
        await counts(client, JOBS, 2, 0);
        const [small, large] = await client.dequeue(JOBS, { limit: 2 });
        assert.ok(small && large);
        assert.equal(content(small), `small ${round}`);
        sameBytes(large.data, new Uint8Array(300_000).fill(round), "large");
        await ack(client, JOBS, small, large);
      }
    },
  },
  {
    name: "a mark is still good after all clients were closed",
    needs: ["durable"],
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const mark = await backend.mark({ queues: [JOBS] });
      await put(backend, JOBS, "2");
      await backend.close();
      const next = await open();
      assert.equal((await next.reached(mark)).reached, false);
      await ack(next, JOBS, await take(next, JOBS));
      assert.equal((await next.reached(mark)).reached, true);
    },
  },
]);
