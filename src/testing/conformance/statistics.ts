/** Counts, ages and settings of a queue. */

import assert from "node:assert/strict";
import { DEFAULT_MAX_DELIVERIES } from "../../core/limits.ts";
import { section } from "./case.ts";
import { ack, bytes, JOBS, make, name, put, recoverAll, take, withId } from "./steps.ts";

/** The cases of the section "statistics". */
export const statisticsCases = section("statistics", [
  {
    name: "each count counts exactly its own",
    async run({ backend, open, passTime, spanMs }) {
      await make(backend, JOBS, "next");
      const expected = {
        pending: 0,
        processing: 0,
        delayed: 0,
        dead: 0,
        enqueued: 0,
        delivered: 0,
        acked: 0,
        returned: 0,
        deadLettered: 0,
        cleared: 0,
        settings: { maxDeliveries: DEFAULT_MAX_DELIVERIES },
      };
      const other = await open();
      const check = async (what: string, change: Partial<typeof expected>): Promise<void> => {
        Object.assign(expected, change);
        const { oldestPendingMs, oldestProcessingMs, createdAtMs, ...rest } = await other.statistics(JOBS);
        assert.deepEqual(rest, expected, what);
        assert.equal(oldestPendingMs !== undefined, expected.pending > 0, `${what}: an age of the oldest pending where there is one`);
        assert.equal(
          oldestProcessingMs !== undefined,
          expected.processing > 0,
          `${what}: an age of the oldest in processing where there is one`,
        );
        assert.ok(createdAtMs > 1_600_000_000_000);
      };
      await check("at first", {});
      await put(backend, JOBS, "1", "2", "3", "4", "5", "6");
      await check("enqueue", { pending: 6, enqueued: 6 });
      await backend.enqueue(JOBS, [withId("x", "7", { delayMs: 100_000 }), withId("x", "7"), withId("x", "conflict")]);
      await check("a delayed message, a repeat and a conflict", { pending: 7, enqueued: 7, delayed: 1 });
      const held = await backend.dequeue(JOBS, { limit: 6, leaseMs: spanMs });
      await check("dequeue", { pending: 1, processing: 6, delivered: 6 });
      const [one, two, three, four, five] = held;
      assert.ok(one && two && three && four && five);
      await ack(backend, JOBS, one);
      await check("ack", { processing: 5, acked: 1 });
      await backend.ackById(JOBS, [two.id, two.id]);
      await check("ack by id", { processing: 4, acked: 2 });
      await backend.nack(JOBS, [{ receipt: three.receipt, delayMs: 100_000 }, { receipt: three.receipt }]);
      await check("nack with a delay", { pending: 2, processing: 3, returned: 1, delayed: 2 });
      await backend.release(JOBS, [four.receipt, four.receipt]);
      await check("release", { pending: 3, processing: 2, returned: 2 });
      await backend.nack(JOBS, [{ receipt: five.receipt, giveUp: true }]);
      await check("give up", { processing: 1, dead: 1, deadLettered: 1 });
      await passTime(spanMs);
      await recoverAll(backend);
      await check("recovery", { pending: 4, processing: 0, returned: 3 });
      await backend.redrive(JOBS, [five.id]);
      await check("redrive", { pending: 5, dead: 0 });
      const last = await backend.dequeue(JOBS, { limit: 2 });
      await check("dequeue again", { pending: 3, processing: 2, delivered: 8 });
      await backend.ack(JOBS, [
        {
          receipt: last[0]?.receipt as never,
          forward: [
            { queue: JOBS, messages: [{ data: bytes("f") }] },
            { queue: name("next"), messages: [{ data: bytes("g") }] },
          ],
        },
      ]);
      await check("ack and forward", { pending: 4, processing: 1, acked: 3, enqueued: 8 });
      await backend.nack(JOBS, [{ receipt: last[1]?.receipt as never, giveUp: true }]);
      await backend.drop(JOBS, [last[1]?.id as never]);
      await check("drop", { processing: 0, deadLettered: 2 });
      await backend.clear(JOBS);
      await check("clear", { pending: 0, delayed: 0, cleared: 4 });
      await backend.configureQueue(JOBS, { maxDeliveries: 1 });
      await put(backend, JOBS, "poison");
      await take(backend, JOBS, { leaseMs: spanMs });
      await passTime(spanMs);
      await recoverAll(backend);
      await check("deliveries used up", { dead: 1, enqueued: 9, delivered: 9, deadLettered: 3, settings: { maxDeliveries: 1 } });
    },
  },
  {
    name: "a queue that never had work and one that finished differ",
    async run({ backend }) {
      await make(backend, "never", "finished");
      await put(backend, name("finished"), "1");
      await ack(backend, name("finished"), await take(backend, name("finished")));
      assert.deepEqual(await backend.status(name("never")), await backend.status(name("finished")));
      assert.equal((await backend.statistics(name("never"))).enqueued, 0);
      assert.equal((await backend.statistics(name("finished"))).enqueued, 1);
    },
  },
  {
    name: "delayed messages count as delayed until their time has come",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await backend.enqueue(
        JOBS,
        [1000, 2000, 2000, 0].map((delayMs) => ({ data: bytes("x"), delayMs })),
      );
      const delayed = async (): Promise<number> => (await backend.statistics(JOBS)).delayed;
      assert.equal(await delayed(), 3);
      await passTime(1000);
      assert.equal(await delayed(), 2);
      await passTime(999);
      assert.equal(await delayed(), 2);
      await passTime(1);
      assert.equal(await delayed(), 0);
      assert.deepEqual(await backend.status(JOBS), { pending: 4, processing: 0 });
    },
  },
  {
    name: "ages are counted from the enqueue, of the oldest in each state",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      const ages = async (): Promise<(number | undefined)[]> => {
        const { oldestPendingMs, oldestProcessingMs } = await backend.statistics(JOBS);
        return [oldestPendingMs, oldestProcessingMs];
      };
      assert.deepEqual(await ages(), [undefined, undefined]);
      await put(backend, JOBS, "1");
      await passTime(1000);
      await put(backend, JOBS, "2");
      await passTime(500);
      assert.deepEqual(await ages(), [1500, undefined]);
      const first = await take(backend, JOBS);
      assert.deepEqual(await ages(), [500, 1500]);
      const second = await take(backend, JOBS);
      assert.deepEqual(await ages(), [undefined, 1500]);
      await backend.nack(JOBS, [{ receipt: first.receipt, delayMs: 5000 }]);
      assert.deepEqual(await ages(), [1500, 500]);
      await ack(backend, JOBS, second);
      assert.deepEqual(await ages(), [1500, undefined]);
    },
  },
]);
