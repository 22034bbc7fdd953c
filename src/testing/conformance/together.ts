/** Calls made in one turn may share a step, and still each gets its own answer. */

import assert from "node:assert/strict";
import { isQueueFSError } from "../../core/errors.ts";
import { section } from "./case.ts";
import { ackOutcome, bytes, content, counts, everyMessage, JOBS, make, name, put, take, takeTexts, withId } from "./steps.ts";

/** The cases of the section "calls at once". */
export const togetherCases = section("calls at once", [
  {
    name: "of calls made in one turn, those refused do not hinder the others",
    options: { maxMessageBytes: 1000 },
    async run({ backend }) {
      await make(backend, JOBS, "next");
      await put(backend, JOBS, "held");
      const held = await take(backend, JOBS);
      const results = await Promise.allSettled([
        backend.enqueue(JOBS, [{ data: bytes("1") }]),
        backend.enqueue(name("missing"), [{ data: bytes("x") }]),
        backend.enqueue(JOBS, [{ data: new Uint8Array(1001) }]),
        backend.enqueue(JOBS, [withId("x", "2")]),
        backend.enqueue(JOBS, [withId("x", "other")]),
        backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: name("missing"), messages: [{ data: bytes("x") }] }] }]),
        backend.ack(JOBS, [{ receipt: "r-1-1-1" as never }]),
        backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: name("next"), messages: [{ data: bytes("forwarded") }] }] }]),
        backend.status(name("missing")),
        backend.dequeue(JOBS, { limit: 0 }),
        backend.createQueue(name("made")),
        backend.removeQueue(name("missing")),
      ]);
      assert.deepEqual(
        results.map((result) =>
          result.status === "fulfilled" ? "done" : isQueueFSError(result.reason) ? result.reason.code : String(result.reason),
        ),
        [
          "done",
          "queue-not-found",
          "message-too-large",
          "done",
          "done",
          "queue-not-found",
          "done",
          "done",
          "queue-not-found",
          "invalid-argument",
          "done",
          "queue-not-found",
        ],
      );
      assert.deepEqual((await everyMessage(backend, JOBS)).map(content).toSorted(), ["1", "2"]);
      assert.deepEqual(await takeTexts(backend, name("next")), ["forwarded"]);
      await counts(backend, name("made"), 0, 0);
    },
  },
  {
    name: "calls of one client, each begun after the one before was answered, take effect in that order",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      const noise = Promise.all(Array.from({ length: 50 }, (_, index) => other.enqueue(JOBS, [{ data: bytes(`noise ${index}`) }])));
      for (let index = 0; index < 30; index += 1) await backend.enqueue(JOBS, [{ data: bytes(String(index)) }]);
      await noise;
      const order = (await everyMessage(backend, JOBS)).map(content).filter((one) => !one.startsWith("noise"));
      assert.deepEqual(
        order,
        Array.from({ length: 30 }, (_, index) => String(index)),
      );
    },
  },
  {
    name: "a thousand enqueues, dequeues and acks at once: each message goes once",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const clients = [backend, await open()];
      const client = (index: number): typeof backend => clients[index % 2] ?? backend;
      await Promise.all(Array.from({ length: 1000 }, (_, index) => client(index).enqueue(JOBS, [{ data: bytes(String(index)) }])));
      const taken = (await Promise.all(Array.from({ length: 1000 }, (_, index) => client(index).dequeue(JOBS)))).flat();
      assert.equal(new Set(taken.map(content)).size, 1000);
      assert.equal(new Set(taken.map((one) => one.receipt)).size, 1000);
      const outcomes = await Promise.all([...taken, ...taken].map((one, index) => ackOutcome(client(index), JOBS, one.receipt)));
      assert.equal(outcomes.filter((outcome) => outcome === "acked").length, 1000);
      assert.equal(outcomes.filter((outcome) => outcome === "stale").length, 1000);
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "an ack and a nack of one delivery at once: exactly one counts",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      let acked = 0;
      for (let round = 0; round < 50; round += 1) {
        await put(backend, JOBS, String(round));
        const held = await take(backend, JOBS);
        const [answer, nacked] = await Promise.all([
          ackOutcome(round % 2 ? backend : other, JOBS, held.receipt),
          other.nack(JOBS, [{ receipt: held.receipt }]),
        ]);
        assert.deepEqual([answer, nacked[0]].filter((one) => one === "stale").length, 1, `${answer} and ${nacked[0]}`);
        if (answer === "acked") acked += 1;
        await counts(backend, JOBS, answer === "acked" ? 0 : 1, 0);
        await backend.clear(JOBS);
      }
      assert.equal((await backend.statistics(JOBS)).acked, acked);
    },
  },
  {
    name: "two workers that ack the last two messages at once leave a complete queue, every time",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      for (let round = 0; round < 50; round += 1) {
        await put(backend, JOBS, "1", "2");
        const [first, second] = [await take(backend, JOBS), await take(other, JOBS)];
        assert.deepEqual(await Promise.all([ackOutcome(backend, JOBS, first.receipt), ackOutcome(other, JOBS, second.receipt)]), [
          "acked",
          "acked",
        ]);
        await counts(other, JOBS, 0, 0);
      }
    },
  },
]);
