/** When time alone will bring work: what a consumer may sleep until. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { bytes, empty, JOBS, make, put, recoverAll, take } from "./steps.ts";

/** The cases of the section "next due". */
export const dueCases = section("next due", [
  {
    name: "an empty queue has nothing due, one with a message available has it now",
    async run({ backend, open }) {
      await make(backend, JOBS);
      assert.equal(await backend.nextDue(JOBS), undefined);
      await put(backend, JOBS, "1");
      assert.equal(await backend.nextDue(JOBS), 0);
      assert.equal(await (await open()).nextDue(JOBS), 0);
      await backend.clear(JOBS);
      assert.equal(await backend.nextDue(JOBS), undefined);
    },
  },
  {
    name: "with nothing available, it is the time to the earliest end of a lease or a delay, and never runs out early",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: bytes("held") }, { data: bytes("delayed"), delayMs: spanMs * 40 }]);
      const within = async (mostMs: number): Promise<void> => {
        const due = await backend.nextDue(JOBS);
        assert.ok(due !== undefined && due > mostMs - spanMs * 10 && due <= mostMs, `about ${mostMs} ms, not ${due}`);
      };
      const held = await take(backend, JOBS, { leaseMs: spanMs * 20 });
      await within(spanMs * 20);
      await backend.extend(JOBS, [{ receipt: held.receipt, leaseMs: spanMs * 80 }]);
      await within(spanMs * 40);
      await backend.nack(JOBS, [{ receipt: held.receipt, delayMs: spanMs }]);
      await within(spanMs);
      await empty(backend, JOBS);
      await passTime((await backend.nextDue(JOBS)) ?? 0);
      assert.equal(await backend.nextDue(JOBS), 0);
      const again = await take(backend, JOBS, { leaseMs: spanMs });
      assert.equal(again.id, held.id);
      await passTime((await backend.nextDue(JOBS)) ?? 0);
      assert.equal(await backend.nextDue(JOBS), 0, "a lease that ended is due, recovered or not");
      await recoverAll(backend);
      assert.equal(await backend.nextDue(JOBS), 0);
    },
  },
  {
    name: "it is exact to the millisecond",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await backend.enqueue(
        JOBS,
        [3000, 1000, 2000].map((delayMs) => ({ data: bytes("x"), delayMs })),
      );
      assert.equal(await backend.nextDue(JOBS), 1000);
      await passTime(999);
      assert.equal(await backend.nextDue(JOBS), 1);
      await passTime(1);
      assert.equal(await backend.nextDue(JOBS), 0);
      await take(backend, JOBS, { leaseMs: 500 });
      assert.equal(await backend.nextDue(JOBS), 500);
      await passTime(250);
      assert.equal(await backend.nextDue(JOBS), 250);
      await passTime(10_000);
      assert.equal(await backend.nextDue(JOBS), 0);
    },
  },
]);
