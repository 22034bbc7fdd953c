/** Acknowledge and forward is one step. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import {
  bytes,
  content,
  counts,
  empty,
  everyMessage,
  fingerprint,
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

const NEXT = name("next");
const LAST = name("last/of all");

/** The cases of the section "forwarding". */
export const forwardingCases = section("forwarding", [
  {
    name: "an ack removes the message and stores what it forwards, in several queues, in order",
    async run({ backend }) {
      await make(backend, JOBS, NEXT, LAST);
      await put(backend, JOBS, "source");
      await put(backend, NEXT, "earlier");
      const held = await take(backend, JOBS);
      const [answer] = await backend.ack(JOBS, [
        {
          receipt: held.receipt,
          forward: [
            { queue: NEXT, messages: [{ data: bytes("a") }, withId("chosen", "b")] },
            { queue: LAST, messages: [{ data: bytes("c") }] },
            { queue: NEXT, messages: [] },
          ],
        },
      ]);
      assert.equal(answer?.outcome, "acked");
      assert.ok(answer?.outcome === "acked");
      assert.deepEqual(
        answer.forwarded.map((answers) => answers.map((one) => one.outcome)),
        [["enqueued", "enqueued"], ["enqueued"], []],
      );
      assert.equal(answer.forwarded[0]?.[1]?.id, "chosen");
      assert.deepEqual(
        (await everyMessage(backend, LAST)).map((one) => one.id),
        [answer.forwarded[1]?.[0]?.id],
      );
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual(await takeTexts(backend, NEXT), ["earlier", "a", "b"]);
      assert.deepEqual(await takeTexts(backend, LAST), ["c"]);
    },
  },
  {
    name: "a message may forward to its own queue: it is then never complete in between",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      await put(backend, JOBS, "0");
      const look = async (): Promise<void> => {
        const { pending, processing } = await other.status(JOBS);
        assert.equal(pending + processing, 1, `always exactly one message, not (${pending}, ${processing})`);
      };
      await whileLooking(look, async () => {
        for (let round = 1; round <= 200; round += 1) {
          const held = await take(backend, JOBS);
          assert.equal(content(held), String(round - 1));
          await backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: JOBS, messages: [{ data: bytes(String(round)) }] }] }]);
        }
      });
    },
  },
  {
    name: "work that moves between queues is never invisible to a snapshot of both",
    async run({ backend, open }) {
      await make(backend, JOBS, NEXT);
      const other = await open();
      await put(backend, JOBS, "work");
      const look = async (): Promise<void> => {
        const statuses = await other.statuses({ queues: [NEXT, JOBS] });
        const total = statuses.reduce((sum, one) => sum + one.pending + one.processing, 0);
        assert.equal(total, 1, JSON.stringify(statuses));
      };
      await whileLooking(look, async () => {
        for (let round = 0; round < 100; round += 1) {
          for (const [from, to] of [
            [JOBS, NEXT],
            [NEXT, JOBS],
          ] as const) {
            const held = await take(backend, from);
            await backend.ack(from, [{ receipt: held.receipt, forward: [{ queue: to, messages: [{ data: held.data }] }] }]);
          }
        }
      });
    },
  },
  {
    name: "a stale ack stores nothing of what it would forward, beside one that does",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS, NEXT);
      await put(backend, JOBS, "1", "2");
      const late = await take(backend, JOBS, { leaseMs: spanMs });
      await passTime(spanMs);
      const [again, second] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(again && second);
      const answers = await backend.ack(JOBS, [
        { receipt: late.receipt, forward: [{ queue: NEXT, messages: [withId("late", "late")] }] },
        { receipt: second.receipt, forward: [{ queue: NEXT, messages: [withId("second", "second")] }] },
        { receipt: second.receipt, forward: [{ queue: NEXT, messages: [withId("twice", "twice")] }] },
      ]);
      assert.deepEqual(answers, [
        { outcome: "stale" },
        { outcome: "acked", forwarded: [[{ outcome: "enqueued", id: "second" }]] },
        { outcome: "stale" },
      ]);
      assert.deepEqual(
        (await everyMessage(backend, NEXT)).map((one) => one.id),
        ["second"],
      );
      assert.deepEqual(
        await backend.enqueue(NEXT, [withId("late", "other")]),
        [{ outcome: "enqueued", id: "late" }],
        "the id of what was not stored is free",
      );
      await counts(backend, JOBS, 0, 1);
    },
  },
  {
    name: "a missing forward queue fails the whole call and changes nothing anywhere",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      await put(backend, JOBS, "1", "2");
      const [first, second] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(first && second);
      const before = [await fingerprint(backend, JOBS), await fingerprint(backend, NEXT)];
      await refused(
        () =>
          backend.ack(JOBS, [
            { receipt: first.receipt, forward: [{ queue: NEXT, messages: [withId("x", "x")] }] },
            {
              receipt: second.receipt,
              forward: [
                { queue: NEXT, messages: [{ data: bytes("y") }] },
                { queue: name("missing"), messages: [{ data: bytes("z") }] },
              ],
            },
          ]),
        "queue-not-found",
      );
      assert.deepEqual([await fingerprint(backend, JOBS), await fingerprint(backend, NEXT)], before);
      assert.deepEqual(
        await backend.ack(JOBS, [{ receipt: first.receipt, forward: [{ queue: NEXT, messages: [withId("x", "other")] }] }]),
        [{ outcome: "acked", forwarded: [[{ outcome: "enqueued", id: "x" }]] }],
      );
    },
  },
  {
    name: "a refused message in a forward fails the whole call and changes nothing",
    options: { maxMessageBytes: 100 },
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      await put(backend, JOBS, "1");
      const held = await take(backend, JOBS);
      const before = await fingerprint(backend, JOBS);
      const forward =
        (...messages: unknown[]) =>
        () =>
          backend.ack(JOBS, [
            { receipt: held.receipt, forward: [{ queue: NEXT, messages: [{ data: bytes("good") }, ...messages] as never }] },
          ]);
      await refused(forward({ data: "text" }), "invalid-argument");
      await refused(forward({ data: bytes("x"), delayMs: -1 }), "invalid-argument");
      await refused(forward({ data: bytes("x"), id: "m-1" }), "invalid-name");
      await refused(forward({ data: new Uint8Array(101) }), "message-too-large");
      await refused(forward({ data: new Uint8Array(97) }), "message-too-large");
      assert.deepEqual(await fingerprint(backend, JOBS), before);
      await counts(backend, NEXT, 0, 0);
    },
  },
  {
    name: "a forwarded message with an id used before is a repeat or a conflict, and the ack is valid all the same",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      await backend.enqueue(NEXT, [withId("x", "one")]);
      await put(backend, JOBS, "1");
      const held = await take(backend, JOBS);
      assert.deepEqual(
        await backend.ack(JOBS, [
          { receipt: held.receipt, forward: [{ queue: NEXT, messages: [withId("x", "one"), withId("x", "two"), withId("y", "y")] }] },
        ]),
        [
          {
            outcome: "acked",
            forwarded: [
              [
                { outcome: "repeated", id: "x" },
                { outcome: "conflict", id: "x" },
                { outcome: "enqueued", id: "y" },
              ],
            ],
          },
        ],
      );
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual((await everyMessage(backend, NEXT)).map(content), ["one", "y"]);
    },
  },
  {
    name: "a forwarded message may be delayed",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS, NEXT);
      await put(backend, JOBS, "1");
      const held = await take(backend, JOBS);
      await backend.ack(JOBS, [
        {
          receipt: held.receipt,
          forward: [{ queue: NEXT, messages: [{ data: bytes("later"), delayMs: spanMs }, { data: bytes("now") }] }],
        },
      ]);
      await counts(backend, NEXT, 2, 0);
      assert.deepEqual(await takeTexts(backend, NEXT), ["now"]);
      await empty(backend, NEXT);
      await passTime(spanMs);
      assert.deepEqual(await takeTexts(backend, NEXT), ["later"]);
    },
  },
  {
    name: "the store copies forwarded bytes too",
    async run({ backend }) {
      await make(backend, JOBS, NEXT);
      await put(backend, JOBS, "1");
      const held = await take(backend, JOBS);
      const data = bytes("forwarded");
      const answer = backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: NEXT, messages: [{ data }] }] }]);
      data.fill(0);
      await answer;
      assert.deepEqual(await takeTexts(backend, NEXT), ["forwarded"]);
    },
  },
  {
    name: "a thousand acks of one call forward to many queues, each in order",
    async run({ backend }) {
      const targets = Array.from({ length: 20 }, (_, index) => name(`target/${index}`));
      await make(backend, JOBS, ...targets);
      await put(backend, JOBS, ...Array.from({ length: 1000 }, (_, index) => String(index)));
      const held = await backend.dequeue(JOBS, { limit: 1000 });
      const answers = await backend.ack(
        JOBS,
        held.map((one, index) => ({
          receipt: one.receipt,
          forward: [{ queue: targets[index % 20] ?? JOBS, messages: [{ id: id(`id-${index}`), data: one.data }] }],
        })),
      );
      assert.deepEqual(
        answers,
        held.map((_, index) => ({ outcome: "acked", forwarded: [[{ outcome: "enqueued", id: `id-${index}` }]] })),
      );
      for (const [index, target] of targets.entries()) {
        assert.deepEqual(
          await takeTexts(backend, target),
          Array.from({ length: 50 }, (_, turn) => String(index + turn * 20)),
        );
      }
    },
  },
]);
