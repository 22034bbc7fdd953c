/** Ids chosen by the caller make a repeat of an enqueue safe. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { ack, bytes, content, counts, empty, everyMessage, id, JOBS, make, name, take, takeTexts, withId } from "./steps.ts";

/** The cases of the section "message ids". */
export const messageIdCases = section("message ids", [
  {
    name: "the same id with the same bytes stores nothing and gets the first answer, by whatever client",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "enqueued", id: "x" }]);
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "repeated", id: "x" }]);
      assert.deepEqual(await other.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "repeated", id: "x" }]);
      await counts(backend, JOBS, 1, 0);
      assert.equal((await backend.statistics(JOBS)).enqueued, 1);
      assert.deepEqual(await takeTexts(backend, JOBS), ["one"]);
    },
  },
  {
    name: "the same id with other bytes is a conflict, stores nothing, and does not hinder the others of the call",
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("x", "one")]);
      assert.deepEqual(
        await backend
          .enqueue(JOBS, [withId("w", "w"), withId("x", "two"), withId("y", "y"), { data: bytes("z") }])
          .then((answers) => answers.map((one) => one.outcome)),
        ["enqueued", "conflict", "enqueued", "enqueued"],
      );
      assert.deepEqual(await takeTexts(backend, JOBS), ["one", "w", "y", "z"]);
    },
  },
  {
    name: "bytes that differ in one bit, by a trailing newline or NUL, or are empty, conflict",
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("x", "one"), withId("e", "")]);
      for (const other of ["onf", "one\n", "one\0", "", "on", "One"]) {
        assert.deepEqual(await backend.enqueue(JOBS, [withId("x", other)]), [{ outcome: "conflict", id: "x" }], JSON.stringify(other));
      }
      assert.deepEqual(await backend.enqueue(JOBS, [withId("e", "\0"), withId("e", "")]), [
        { outcome: "conflict", id: "e" },
        { outcome: "repeated", id: "e" },
      ]);
    },
  },
  {
    name: "repeats and conflicts are seen within one call too",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one"), withId("x", "one"), withId("x", "two"), withId("y", "one")]), [
        { outcome: "enqueued", id: "x" },
        { outcome: "repeated", id: "x" },
        { outcome: "conflict", id: "x" },
        { outcome: "enqueued", id: "y" },
      ]);
      await counts(backend, JOBS, 2, 0);
    },
  },
  {
    name: "a repeat keeps the first message's place and delay",
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("x", "first"), withId("y", "second")]);
      await backend.enqueue(JOBS, [withId("x", "first", { delayMs: 100_000 }), withId("z", "third")]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["first", "second", "third"]);
    },
  },
  {
    name: "after the message was acked, the same id still gets the first answer, and other bytes conflict",
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("x", "one")]);
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "repeated", id: "x" }]);
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "two")]), [{ outcome: "conflict", id: "x" }]);
      await counts(backend, JOBS, 0, 0);
      await empty(backend, JOBS);
    },
  },
  {
    name: "the same holds after an ack by id, a clear and the drop of a dead letter",
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("by-id", "1"), withId("dropped", "2"), withId("held", "3"), withId("cleared", "4")]);
      const [first, second] = await backend.dequeue(JOBS, { limit: 3 });
      assert.ok(first && second);
      assert.deepEqual(await backend.ackById(JOBS, [first.id]), ["acked"]);
      await backend.nack(JOBS, [{ receipt: second.receipt, giveUp: true }]);
      assert.deepEqual(await backend.drop(JOBS, [second.id]), ["dropped"]);
      assert.deepEqual(await backend.clear(JOBS), { pending: 1, processing: 1 });
      for (const [one, data] of [
        ["by-id", "1"],
        ["dropped", "2"],
        ["held", "3"],
        ["cleared", "4"],
      ] as const) {
        assert.deepEqual(await backend.enqueue(JOBS, [withId(one, data)]), [{ outcome: "repeated", id: one }]);
        assert.deepEqual(await backend.enqueue(JOBS, [withId(one, "other")]), [{ outcome: "conflict", id: one }]);
      }
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "an id is forgotten once rememberMs have passed and its message is gone, and may then be used anew",
    options: { rememberMs: 1000 },
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("x", "one")]);
      await ack(backend, JOBS, await take(backend, JOBS));
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "repeated", id: "x" }]);
      await passTime(1100);
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "two")]), [{ outcome: "enqueued", id: "x" }]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["two"]);
    },
  },
  {
    name: "an id is remembered for as long as its message is pending, in processing or a dead letter, however long",
    options: { rememberMs: 1000 },
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("dead", "1"), withId("held", "2"), withId("waiting", "3")]);
      const [dead] = await backend.dequeue(JOBS, { limit: 2, leaseMs: 600_000 });
      assert.ok(dead);
      await backend.nack(JOBS, [{ receipt: dead.receipt, giveUp: true }]);
      await passTime(1100);
      for (const [one, data] of [
        ["dead", "1"],
        ["held", "2"],
        ["waiting", "3"],
      ] as const) {
        assert.deepEqual(await backend.enqueue(JOBS, [withId(one, data)]), [{ outcome: "repeated", id: one }]);
        assert.deepEqual(await backend.enqueue(JOBS, [withId(one, "other")]), [{ outcome: "conflict", id: one }]);
      }
      await counts(backend, JOBS, 1, 1);
    },
  },
  {
    name: "ten minutes are remembered unless told otherwise, exactly",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [withId("x", "one")]);
      await ack(backend, JOBS, await take(backend, JOBS));
      await passTime(10 * 60 * 1000 - 1);
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "repeated", id: "x" }]);
      await passTime(1);
      assert.deepEqual(await backend.enqueue(JOBS, [withId("x", "one")]), [{ outcome: "enqueued", id: "x" }]);
    },
  },
  {
    name: "an id used anew after it was forgotten is remembered anew",
    needs: ["manual-clock"],
    options: { rememberMs: 10_000 },
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      for (const data of ["one", "two", "three"]) {
        assert.deepEqual(await backend.enqueue(JOBS, [withId("x", data)]), [{ outcome: "enqueued", id: "x" }]);
        await passTime(4000);
        await ack(backend, JOBS, await take(backend, JOBS));
        await passTime(5999);
        assert.deepEqual(await backend.enqueue(JOBS, [withId("x", data)]), [{ outcome: "repeated", id: "x" }]);
        await passTime(1);
      }
    },
  },
  {
    name: "made ids cannot be chosen, and chosen ids are kept exactly",
    async run({ backend }) {
      await make(backend, JOBS);
      const chosen = [
        "a",
        "A",
        "é",
        "e\u0301",
        "日本",
        "😀",
        "a:b",
        "a/b",
        "{}",
        "__proto__",
        "constructor",
        "%",
        "_",
        "*",
        "x".repeat(255),
        "é".repeat(127),
        "0",
        "1e3",
        "null",
        "M-1",
        "m1",
        "'",
        '"',
        "\\",
      ];
      const answers = await backend.enqueue(
        JOBS,
        chosen.map((one) => withId(one, `content of ${one}`)),
      );
      assert.deepEqual(
        answers,
        chosen.map((one) => ({ outcome: "enqueued", id: one })),
      );
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((one) => [one.id, content(one)]),
        chosen.map((one) => [one, `content of ${one}`]),
      );
      const held = await backend.dequeue(JOBS, { limit: 100 });
      assert.deepEqual(
        held.map((one) => one.id),
        chosen,
      );
      assert.deepEqual(
        await backend.enqueue(
          JOBS,
          chosen.map((one) => withId(one, "other")),
        ),
        chosen.map((one) => ({ outcome: "conflict", id: one })),
      );
      assert.deepEqual(await backend.ackById(JOBS, [id("toString"), ...chosen.map(id)]), [
        "not-in-processing",
        ...chosen.map(() => "acked"),
      ]);
    },
  },
  {
    name: "of many clients that enqueue the same id at once, exactly one stores it",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      const answers = (
        await Promise.all(Array.from({ length: 30 }, (_, index) => (index % 2 ? backend : other).enqueue(JOBS, [withId("x", "one")])))
      ).flat();
      assert.equal(answers.filter((answer) => answer.outcome === "enqueued").length, 1);
      assert.equal(answers.filter((answer) => answer.outcome === "repeated").length, 29);
      await counts(other, JOBS, 1, 0);
    },
  },
  {
    name: "a repeat to a removed queue is not-found, and an id in one queue says nothing of another",
    async run({ backend }) {
      await make(backend, JOBS, "other");
      await backend.enqueue(JOBS, [withId("x", "one")]);
      assert.deepEqual(await backend.enqueue(name("other"), [withId("x", "two")]), [{ outcome: "enqueued", id: "x" }]);
      await counts(backend, name("other"), 1, 0);
    },
  },
]);
