/** Messages given up on: how they come, and how they go. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import {
  ack,
  assertStale,
  comparable,
  content,
  counts,
  empty,
  everyDeadLetter,
  everyMessage,
  fingerprint,
  id,
  JOBS,
  make,
  name,
  put,
  recoverAll,
  take,
  takeTexts,
  withId,
} from "./steps.ts";

/** The cases of the section "dead letters". */
export const deadLetterCases = section("dead letters", [
  {
    name: "a message that is given up moves at once, whatever its count, with reason, count, bytes and times",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a", "b");
      const held = await take(backend, JOBS);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true, reason: "no use", delayMs: 50_000 }]), ["dead"]);
      await counts(backend, JOBS, 1, 0);
      const [dead, ...more] = await everyDeadLetter(await open(), JOBS);
      assert.deepEqual(more, []);
      assert.ok(dead);
      assert.deepEqual(Object.keys(dead).toSorted(), ["data", "deliveryCount", "diedAtMs", "enqueuedAtMs", "id", "reason"]);
      assert.deepEqual(
        [dead.id, content(dead), dead.reason, dead.deliveryCount, dead.enqueuedAtMs],
        [held.id, "a", "no use", 1, held.enqueuedAtMs],
      );
      assert.ok(dead.diedAtMs >= dead.enqueuedAtMs);
      await assertStale(backend, JOBS, held.receipt);
      assert.deepEqual(await takeTexts(backend, JOBS), ["b"]);
    },
  },
  {
    name: "at maxDeliveries a nack moves the message, in the same step, with the last reason",
    async run({ backend }) {
      await backend.createQueue(JOBS, { maxDeliveries: 3 });
      await put(backend, JOBS, "poison", ...Array.from({ length: 10 }, (_, index) => `good ${index}`));
      const ends: string[] = [];
      let good = 0;
      for (;;) {
        const [held] = await backend.dequeue(JOBS);
        if (held === undefined) break;
        if (content(held) === "poison") {
          ends.push(
            `${held.deliveryCount} ${(await backend.nack(JOBS, [{ receipt: held.receipt, reason: `failure ${held.deliveryCount}` }]))[0]}`,
          );
        } else {
          await ack(backend, JOBS, held);
          good += 1;
        }
      }
      assert.deepEqual(ends, ["1 pending", "2 pending", "3 dead"]);
      assert.equal(good, 10);
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual(
        (await everyDeadLetter(backend, JOBS)).map((one) => [content(one), one.deliveryCount, one.reason]),
        [["poison", 3, "failure 3"]],
      );
    },
  },
  {
    name: "a nack without a reason, or with an empty one, leaves the last reason there was",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "absent", "empty");
      for (const rest of [{}, { reason: "" }]) {
        const first = await take(backend, JOBS);
        await backend.nack(JOBS, [{ receipt: first.receipt, reason: "it hurts" }]);
        const second = await take(backend, JOBS);
        assert.equal(second.id, first.id);
        assert.deepEqual(await backend.nack(JOBS, [{ receipt: second.receipt, giveUp: true, ...rest }]), ["dead"]);
      }
      assert.deepEqual(
        (await everyDeadLetter(backend, JOBS)).map((one) => [content(one), one.reason]),
        [
          ["absent", "it hurts"],
          ["empty", "it hurts"],
        ],
      );
    },
  },
  {
    name: "at maxDeliveries a recovery moves the message too, with the last reason there was",
    async run({ backend, passTime, spanMs }) {
      await backend.createQueue(JOBS, { maxDeliveries: 2 });
      await put(backend, JOBS, "explained", "silent");
      const [explained] = await backend.dequeue(JOBS, { limit: 2, leaseMs: spanMs });
      await backend.nack(JOBS, [{ receipt: explained?.receipt as never, reason: "it hurts" }]);
      await passTime(spanMs);
      assert.deepEqual(await recoverAll(backend), { recovered: 1, dead: 0 });
      assert.deepEqual(
        (await backend.dequeue(JOBS, { limit: 2, leaseMs: spanMs })).map((one) => one.deliveryCount),
        [2, 2],
      );
      await passTime(spanMs);
      await counts(backend, JOBS, 0, 2);
      assert.deepEqual(await recoverAll(backend), { recovered: 2, dead: 2 });
      await counts(backend, JOBS, 0, 0);
      const dead = (await everyDeadLetter(backend, JOBS)).toSorted((left, right) => (content(left) < content(right) ? -1 : 1));
      assert.deepEqual(
        dead.map((one) => [content(one), one.deliveryCount]),
        [
          ["explained", 2],
          ["silent", 2],
        ],
      );
      assert.equal(dead[0]?.reason, "it hurts");
      assert.match(dead[1]?.reason ?? "", /deliveries used up/);
    },
  },
  {
    name: "at maxDeliveries the recovery inside a dequeue moves the message and gives the next one",
    async run({ backend, passTime, spanMs }) {
      await backend.createQueue(JOBS, { maxDeliveries: 1 });
      await put(backend, JOBS, "poison", "good");
      const held = await take(backend, JOBS, { leaseMs: spanMs });
      await passTime(spanMs);
      assert.deepEqual(await takeTexts(backend, JOBS), ["good"]);
      await counts(backend, JOBS, 0, 1);
      assert.deepEqual((await everyDeadLetter(backend, JOBS)).map(content), ["poison"]);
      await assertStale(backend, JOBS, held.receipt);
    },
  },
  {
    name: "peek passes over a message that a dequeue would move to the dead letters",
    async run({ backend, passTime, spanMs }) {
      await backend.createQueue(JOBS, { maxDeliveries: 1 });
      await put(backend, JOBS, "poison", "good");
      await take(backend, JOBS, { leaseMs: spanMs });
      await passTime(spanMs);
      const peeked = await backend.peek(JOBS);
      assert.equal(peeked && content(peeked), "good");
      await counts(backend, JOBS, 1, 1);
    },
  },
  {
    name: "a release does not use deliveries up, and with maxDeliveries 0 nothing does",
    async run({ backend }) {
      await backend.createQueue(JOBS, { maxDeliveries: 2 });
      await put(backend, JOBS, "a");
      for (let time = 0; time < 5; time += 1)
        assert.deepEqual(await backend.release(JOBS, [(await take(backend, JOBS)).receipt]), ["released"]);
      await backend.configureQueue(JOBS, { maxDeliveries: 0 });
      for (let time = 1; time <= 30; time += 1) {
        const held = await take(backend, JOBS);
        assert.equal(held.deliveryCount, time);
        assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt }]), ["pending"]);
      }
      await counts(backend, JOBS, 1, 0);
    },
  },
  {
    name: "twenty deliveries are the limit unless changed, and a raised limit holds for messages already there",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      const nack = async (): Promise<string | undefined> =>
        (await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt, reason: "again" }]))[0];
      for (let time = 1; time < 20; time += 1) assert.equal(await nack(), "pending", `delivery ${time}`);
      await backend.configureQueue(JOBS, { maxDeliveries: 22 });
      assert.equal(await nack(), "pending");
      assert.equal(await nack(), "pending");
      assert.equal(await nack(), "dead");
      assert.equal((await everyDeadLetter(backend, JOBS))[0]?.deliveryCount, 22);
    },
  },
  {
    name: "a lowered limit holds from the next failure on",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      for (let time = 1; time <= 3; time += 1) await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt }]);
      const held = await take(backend, JOBS);
      await backend.configureQueue(JOBS, { maxDeliveries: 2 });
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt }]), ["dead"]);
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "dead letters are listed in the order they came, page by page",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, ...Array.from({ length: 30 }, (_, index) => String(index)));
      const held = await backend.dequeue(JOBS, { limit: 30 });
      const order = held.toSorted(
        (left, right) =>
          (content(left).at(-1) ?? "").localeCompare(content(right).at(-1) ?? "") || content(left).length - content(right).length,
      );
      for (const one of order) await backend.nack(JOBS, [{ receipt: one.receipt, giveUp: true }]);
      for (const limit of [1, 7, 30, 31])
        assert.deepEqual((await everyDeadLetter(backend, JOBS, limit)).map(content), order.map(content), `pages of ${limit}`);
      const page = await backend.deadLetters(JOBS, { limit: 10 });
      await backend.drop(JOBS, [order[4]?.id as never, order[12]?.id as never]);
      assert.deepEqual(
        (await backend.deadLetters(JOBS, { limit: 3, after: page.next as string })).items.map(content),
        [10, 11, 13].map((index) => content(order[index] as never)),
      );
    },
  },
  {
    name: "a redriven message is pending with its id and bytes, at its old place, with a count of 0",
    async run({ backend }) {
      await backend.createQueue(JOBS, { maxDeliveries: 1 });
      await backend.enqueue(JOBS, [withId("one", "1"), withId("two", "2"), withId("three", "3"), withId("four", "4")]);
      const held = await backend.dequeue(JOBS, { limit: 3 });
      await backend.nack(
        JOBS,
        held.map((one) => ({ receipt: one.receipt, reason: "no" })),
      );
      await put(backend, JOBS, "5");
      assert.deepEqual(await backend.redrive(JOBS, ["three", "unknown", "one", "four", "one"].map(id)), [
        "redriven",
        "not-found",
        "redriven",
        "not-found",
        "not-found",
      ]);
      assert.deepEqual(
        (await everyDeadLetter(backend, JOBS)).map((one) => one.id),
        ["two"],
      );
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((one) => [one.id, content(one), one.deliveryCount, one.state]),
        [
          ["one", "1", 0, "pending"],
          ["three", "3", 0, "pending"],
          ["four", "4", 0, "pending"],
          [(await everyMessage(backend, JOBS))[3]?.id, "5", 0, "pending"],
        ],
      );
      const again = await take(backend, JOBS);
      assert.deepEqual([again.id, again.deliveryCount, again.enqueuedAtMs], ["one", 1, held[0]?.enqueuedAtMs]);
      await assertStale(backend, JOBS, held[0]?.receipt as never);
      await backend.release(JOBS, [again.receipt]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["1", "3", "4", "5"]);
    },
  },
  {
    name: "a redriven message that dies again has the new reason",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      for (const reason of ["first", "second"]) {
        const held = await take(backend, JOBS);
        assert.equal(held.deliveryCount, 1);
        await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true, reason }]);
        assert.deepEqual(
          (await everyDeadLetter(backend, JOBS)).map((one) => [one.id, one.reason]),
          [[held.id, reason]],
        );
        await backend.redrive(JOBS, [held.id]);
      }
    },
  },
  {
    name: "a dropped dead letter is gone for good",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const held = await backend.dequeue(JOBS, { limit: 2 });
      await backend.nack(
        JOBS,
        held.map((one) => ({ receipt: one.receipt, giveUp: true })),
      );
      const [first, second] = held.map((one) => one.id);
      assert.ok(first && second);
      assert.deepEqual(await backend.drop(JOBS, [first, id("unknown"), first]), ["dropped", "not-found", "not-found"]);
      assert.deepEqual(await backend.redrive(JOBS, [first]), ["not-found"]);
      assert.deepEqual(
        (await everyDeadLetter(backend, JOBS)).map((one) => one.id),
        [second],
      );
      await empty(backend, JOBS);
    },
  },
  {
    name: "redrive and drop do not touch live messages or another queue's dead letters",
    async run({ backend }) {
      await make(backend, JOBS, "other");
      await backend.enqueue(JOBS, [withId("held", "1"), withId("waiting", "2")]);
      await backend.enqueue(name("other"), [withId("elsewhere", "3")]);
      await take(backend, JOBS);
      await backend.nack(name("other"), [{ receipt: (await take(backend, name("other"))).receipt, giveUp: true }]);
      const before = [await fingerprint(backend, JOBS), await fingerprint(backend, name("other"))];
      const ids = ["held", "waiting", "elsewhere", "m-1-1-1"] as never[];
      assert.deepEqual(
        await backend.redrive(JOBS, ids),
        ids.map(() => "not-found"),
      );
      assert.deepEqual(
        await backend.drop(JOBS, ids),
        ids.map(() => "not-found"),
      );
      assert.deepEqual([await fingerprint(backend, JOBS), await fingerprint(backend, name("other"))], before);
    },
  },
  {
    name: "a dead letter with a made id keeps that id through redrive",
    async run({ backend }) {
      await make(backend, JOBS);
      const [made] = await put(backend, JOBS, "a");
      await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt, giveUp: true }]);
      assert.deepEqual(await backend.redrive(JOBS, [made as never]), ["redriven"]);
      const again = await take(backend, JOBS);
      assert.equal(again.id, made);
      assert.deepEqual(await backend.ackById(JOBS, [again.id]), ["acked"]);
    },
  },
  {
    name: "a dead letter is not unacked: the queue is complete without it",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt, giveUp: true }]);
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual(await backend.messages(JOBS), { items: [] });
      assert.equal((await backend.statistics(JOBS)).dead, 1);
      assert.deepEqual(await backend.clear(JOBS), { pending: 0, processing: 0 });
      assert.equal((await everyDeadLetter(backend, JOBS)).map(comparable).length, 1);
    },
  },
]);
