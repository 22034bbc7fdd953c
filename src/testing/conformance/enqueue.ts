/** Storing messages: order, made ids, delays, what is copied. */

import assert from "node:assert/strict";
import { MAX_BATCH_ITEMS } from "../../core/limits.ts";
import { section } from "./case.ts";
import { ack, bytes, content, counts, empty, everyMessage, JOBS, make, name, put, refused, sameBytes, take, takeTexts } from "./steps.ts";

/** The cases of the section "enqueue". */
export const enqueueCases = section("enqueue", [
  {
    name: "first in, first out, whether enqueued in one call or many",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      await put(backend, JOBS, "1", "2", "3");
      await put(other, JOBS, "4");
      await put(backend, JOBS, "5", "6");
      assert.deepEqual(await takeTexts(other, JOBS, 2), ["1", "2"]);
      assert.deepEqual(await takeTexts(backend, JOBS, 1), ["3"]);
      assert.deepEqual(await takeTexts(other, JOBS), ["4", "5", "6"]);
    },
  },
  {
    name: "the store makes an id that marks itself, and never the same one twice",
    async run({ backend, open }) {
      await make(backend, JOBS, "other");
      const other = await open();
      const seen = new Set<string>();
      for (let round = 0; round < 5; round += 1) {
        for (const made of [
          ...(await put(backend, JOBS, "a", "a")),
          ...(await put(other, JOBS, "a")),
          ...(await put(other, name("other"), "a")),
        ]) {
          assert.match(made, /^m-/);
          assert.ok(!seen.has(made), `${made} is new`);
          seen.add(made);
        }
        if (round % 2) await backend.clear(JOBS);
        else await ack(backend, JOBS, ...(await backend.dequeue(JOBS, { limit: 2 })));
      }
    },
  },
  {
    name: "each message of a call gets its own answer, in the order given",
    async run({ backend }) {
      await make(backend, JOBS);
      const ids = await put(backend, JOBS, "a", "b", "c");
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((one) => [one.id, content(one)]),
        [
          [ids[0], "a"],
          [ids[1], "b"],
          [ids[2], "c"],
        ],
      );
    },
  },
  {
    name: "an enqueue of nothing stores nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.deepEqual(await backend.enqueue(JOBS, []), []);
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "a call takes 10,000 messages, keeps their order, and refuses one more without storing any",
    async run({ backend }) {
      await make(backend, JOBS);
      const messages = Array.from({ length: MAX_BATCH_ITEMS }, (_, index) => ({ data: bytes(String(index)) }));
      const answers = await backend.enqueue(JOBS, messages);
      assert.equal(new Set(answers.map((answer) => answer.id)).size, MAX_BATCH_ITEMS);
      await counts(backend, JOBS, MAX_BATCH_ITEMS, 0);
      await refused(() => backend.enqueue(JOBS, [...messages, { data: bytes("one more") }]), "invalid-argument");
      await counts(backend, JOBS, MAX_BATCH_ITEMS, 0);
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map(content),
        messages.map((_, index) => String(index)),
      );
    },
  },
  {
    name: "one refused message refuses the call, and nothing of it is stored",
    async run({ backend }) {
      await make(backend, JOBS);
      const good = { data: bytes("good") };
      for (const bad of [
        { data: "text" },
        { data: undefined },
        {},
        null,
        { data: [1, 2] },
        { data: new ArrayBuffer(2) },
        { data: bytes("x"), delayMs: -1 },
        { data: bytes("x"), delayMs: 0.5 },
        { data: bytes("x"), delayMs: 366 * 24 * 3600 * 1000 + 1 },
        { data: bytes("x"), delayMs: Number.NaN },
        { data: bytes("x"), delayMs: "5" },
      ]) {
        await refused(() => backend.enqueue(JOBS, [good, bad as never, good]), "invalid-argument");
      }
      for (const badId of ["", "a b", "a\n", "m-1", "r-1", "x".repeat(256), "\ud800", 7]) {
        await refused(() => backend.enqueue(JOBS, [good, { id: badId as never, data: bytes("x") }]), "invalid-name");
      }
      await refused(() => backend.enqueue(JOBS, "text" as never), "invalid-argument");
      await counts(backend, JOBS, 0, 0);
      assert.equal((await backend.statistics(JOBS)).enqueued, 0);
    },
  },
  {
    name: "a delayed message counts as pending at once and is delivered not before its time, then at its place by enqueue order",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: bytes("delayed"), delayMs: spanMs }, { data: bytes("second") }]);
      await counts(backend, JOBS, 2, 0);
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((one) => [content(one), one.state]),
        [
          ["delayed", "pending"],
          ["second", "pending"],
        ],
      );
      assert.equal(content((await backend.peek(JOBS)) ?? { data: bytes("nothing") }), "second");
      assert.equal((await backend.statistics(JOBS)).delayed, 1);
      assert.deepEqual(await takeTexts(backend, JOBS), ["second"]);
      await empty(backend, JOBS);
      assert.equal(await backend.peek(JOBS), undefined);
      await put(backend, JOBS, "third");
      await passTime(spanMs);
      await counts(backend, JOBS, 2, 1);
      assert.equal((await backend.statistics(JOBS)).delayed, 0);
      assert.equal(content((await backend.peek(JOBS)) ?? { data: bytes("nothing") }), "delayed");
      assert.deepEqual(await takeTexts(backend, JOBS), ["delayed", "third"]);
    },
  },
  {
    name: "messages whose delays end together or one after another come in enqueue order among those due",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await backend.enqueue(
        JOBS,
        [3000, 1000, 2000, 0, 1000].map((delayMs, index) => ({ data: bytes(`${index}`), delayMs })),
      );
      assert.deepEqual(await takeTexts(backend, JOBS), ["3"]);
      await passTime(999);
      await empty(backend, JOBS);
      await passTime(1);
      assert.deepEqual(await takeTexts(backend, JOBS), ["1", "4"]);
      await passTime(2000);
      assert.deepEqual(await takeTexts(backend, JOBS), ["0", "2"]);
    },
  },
  {
    name: "the longest delay, 366 days, is kept",
    needs: ["manual-clock"],
    async run({ backend, open, passTime }) {
      const dayMs = 24 * 3600 * 1000;
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: bytes("late"), delayMs: 366 * dayMs }]);
      await backend.close();
      await passTime(366 * dayMs - 1);
      const later = await open();
      await empty(later, JOBS);
      await passTime(1);
      assert.deepEqual(await takeTexts(later, JOBS), ["late"]);
    },
  },
  {
    name: "a delayed message goes with clear, and counts at no time afterwards",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: bytes("delayed"), delayMs: spanMs }]);
      assert.deepEqual(await backend.clear(JOBS), { pending: 1, processing: 0 });
      await passTime(spanMs);
      await empty(backend, JOBS);
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "the store copies the bytes: arrays changed after the call, even before its answer, change nothing stored",
    async run({ backend }) {
      await make(backend, JOBS);
      const pool = bytes("..first..second..");
      const first = pool.subarray(2, 7);
      const messages = [{ data: first }, { data: Buffer.from(pool.buffer, 9, 6) }];
      const answer = backend.enqueue(JOBS, messages);
      pool.fill(0);
      messages.length = 0;
      await answer;
      pool.fill(1);
      assert.deepEqual(await takeTexts(backend, JOBS), ["first", "second"]);
    },
  },
  {
    name: "returned bytes are the receiver's own: changing them changes nothing stored and nothing returned elsewhere",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "same", "same2");
      const reads = [
        async () => (await backend.peek(JOBS))?.data,
        async () => (await backend.messages(JOBS)).items[0]?.data,
        async () => (await backend.dequeue(JOBS, { requestId: "q1" }))[0]?.data,
        async () => (await backend.dequeue(JOBS, { requestId: "q1" }))[0]?.data,
        async () => (await backend.messages(JOBS)).items[0]?.data,
      ];
      for (const [index, read] of reads.entries()) {
        const data = await read();
        assert.ok(data);
        sameBytes(data, bytes("same"), `read ${index}`);
        data.fill(0);
      }
      const [held] = await backend.dequeue(JOBS, { requestId: "q1" });
      assert.ok(held);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      (await backend.deadLetters(JOBS)).items[0]?.data.fill(0);
      await backend.redrive(JOBS, [held.id]);
      const again = await take(backend, JOBS);
      sameBytes(again.data, bytes("same"), "after all");
    },
  },
  {
    name: "the time of enqueue is the wall clock's, kept through every delivery",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a");
      const peeked = await backend.peek(JOBS);
      assert.ok(
        peeked && Number.isFinite(peeked.enqueuedAtMs) && peeked.enqueuedAtMs > 1_600_000_000_000,
        `milliseconds since 1970, got ${peeked?.enqueuedAtMs}`,
      );
      await passTime(spanMs);
      const held = await take(backend, JOBS);
      assert.equal(held.enqueuedAtMs, peeked.enqueuedAtMs);
      await backend.release(JOBS, [held.receipt]);
      assert.equal((await take(backend, JOBS)).enqueuedAtMs, peeked.enqueuedAtMs);
      await put(backend, JOBS, "b");
      const later = await take(backend, JOBS);
      assert.ok(later.enqueuedAtMs >= peeked.enqueuedAtMs + spanMs, "a later message is later");
    },
  },
]);
