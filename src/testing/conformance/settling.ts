/** Ending a delivery: ack, ack by id, nack, release. */

import assert from "node:assert/strict";
import { MAX_BATCH_ITEMS, MAX_REASON_CHARACTERS } from "../../core/limits.ts";
import type { Receipt } from "../../core/names.ts";
import { section } from "./case.ts";
import {
  ack,
  ackOutcome,
  assertStale,
  bytes,
  content,
  counts,
  empty,
  everyDeadLetter,
  everyMessage,
  id,
  JOBS,
  make,
  name,
  put,
  refused,
  take,
  takeTexts,
  withId,
} from "./steps.ts";

/** The cases of the section "settling". */
export const settlingCases = section("settling", [
  {
    name: "an ack removes the message for good, and a second one is stale",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "a", "b");
      const held = await take(backend, JOBS);
      assert.deepEqual(await backend.ack(JOBS, [{ receipt: held.receipt }]), [{ outcome: "acked", forwarded: [] }]);
      await counts(backend, JOBS, 1, 0);
      assert.deepEqual((await everyMessage(await open(), JOBS)).map(content), ["b"]);
      await assertStale(backend, JOBS, held.receipt);
    },
  },
  {
    name: "any client may settle a delivery whose receipt it knows",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3", "4");
      const [a, b, c, d] = (await backend.dequeue(JOBS, { limit: 4 })).map((one) => one.receipt);
      assert.ok(a && b && c && d);
      const other = await open();
      assert.equal(await ackOutcome(other, JOBS, a), "acked");
      assert.deepEqual(await other.nack(JOBS, [{ receipt: b }]), ["pending"]);
      assert.deepEqual(await other.release(JOBS, [c]), ["released"]);
      assert.deepEqual(await other.extend(JOBS, [{ receipt: d, leaseMs: 50_000 }]), ["extended"]);
      await counts(backend, JOBS, 2, 1);
    },
  },
  {
    name: "each ack of a call gets its own answer: acked, or stale where the receipt is used, twice or unknown",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const [one, two, three] = (await backend.dequeue(JOBS, { limit: 3 })).map((delivered) => delivered.receipt) as [
        Receipt,
        Receipt,
        Receipt,
      ];
      await ack(backend, JOBS, { receipt: two });
      const answers = await backend.ack(JOBS, [
        { receipt: one },
        { receipt: two },
        { receipt: three },
        { receipt: one },
        { receipt: "r-1-2-3" as Receipt },
      ]);
      assert.deepEqual(
        answers.map((answer) => answer.outcome),
        ["acked", "stale", "acked", "stale", "stale"],
      );
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "the arrays of a call are the caller's: changing them after the call, even before its answer, changes nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3", "4", "5");
      const held = await backend.dequeue(JOBS, { limit: 4 });
      const [one, two, three, four] = held.map((delivered) => delivered.receipt) as [Receipt, Receipt, Receipt, Receipt];
      const acks: { receipt: Receipt; forward?: { queue: typeof JOBS; messages: { data: Uint8Array }[] }[] }[] = [
        { receipt: one, forward: [{ queue: JOBS, messages: [{ data: bytes("forwarded") }] }] },
      ];
      const nacks = [{ receipt: two, delayMs: 0 }];
      const releases = [three];
      const extensions = [{ receipt: four, leaseMs: 50_000 }];
      const answers = [
        backend.ack(JOBS, acks),
        backend.nack(JOBS, nacks),
        backend.release(JOBS, releases),
        backend.extend(JOBS, extensions),
      ];
      for (const array of [acks, nacks, releases, extensions]) array.length = 0;
      assert.equal(((await answers[0]) as { outcome: string }[])[0]?.outcome, "acked");
      assert.deepEqual(await Promise.all(answers.slice(1)), [["pending"], ["released"], ["extended"]]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["2", "3", "5", "forwarded"]);
    },
  },
  {
    name: "calls for nothing answer with nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.deepEqual(await backend.ack(JOBS, []), []);
      assert.deepEqual(await backend.ackById(JOBS, []), []);
      assert.deepEqual(await backend.nack(JOBS, []), []);
      assert.deepEqual(await backend.release(JOBS, []), []);
      assert.deepEqual(await backend.extend(JOBS, []), []);
      assert.deepEqual(await backend.redrive(JOBS, []), []);
      assert.deepEqual(await backend.drop(JOBS, []), []);
    },
  },
  {
    name: "every call takes 10,000 items, and refuses one more without doing any",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, ...Array.from({ length: MAX_BATCH_ITEMS }, (_, index) => String(index)));
      const held: Receipt[] = [];
      for (let round = 0; round < MAX_BATCH_ITEMS / 1000; round += 1)
        held.push(...(await backend.dequeue(JOBS, { limit: 1000 })).map((one) => one.receipt));
      assert.equal(new Set(held).size, MAX_BATCH_ITEMS);
      const many = [...held, "r-1-1-1" as Receipt];
      await refused(
        () =>
          backend.ack(
            JOBS,
            many.map((receipt) => ({ receipt })),
          ),
        "invalid-argument",
      );
      await refused(
        () =>
          backend.ackById(
            JOBS,
            many.map(() => id("x")),
          ),
        "invalid-argument",
      );
      await refused(
        () =>
          backend.nack(
            JOBS,
            many.map((receipt) => ({ receipt })),
          ),
        "invalid-argument",
      );
      await refused(() => backend.release(JOBS, many), "invalid-argument");
      await refused(
        () =>
          backend.extend(
            JOBS,
            many.map((receipt) => ({ receipt, leaseMs: 1000 })),
          ),
        "invalid-argument",
      );
      await refused(
        () =>
          backend.redrive(
            JOBS,
            many.map(() => id("x")),
          ),
        "invalid-argument",
      );
      await refused(
        () =>
          backend.drop(
            JOBS,
            many.map(() => id("x")),
          ),
        "invalid-argument",
      );
      await counts(backend, JOBS, 0, MAX_BATCH_ITEMS);
      assert.ok(
        (
          await backend.extend(
            JOBS,
            held.map((receipt) => ({ receipt, leaseMs: 600_000 })),
          )
        ).every((answer) => answer === "extended"),
      );
      assert.ok((await backend.release(JOBS, held)).every((answer) => answer === "released"));
      await counts(backend, JOBS, MAX_BATCH_ITEMS, 0);
      assert.ok(
        (
          await backend.nack(
            JOBS,
            held.map((receipt) => ({ receipt })),
          )
        ).every((answer) => answer === "stale"),
      );
      const again: Receipt[] = [];
      for (let round = 0; round < MAX_BATCH_ITEMS / 1000; round += 1)
        again.push(...(await backend.dequeue(JOBS, { limit: 1000 })).map((one) => one.receipt));
      assert.ok(
        (
          await backend.nack(
            JOBS,
            again.slice(0, 5000).map((receipt) => ({ receipt })),
          )
        ).every((answer) => answer === "pending"),
      );
      assert.ok(
        (
          await backend.ack(
            JOBS,
            again.map((receipt) => ({ receipt })),
          )
        ).every((answer, index) => answer.outcome === (index < 5000 ? "stale" : "acked")),
      );
      await counts(backend, JOBS, 5000, 0);
    },
  },
  {
    name: "what is not an array is refused",
    async run({ backend }) {
      await make(backend, JOBS);
      for (const bad of [undefined, null, "r-1-1-1", { receipt: "r-1-1-1" }, 5]) {
        await refused(() => backend.ack(JOBS, bad as never), "invalid-argument");
        await refused(() => backend.ackById(JOBS, bad as never), "invalid-argument");
        await refused(() => backend.nack(JOBS, bad as never), "invalid-argument");
        await refused(() => backend.release(JOBS, bad as never), "invalid-argument");
        await refused(() => backend.extend(JOBS, bad as never), "invalid-argument");
        await refused(() => backend.redrive(JOBS, bad as never), "invalid-argument");
        await refused(() => backend.drop(JOBS, bad as never), "invalid-argument");
      }
    },
  },
  {
    name: "an ack by id removes only what is in processing: never a pending message, an unknown one, one twice, or another queue's",
    async run({ backend }) {
      await make(backend, JOBS, "other");
      await backend.enqueue(JOBS, [withId("held", "1"), withId("waiting", "2"), { data: bytes("made id") }]);
      await backend.enqueue(name("other"), [withId("elsewhere", "3")]);
      await take(backend, name("other"));
      const held = await take(backend, JOBS);
      assert.deepEqual(
        await backend.ackById(
          JOBS,
          ["waiting", "unknown", "elsewhere", "held", "held", "m-1-1-1", "m-", held.receipt].map((one) => one as never),
        ),
        [
          "not-in-processing",
          "not-in-processing",
          "not-in-processing",
          "acked",
          "not-in-processing",
          "not-in-processing",
          "not-in-processing",
          "not-in-processing",
        ],
      );
      await counts(backend, JOBS, 2, 0);
      await counts(backend, name("other"), 0, 1);
      await assertStale(backend, JOBS, held.receipt);
      const [waiting, made] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(waiting && made);
      assert.deepEqual(await backend.ackById(JOBS, [made.id, waiting.id]), ["acked", "acked"]);
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "an ack by id does not touch a dead letter, nor a message that was given back",
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("dead", "1"), withId("back", "2")]);
      const [dead, back] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(dead && back);
      await backend.nack(JOBS, [
        { receipt: dead.receipt, giveUp: true },
        { receipt: back.receipt, delayMs: 50_000 },
      ]);
      assert.deepEqual(await backend.ackById(JOBS, [dead.id, back.id]), ["not-in-processing", "not-in-processing"]);
      await counts(backend, JOBS, 1, 0);
      assert.equal((await everyDeadLetter(backend, JOBS)).length, 1);
    },
  },
  {
    name: "a nacked message is pending again at its old place, and its receipt is stale",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const held = await take(backend, JOBS);
      await put(backend, JOBS, "4");
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt, reason: "no" }]), ["pending"]);
      await counts(backend, JOBS, 4, 0);
      await assertStale(backend, JOBS, held.receipt);
      const again = await take(backend, JOBS);
      assert.deepEqual([again.id, content(again), again.deliveryCount], [held.id, "1", 2]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["2", "3", "4"]);
    },
  },
  {
    name: "several messages given back at once, in any order, keep their order and come before newer ones",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3", "4", "5", "6");
      const held = await backend.dequeue(JOBS, { limit: 5 });
      await put(backend, JOBS, "7");
      const [one, two, three, four, five] = held.map((delivered) => delivered.receipt) as [Receipt, Receipt, Receipt, Receipt, Receipt];
      assert.deepEqual(await backend.release(JOBS, [four, two]), ["released", "released"]);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: five }, { receipt: one }, { receipt: three }]), [
        "pending",
        "pending",
        "pending",
      ]);
      assert.deepEqual((await everyMessage(backend, JOBS)).map(content), ["1", "2", "3", "4", "5", "6", "7"]);
      assert.equal(content((await backend.peek(JOBS)) ?? { data: bytes("nothing") }), "1");
      assert.deepEqual(await takeTexts(backend, JOBS, 4), ["1", "2", "3", "4"]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["5", "6", "7"]);
    },
  },
  {
    name: "given-back and new messages interleave by enqueue order, over many rounds",
    async run({ backend }) {
      await make(backend, JOBS);
      let stored = 0;
      const texts = (count: number): string[] => {
        stored += count;
        return Array.from({ length: count }, (_, index) => String(stored - count + index).padStart(4, "0"));
      };
      await put(backend, JOBS, ...texts(10));
      for (let round = 0; round < 20; round += 1) {
        const held = await backend.dequeue(JOBS, { limit: 8 });
        await put(backend, JOBS, ...texts(3));
        const odd = held.filter((_, index) => index % 2 === 1).toReversed();
        await ack(backend, JOBS, ...held.filter((_, index) => index % 4 === 0));
        await backend.release(
          JOBS,
          odd.map((one) => one.receipt),
        );
        await backend.nack(
          JOBS,
          held.filter((_, index) => index % 4 === 2).map((one) => ({ receipt: one.receipt })),
        );
        const listed = (await everyMessage(backend, JOBS)).map(content);
        assert.deepEqual(listed, listed.toSorted(), "the listing is in enqueue order");
      }
      const rest = await takeTexts(backend, JOBS);
      assert.deepEqual(rest, rest.toSorted());
    },
  },
  {
    name: "a message nacked with a delay is not delivered before its time, and then at its old place",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const held = await take(backend, JOBS);
      assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt, delayMs: spanMs }]), ["pending"]);
      await counts(backend, JOBS, 2, 0);
      assert.equal((await backend.statistics(JOBS)).delayed, 1);
      assert.deepEqual(await takeTexts(backend, JOBS), ["2"]);
      await empty(backend, JOBS);
      await put(backend, JOBS, "3");
      await passTime(spanMs);
      const due = await backend.dequeue(JOBS, { limit: 5 });
      assert.deepEqual(
        due.map((one) => [content(one), one.deliveryCount]),
        [
          ["1", 2],
          ["3", 1],
        ],
      );
    },
  },
  {
    name: "a released message is pending at once at its old place, as if it had not been delivered",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const held = await take(backend, JOBS);
      assert.deepEqual(await backend.release(JOBS, [held.receipt, held.receipt]), ["released", "stale"]);
      await counts(backend, JOBS, 2, 0);
      const peeked = await backend.peek(JOBS);
      assert.deepEqual([peeked?.id, peeked?.deliveryCount], [held.id, 0]);
      const again = await take(backend, JOBS);
      assert.deepEqual([again.id, again.deliveryCount], [held.id, 1]);
      assert.notEqual(again.receipt, held.receipt);
      await assertStale(backend, JOBS, held.receipt);
    },
  },
  {
    name: "refused nacks change nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const [first, second] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(first && second);
      for (const delayMs of [-1, 0.5, Number.NaN, "5", 366 * 24 * 3600 * 1000 + 1]) {
        await refused(
          () => backend.nack(JOBS, [{ receipt: first.receipt }, { receipt: second.receipt, delayMs: delayMs as never }]),
          "invalid-argument",
        );
      }
      await counts(backend, JOBS, 0, 2);
    },
  },
  {
    name: "the reason of a nack may be of any shape and length: it is kept, at most its first 4,096 characters",
    async run({ backend }) {
      await make(backend, JOBS);
      const reasons: readonly (readonly [unknown, string | RegExp])[] = [
        ["plain", "plain"],
        ["", /./],
        ["multi\nline\r\n\ttab", "multi\nline\r\n\ttab"],
        ["nul\0inside", "nul\u2400inside"],
        ["lone \ud800 surrogate", "lone \ufffd surrogate"],
        ["日本 😀 é", "日本 😀 é"],
        ["x".repeat(MAX_REASON_CHARACTERS + 1), "x".repeat(MAX_REASON_CHARACTERS)],
        ["'); DROP TABLE message; --", "'); DROP TABLE message; --"],
        [{ an: "object" }, /an.*object/],
        [5, "5"],
      ];
      await put(backend, JOBS, ...reasons.map((_, index) => String(index)));
      for (const [reason] of reasons) {
        const held = await take(backend, JOBS);
        assert.deepEqual(await backend.nack(JOBS, [{ receipt: held.receipt, reason: reason as string, giveUp: true }]), ["dead"]);
      }
      const dead = await everyDeadLetter(backend, JOBS);
      assert.equal(dead.length, reasons.length);
      for (const [index, [, expected]] of reasons.entries()) {
        const kept = dead[index]?.reason ?? "";
        if (typeof expected === "string") assert.equal(kept, expected);
        else assert.match(kept, expected);
      }
    },
  },
]);
