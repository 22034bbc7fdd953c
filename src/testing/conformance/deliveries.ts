/** Handing out: dequeue, its limit, receipts, leases and recovery of ended ones, counts of deliveries. */

import assert from "node:assert/strict";
import { DEFAULT_LEASE_MS, MAX_DEQUEUE_LIMIT, MAX_LEASE_MS } from "../../core/limits.ts";
import { section } from "./case.ts";
import {
  ack,
  ackOutcome,
  assertStale,
  bytes,
  content,
  counts,
  empty,
  everyMessage,
  id,
  JOBS,
  make,
  name,
  put,
  recoverAll,
  refused,
  take,
  takeTexts,
} from "./steps.ts";

/** The cases of the section "deliveries". */
export const deliveryCases = section("deliveries", [
  {
    name: "a dequeue moves a message from pending to processing, with receipt, lease and count",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const [made] = await put(backend, JOBS, "a", "b");
      const delivered = await take(backend, JOBS);
      assert.equal(delivered.id, made);
      assert.equal(content(delivered), "a");
      assert.match(delivered.receipt, /^r-/);
      assert.equal(delivered.leaseMs, DEFAULT_LEASE_MS);
      assert.equal(delivered.deliveryCount, 1);
      await counts(backend, JOBS, 1, 1);
      await counts(await open(), JOBS, 1, 1);
    },
  },
  {
    name: "no message is handed to two, by whatever clients",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const clients = [backend, await open(), await open()];
      await put(backend, JOBS, ...Array.from({ length: 300 }, (_, index) => String(index)));
      const taken: string[] = [];
      await Promise.all(
        clients.flatMap((client) =>
          [1, 2, 3].map(async (limit) => {
            for (;;) {
              const some = await client.dequeue(JOBS, { limit });
              if (some.length === 0) return;
              taken.push(...some.map(content));
            }
          }),
        ),
      );
      assert.equal(taken.length, 300);
      assert.equal(new Set(taken).size, 300);
      await counts(backend, JOBS, 0, 300);
    },
  },
  {
    name: "a dequeue gives as many as asked for, as many as there are, and an empty array when there is nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.deepEqual(await backend.dequeue(JOBS, { limit: 5 }), []);
      await put(backend, JOBS, "1", "2", "3", "4", "5");
      assert.deepEqual(await takeTexts(backend, JOBS, 3), ["1", "2", "3"]);
      assert.deepEqual(await takeTexts(backend, JOBS, 3), ["4", "5"]);
      assert.deepEqual(await backend.dequeue(JOBS, { limit: 3 }), []);
      await counts(backend, JOBS, 0, 5);
    },
  },
  {
    name: "one dequeue gives up to a thousand, in order, each with its own receipt",
    async run({ backend }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 1100 }, (_, index) => String(index));
      await put(backend, JOBS, ...texts);
      const delivered = await backend.dequeue(JOBS, { limit: MAX_DEQUEUE_LIMIT });
      assert.deepEqual(delivered.map(content), texts.slice(0, 1000));
      assert.equal(new Set(delivered.map((one) => one.receipt)).size, 1000);
      await ack(backend, JOBS, ...delivered);
      await counts(backend, JOBS, 100, 0);
    },
  },
  {
    name: "refused options take nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      for (const options of [
        { limit: 0 },
        { limit: -1 },
        { limit: 1001 },
        { limit: 1.5 },
        { limit: Number.NaN },
        { limit: "1" },
        { leaseMs: 9 },
        { leaseMs: MAX_LEASE_MS + 1 },
        { leaseMs: 10.5 },
        { leaseMs: null },
        { owner: "me" },
        { requestId: 5 },
        { limits: 1 },
        { lease: 1000 },
        "text",
        5,
      ]) {
        await refused(() => backend.dequeue(JOBS, options as never), "invalid-argument");
      }
      for (const requestId of ["", "a b", "x".repeat(256), "\u0000"])
        await refused(() => backend.dequeue(JOBS, { requestId }), "invalid-name");
      await counts(backend, JOBS, 1, 0);
      assert.equal((await take(backend, JOBS)).deliveryCount, 1);
    },
  },
  {
    name: "whoever holds the delivery, its lease is the one asked for",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "process", "receipt");
      const first = await take(backend, JOBS, { owner: "process", leaseMs: spanMs });
      const second = await take(backend, JOBS, { owner: "receipt", leaseMs: spanMs * 20 });
      assert.deepEqual([first.leaseMs, second.leaseMs], [spanMs, spanMs * 20]);
      await passTime(spanMs);
      assert.deepEqual(await recoverAll(backend), { recovered: 1, dead: 0 });
      await counts(backend, JOBS, 1, 1);
      assert.equal(await ackOutcome(backend, JOBS, second.receipt), "acked");
    },
  },
  {
    name: "an ended lease is recovered by the next dequeue, before it looks, and the message has its old place",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const held = await backend.dequeue(JOBS, { limit: 2, leaseMs: spanMs });
      await put(backend, JOBS, "4");
      await counts(backend, JOBS, 2, 2);
      await passTime(spanMs);
      await counts(backend, JOBS, 2, 2);
      const other = await open();
      const again = await other.dequeue(JOBS, { limit: 3 });
      assert.deepEqual(
        again.map((one) => [content(one), one.deliveryCount]),
        [
          ["1", 2],
          ["2", 2],
          ["3", 1],
        ],
      );
      assert.deepEqual(
        again.slice(0, 2).map((one) => one.id),
        held.map((one) => one.id),
      );
      await counts(backend, JOBS, 1, 3);
      for (const one of held) await assertStale(backend, JOBS, one.receipt);
      await ack(other, JOBS, ...again);
    },
  },
  {
    name: "before it ends, a lease holds against dequeue, recovery and opening the store twenty times",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS, "other");
      await put(backend, JOBS, "a");
      const held = await take(backend, JOBS, { leaseMs: spanMs * 100 });
      for (let time = 0; time < 20; time += 1) {
        const other = await open();
        await empty(other, JOBS);
        assert.deepEqual(await recoverAll(other), { recovered: 0, dead: 0 });
        await counts(other, JOBS, 0, 1);
        await other.close();
      }
      await passTime(spanMs);
      await empty(backend, JOBS);
      assert.deepEqual(await recoverAll(backend), { recovered: 0, dead: 0 });
      assert.equal(await ackOutcome(backend, JOBS, held.receipt), "acked");
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "a lease ends exactly when its time has passed, neither a millisecond before nor after",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      for (const leaseMs of [10, 30_000, MAX_LEASE_MS]) {
        await take(backend, JOBS, { leaseMs });
        await passTime(leaseMs - 1);
        await empty(backend, JOBS);
        await passTime(1);
        const again = await take(backend, JOBS, { leaseMs: 1000 });
        await backend.release(JOBS, [again.receipt]);
      }
    },
  },
  {
    name: "a step of the wall clock, forward or back, ends no lease, delay or memory early or late",
    needs: ["manual-clock", "wall-clock-steps"],
    async run({ backend, passTime, stepWall }) {
      await make(backend, JOBS);
      const dayMs = 24 * 3600 * 1000;
      for (const step of [dayMs, -2 * dayMs, dayMs]) {
        await backend.enqueue(JOBS, [{ data: bytes("late"), delayMs: 5000 }, { data: bytes("a") }]);
        await take(backend, JOBS, { leaseMs: 5000 });
        stepWall(step);
        await empty(backend, JOBS);
        assert.deepEqual(await recoverAll(backend), { recovered: 0, dead: 0 });
        await passTime(4999);
        await empty(backend, JOBS);
        await passTime(1);
        assert.deepEqual(await takeTexts(backend, JOBS), ["late", "a"]);
        await backend.clear(JOBS);
      }
    },
  },
  {
    name: "a late ack is fenced: the message belongs to whoever has it now",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      const other = await open();
      const first = await take(backend, JOBS, { leaseMs: spanMs });
      await passTime(spanMs);
      const second = await take(other, JOBS);
      assert.notEqual(second.receipt, first.receipt);
      await assertStale(backend, JOBS, first.receipt);
      await counts(backend, JOBS, 0, 1);
      await ack(other, JOBS, second);
      await counts(backend, JOBS, 0, 0);
      await assertStale(backend, JOBS, first.receipt);
      await assertStale(backend, JOBS, second.receipt);
    },
  },
  {
    name: "a delivery whose lease ended but was not recovered is still current: it can be acked, extended, nacked and released",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "ack", "extend", "nack", "release");
      const held = await backend.dequeue(JOBS, { limit: 4, leaseMs: spanMs });
      const [toAck, toExtend, toNack, toRelease] = held.map((one) => one.receipt);
      assert.ok(toAck && toExtend && toNack && toRelease);
      await passTime(spanMs);
      assert.equal(await ackOutcome(backend, JOBS, toAck), "acked");
      assert.deepEqual(await backend.extend(JOBS, [{ receipt: toExtend, leaseMs: spanMs * 100 }]), ["extended"]);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: toNack }]), ["pending"]);
      assert.deepEqual(await backend.release(JOBS, [toRelease]), ["released"]);
      assert.deepEqual(await recoverAll(backend), { recovered: 0, dead: 0 });
      await counts(backend, JOBS, 2, 1);
      assert.deepEqual(
        (await backend.dequeue(JOBS, { limit: 5 })).map((one) => [content(one), one.deliveryCount]),
        [
          ["nack", 2],
          ["release", 1],
        ],
      );
      assert.equal(await ackOutcome(backend, JOBS, toExtend), "acked");
    },
  },
  {
    name: "peek shows what a dequeue would take, ended leases included, and changes nothing",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const held = await take(backend, JOBS, { leaseMs: spanMs });
      assert.equal(content((await backend.peek(JOBS)) ?? held), "2");
      await passTime(spanMs);
      const peeked = await backend.peek(JOBS);
      assert.ok(peeked);
      assert.deepEqual([content(peeked), peeked.id, peeked.deliveryCount], ["1", held.id, 1]);
      await counts(backend, JOBS, 1, 1);
      assert.equal(await ackOutcome(backend, JOBS, held.receipt), "acked");
      assert.equal(content((await backend.peek(JOBS)) ?? held), "2");
    },
  },
  {
    name: "extend renews the lease from now, and may also shorten it",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "longer", "shorter");
      const [longer, shorter] = await backend.dequeue(JOBS, { limit: 2, leaseMs: spanMs * 2 });
      assert.ok(longer && shorter);
      assert.deepEqual(
        await backend.extend(JOBS, [
          { receipt: longer.receipt, leaseMs: spanMs * 100 },
          { receipt: shorter.receipt, leaseMs: 10 },
          { receipt: "r-1-1-1" as never, leaseMs: 1000 },
        ]),
        ["extended", "extended", "stale"],
      );
      await passTime(spanMs);
      assert.deepEqual(await takeTexts(backend, JOBS), ["shorter"]);
      await passTime(spanMs * 2);
      assert.deepEqual(await recoverAll(backend), { recovered: 0, dead: 0 });
      assert.equal(await ackOutcome(backend, JOBS, longer.receipt), "acked");
      await assertStale(backend, JOBS, shorter.receipt);
    },
  },
  {
    name: "a delivery kept alive by extending is delivered once, however long it takes",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      const other = await open();
      const held = await take(backend, JOBS, { leaseMs: spanMs * 2 });
      for (let time = 0; time < 5; time += 1) {
        await passTime(spanMs);
        assert.deepEqual(await backend.extend(JOBS, [{ receipt: held.receipt, leaseMs: spanMs * 2 }]), ["extended"]);
        await empty(other, JOBS);
      }
      await ack(backend, JOBS, held);
    },
  },
  {
    name: "the lease counts from the dequeue, however long the message waited before",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      await passTime(spanMs * 2);
      const held = await take(backend, JOBS, { leaseMs: spanMs });
      await empty(backend, JOBS);
      assert.deepEqual(await recoverAll(backend), { recovered: 0, dead: 0 });
      await ack(backend, JOBS, held);
    },
  },
  {
    name: "refused leases of an extend change nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      const held = await take(backend, JOBS);
      for (const leaseMs of [0, 9, -1, MAX_LEASE_MS + 1, Number.NaN, "1000", undefined]) {
        await refused(() => backend.extend(JOBS, [{ receipt: held.receipt, leaseMs: leaseMs as never }]), "invalid-argument");
      }
      await ack(backend, JOBS, held);
    },
  },
  {
    name: "the delivery count counts every delivery, lost ones too, but not released ones",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      const seen: number[] = [];
      for (const end of ["lost", "release", "nack", "release", "release", "lost"]) {
        const held = await take(backend, JOBS, { leaseMs: spanMs });
        seen.push(held.deliveryCount);
        if (end === "nack") assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt }]), ["pending"]);
        else if (end === "release") assert.deepEqual(await backend.release(JOBS, [held.receipt]), ["released"]);
        else {
          await passTime(spanMs);
          assert.deepEqual(await recoverAll(backend), { recovered: 1, dead: 0 });
        }
      }
      assert.deepEqual(seen, [1, 2, 2, 3, 3, 3]);
      const [listed] = await everyMessage(backend, JOBS);
      assert.equal(listed?.deliveryCount, 3);
      assert.equal((await take(backend, JOBS)).deliveryCount, 4);
    },
  },
  {
    name: "malformed, foreign and invented receipts are stale, in a batch beside good ones",
    async run({ backend }) {
      await make(backend, JOBS, "other");
      await put(backend, JOBS, "a");
      await put(backend, name("other"), "b");
      const held = await take(backend, JOBS);
      const foreign = await take(backend, name("other"));
      const parts = held.receipt.split("-");
      const invented = [
        "r-",
        "r-1",
        "x",
        "0",
        "m-1-1-1",
        "r-zzzzzzzzzzzzzzz-1-1",
        "r-1-1-1",
        "__proto__",
        `${held.receipt}0`,
        held.receipt.toUpperCase(),
        `${held.receipt}-1`,
        held.id,
        foreign.receipt,
        `r-${parts[1]}-${parts[2]}-1`,
        `r-${parts[1]}-0${parts[2]}-${parts[3]}`,
        `r-${parts[2]}-${parts[1]}-${parts[3]}x`,
      ];
      for (const one of invented) await assertStale(backend, JOBS, one as never);
      assert.deepEqual(
        (
          await backend.ack(
            JOBS,
            [...invented, held.receipt, held.receipt].map((one) => ({ receipt: one as never })),
          )
        ).map((answer) => answer.outcome),
        [...invented.map(() => "stale"), "acked", "stale"],
      );
      await counts(backend, JOBS, 0, 0);
      await counts(backend, name("other"), 0, 1);
      assert.deepEqual(await backend.ackById(name("other"), [id("a"), foreign.id]), ["not-in-processing", "acked"]);
    },
  },
]);
