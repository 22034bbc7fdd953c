/** Processing back to pending when the lease ended: by call, by itself, bounded. */

import assert from "node:assert/strict";
import { RECOVERY_STEP_ITEMS } from "../../core/limits.ts";
import { section } from "./case.ts";
import {
  assertStale,
  content,
  counts,
  empty,
  eventually,
  everyMessage,
  JOBS,
  make,
  name,
  put,
  recoverAll,
  take,
  takeTexts,
} from "./steps.ts";

/** The cases of the section "recovery". */
export const recoveryCases = section("recovery", [
  {
    name: "with nothing to recover, a step does nothing and says so",
    async run({ backend }) {
      assert.deepEqual(await backend.recover(), { recovered: 0, dead: 0, more: false });
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      await take(backend, JOBS);
      assert.deepEqual(await backend.recover(), { recovered: 0, dead: 0, more: false });
      await counts(backend, JOBS, 1, 1);
    },
  },
  {
    name: "a step takes the ended leases of all queues, and no others; the messages have their old places",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, "a", "b/c");
      await put(backend, name("a"), "1", "2", "3");
      await put(backend, name("b/c"), "4");
      const ended = [...(await backend.dequeue(name("a"), { limit: 2, leaseMs: spanMs }))];
      await backend.dequeue(name("b/c"), { leaseMs: spanMs });
      const held = await take(backend, name("a"), { leaseMs: spanMs * 100 });
      await put(backend, name("a"), "5");
      const other = await open();
      await passTime(spanMs);
      assert.deepEqual(await recoverAll(other), { recovered: 3, dead: 0 });
      await counts(backend, name("a"), 3, 1);
      await counts(backend, name("b/c"), 1, 0);
      for (const one of ended) await assertStale(backend, name("a"), one.receipt);
      assert.deepEqual(
        (await everyMessage(backend, name("a"))).map((one) => [content(one), one.state]),
        [
          ["1", "pending"],
          ["2", "pending"],
          ["3", "processing"],
          ["5", "pending"],
        ],
      );
      assert.deepEqual(
        (await backend.dequeue(name("a"), { limit: 5 })).map((one) => [content(one), one.deliveryCount]),
        [
          ["1", 2],
          ["2", 2],
          ["5", 1],
        ],
      );
      assert.deepEqual(await backend.extend(name("a"), [{ receipt: held.receipt, leaseMs: 1000 }]), ["extended"]);
    },
  },
  {
    name: "a step is bounded, tells that more is to be done, and steps get through it all, keeping the order",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS, "other");
      const texts = Array.from({ length: 1200 }, (_, index) => String(index));
      await put(backend, JOBS, ...texts);
      await put(backend, name("other"), "x");
      for (let round = 0; round < 3; round += 1)
        assert.equal((await backend.dequeue(JOBS, { limit: 400, leaseMs: spanMs * 2 })).length, 400);
      await take(backend, name("other"), { leaseMs: spanMs * 2 });
      await passTime(spanMs * 2);
      let recovered = 0;
      let steps = 0;
      for (;;) {
        const step = await backend.recover();
        steps += 1;
        assert.ok(step.recovered <= RECOVERY_STEP_ITEMS, `a step moves at most ${RECOVERY_STEP_ITEMS}`);
        recovered += step.recovered;
        if (!step.more) break;
        assert.ok(steps < 100, "the steps come to an end");
      }
      assert.equal(recovered, 1201);
      assert.ok(steps >= 3);
      await counts(backend, JOBS, 1200, 0);
      await counts(backend, name("other"), 1, 0);
      assert.deepEqual(await takeTexts(backend, JOBS, 1000), texts.slice(0, 1000));
    },
  },
  {
    name: "a living client recovers by itself, without any call, when the client that took the message is closed",
    options: { sweepIntervalMs: 50 },
    async run(context) {
      const { backend, open, passTime, spanMs } = context;
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const other = await open();
      const held = await take(other, JOBS, { leaseMs: spanMs });
      await other.close();
      await counts(backend, JOBS, 0, 1);
      await passTime(spanMs);
      await eventually(context, "the message is pending again", async () => (await backend.status(JOBS)).pending === 1);
      await counts(backend, JOBS, 0 + 1, 0);
      const again = await take(backend, JOBS);
      assert.deepEqual([again.id, again.deliveryCount], [held.id, 2]);
      await assertStale(backend, JOBS, held.receipt);
    },
  },
  {
    name: "opening a store recovers what had ended while nobody had it open",
    async run(context) {
      const { backend, open, passTime, spanMs } = context;
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      await take(backend, JOBS, { leaseMs: spanMs, owner: "receipt" });
      const kept = await take(backend, JOBS, { leaseMs: spanMs * 1000, owner: "receipt" });
      await backend.close();
      await passTime(spanMs);
      const next = await open();
      await eventually(context, "the message is pending again", async () => (await next.status(JOBS)).pending === 1);
      await counts(next, JOBS, 1, 1);
      assert.deepEqual(await takeTexts(next, JOBS), ["1"]);
      assert.deepEqual(await next.ack(JOBS, [{ receipt: kept.receipt }]), [{ outcome: "acked", forwarded: [] }]);
    },
  },
  {
    name: "a dequeue finds something while ended leases are left, however many ended at once and in whatever order",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 1200 }, (_, index) => String(index));
      await put(backend, JOBS, ...texts);
      const held = await backend.dequeue(JOBS, { limit: 1000, leaseMs: spanMs * 3 });
      const more = await backend.dequeue(JOBS, { limit: 200, leaseMs: spanMs });
      await backend.extend(
        JOBS,
        held.slice(600).map((one) => ({ receipt: one.receipt, leaseMs: spanMs * 2 })),
      );
      assert.equal(more.length, 200);
      await passTime(spanMs * 3);
      const again: string[] = [];
      for (;;) {
        const some = await backend.dequeue(JOBS, { limit: 70, leaseMs: 600_000 });
        if (some.length === 0) break;
        for (const one of some) assert.equal(one.deliveryCount, 2);
        again.push(...some.map(content));
      }
      assert.deepEqual(again.toSorted(), texts.toSorted(), "each came back once");
      await counts(backend, JOBS, 0, 1200);
    },
  },
  {
    name: "recoveries at once by many clients recover each delivery once",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, ...Array.from({ length: 300 }, (_, index) => String(index)));
      const clients = [backend, await open(), await open()];
      await backend.dequeue(JOBS, { limit: 300, leaseMs: spanMs });
      await passTime(spanMs);
      const steps = await Promise.all([...clients, ...clients].map((client) => recoverAll(client)));
      assert.equal(
        steps.reduce((sum, step) => sum + step.recovered, 0),
        300,
      );
      await counts(backend, JOBS, 300, 0);
      assert.equal((await backend.statistics(JOBS)).returned, 300);
    },
  },
  {
    name: "closing a client returns nothing: its deliveries stay in processing until their lease ends",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const other = await open();
      const held = await take(other, JOBS, { leaseMs: spanMs });
      await other.close();
      await empty(backend, JOBS);
      await counts(backend, JOBS, 0, 1);
      assert.deepEqual(await backend.extend(JOBS, [{ receipt: held.receipt, leaseMs: spanMs }]), ["extended"]);
      await passTime(spanMs);
      assert.deepEqual(await takeTexts(backend, JOBS), ["1"]);
    },
  },
]);
