/** Clear removes everything unacked in one step. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import {
  ackOutcome,
  assertStale,
  bytes,
  content,
  counts,
  empty,
  everyDeadLetter,
  everyMessage,
  fingerprint,
  JOBS,
  make,
  name,
  put,
  recoverAll,
  take,
  takeTexts,
  whileLooking,
} from "./steps.ts";

/** The cases of the section "clearing". */
export const clearingCases = section("clearing", [
  {
    name: "clear removes pending and processing together and answers how many of each",
    async run({ backend, open }) {
      await make(backend, JOBS, "jobs/child", "jobs2");
      await put(backend, JOBS, "1", "2", "3", "4", "5");
      await put(backend, name("jobs/child"), "child");
      await put(backend, name("jobs2"), "neighbour");
      const held = await backend.dequeue(JOBS, { limit: 2 });
      await backend.nack(JOBS, [{ receipt: held[0]?.receipt as never, delayMs: 50_000 }]);
      const neighbours = [await fingerprint(backend, name("jobs/child")), await fingerprint(backend, name("jobs2"))];
      assert.deepEqual(await (await open()).clear(JOBS), { pending: 4, processing: 1 });
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual(await backend.messages(JOBS), { items: [] });
      assert.equal(await backend.peek(JOBS), undefined);
      await empty(backend, JOBS);
      assert.deepEqual([await fingerprint(backend, name("jobs/child")), await fingerprint(backend, name("jobs2"))], neighbours);
      assert.deepEqual(await backend.clear(JOBS), { pending: 0, processing: 0 });
    },
  },
  {
    name: "acks, nacks, releases and extends of cleared deliveries are stale, also when new messages took their places",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const held = await backend.dequeue(JOBS, { limit: 2, leaseMs: spanMs });
      await backend.clear(JOBS);
      for (const one of held) await assertStale(backend, JOBS, one.receipt);
      await put(backend, JOBS, "4", "5", "6");
      const fresh = await backend.dequeue(JOBS, { limit: 2 });
      for (const one of held) await assertStale(backend, JOBS, one.receipt);
      assert.deepEqual(
        await backend.ackById(
          JOBS,
          held.map((one) => one.id),
        ),
        ["not-in-processing", "not-in-processing"],
      );
      await counts(backend, JOBS, 1, 2);
      await passTime(spanMs);
      assert.deepEqual(await recoverAll(backend), { recovered: 0, dead: 0 });
      await counts(backend, JOBS, 1, 2);
      for (const one of fresh) assert.equal(await ackOutcome(backend, JOBS, one.receipt), "acked");
      assert.deepEqual(await takeTexts(backend, JOBS), ["6"]);
    },
  },
  {
    name: "dead letters stay, and a redriven one comes before what was enqueued after the clear",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "dead", "gone");
      const held = await take(backend, JOBS);
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true, reason: "no" }]);
      assert.deepEqual(await backend.clear(JOBS), { pending: 1, processing: 0 });
      assert.deepEqual(
        (await everyDeadLetter(backend, JOBS)).map((one) => [one.id, content(one), one.reason]),
        [[held.id, "dead", "no"]],
      );
      await put(backend, JOBS, "new");
      assert.deepEqual(await backend.redrive(JOBS, [held.id]), ["redriven"]);
      assert.deepEqual((await everyMessage(backend, JOBS)).map(content), ["dead", "new"]);
      assert.deepEqual(await takeTexts(backend, JOBS), ["dead", "new"]);
    },
  },
  {
    name: "statistics survive a clear",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      await take(backend, JOBS);
      const before = await backend.statistics(JOBS);
      await backend.clear(JOBS);
      const { oldestPendingMs: _pending, oldestProcessingMs: _processing, ...kept } = before;
      assert.deepEqual(await backend.statistics(JOBS), { ...kept, pending: 0, processing: 0, cleared: 2 });
    },
  },
  {
    name: "what is enqueued while clears run is either removed by one of them or still there, and each is counted once",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      let cleared = 0;
      const enqueues = (async () => {
        for (let round = 0; round < 60; round += 1) await backend.enqueue(JOBS, [{ data: bytes(`${round}`) }, { data: bytes(`${round}`) }]);
      })();
      const takes = (async () => {
        for (let round = 0; round < 30; round += 1) await backend.dequeue(JOBS);
      })();
      for (let round = 0; round < 30; round += 1) {
        const answer = await other.clear(JOBS);
        cleared += answer.pending + answer.processing;
      }
      await enqueues;
      await takes;
      const { pending, processing } = await other.status(JOBS);
      assert.equal(cleared + pending + processing, 120);
      assert.equal((await everyMessage(other, JOBS)).length, pending + processing);
    },
  },
  {
    name: "a deep queue is cleared in one step, and what is enqueued right after it is kept",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      for (let round = 0; round < 2; round += 1) await put(backend, JOBS, ...Array.from({ length: 10_000 }, (_, index) => String(index)));
      const held = await backend.dequeue(JOBS, { limit: 1000 });
      const look = async (): Promise<void> => {
        const { pending, processing } = await other.status(JOBS);
        assert.ok(
          (pending === 19_000 && processing === 1000) || (pending === 0 && processing === 0),
          `all or none, not (${pending}, ${processing})`,
        );
      };
      assert.deepEqual(await whileLooking(look, () => backend.clear(JOBS)), { pending: 19_000, processing: 1000 });
      await put(backend, JOBS, "kept");
      await counts(other, JOBS, 1, 0);
      await assertStale(backend, JOBS, held[999]?.receipt as never);
      assert.deepEqual(await takeTexts(other, JOBS), ["kept"]);
    },
  },
]);
