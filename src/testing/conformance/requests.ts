/** Request ids make a repeat of a dequeue safe. */

import assert from "node:assert/strict";
import type { DeliveredMessage } from "../../core/message.ts";
import { section } from "./case.ts";
import {
  ack,
  assertStale,
  bytes,
  comparable,
  content,
  counts,
  empty,
  JOBS,
  make,
  name,
  put,
  recoverAll,
  refused,
  take,
  takeTexts,
} from "./steps.ts";

function same(actual: readonly DeliveredMessage[], expected: readonly DeliveredMessage[]): void {
  assert.deepEqual(actual.map(comparable), expected.map(comparable));
}

/** The cases of the section "request ids". */
export const requestCases = section("request ids", [
  {
    name: "the same request id gets the same deliveries again, with the same receipts and bytes, from any client",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const first = await backend.dequeue(JOBS, { limit: 2, requestId: "q1" });
      assert.deepEqual(first.map(content), ["1", "2"]);
      same(await backend.dequeue(JOBS, { limit: 2, requestId: "q1" }), first);
      same(await (await open()).dequeue(JOBS, { limit: 2, requestId: "q1" }), first);
      await counts(backend, JOBS, 1, 2);
      assert.equal((await backend.statistics(JOBS)).delivered, 2);
      assert.deepEqual((await backend.dequeue(JOBS, { limit: 2, requestId: "q2" })).map(content), ["3"]);
    },
  },
  {
    name: "the repeat gets the first answer also when its messages were acked, given back or taken by others meanwhile, and nothing changes",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const first = await backend.dequeue(JOBS, { limit: 3, requestId: "q1" });
      const [one, two, three] = first;
      assert.ok(one && two && three);
      await ack(backend, JOBS, one);
      await backend.nack(JOBS, [{ receipt: two.receipt, reason: "no" }]);
      await backend.release(JOBS, [three.receipt]);
      same(await backend.dequeue(JOBS, { limit: 3, requestId: "q1" }), first);
      await counts(backend, JOBS, 2, 0);
      const taken = await take(backend, JOBS);
      same(await backend.dequeue(JOBS, { limit: 3, requestId: "q1" }), first);
      await assertStale(backend, JOBS, two.receipt);
      await counts(backend, JOBS, 1, 1);
      await ack(backend, JOBS, taken);
    },
  },
  {
    name: "a repeat renews no lease",
    async run({ backend, passTime, spanMs }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const first = await backend.dequeue(JOBS, { leaseMs: spanMs, requestId: "q1" });
      await passTime(spanMs);
      same(await backend.dequeue(JOBS, { leaseMs: spanMs, requestId: "q1" }), first);
      await recoverAll(backend);
      await counts(backend, JOBS, 1, 0);
      await assertStale(backend, JOBS, first[0]?.receipt as never);
    },
  },
  {
    name: "an empty answer is not remembered: the repeat tries again",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.deepEqual(await backend.dequeue(JOBS, { requestId: "q1" }), []);
      await put(backend, JOBS, "1", "2");
      const first = await backend.dequeue(JOBS, { requestId: "q1" });
      assert.deepEqual(first.map(content), ["1"]);
      same(await backend.dequeue(JOBS, { requestId: "q1" }), first);
      assert.deepEqual(await takeTexts(backend, JOBS), ["2"]);
    },
  },
  {
    name: "the same request id with other arguments is a conflict, and takes nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const first = await backend.dequeue(JOBS, { limit: 2, leaseMs: 50_000, owner: "receipt", requestId: "q1" });
      for (const other of [{ limit: 1 }, { limit: 3 }, { leaseMs: 50_001 }]) {
        await refused(
          () => backend.dequeue(JOBS, { limit: 2, leaseMs: 50_000, owner: "receipt", requestId: "q1", ...other }),
          "id-conflict",
        );
      }
      await counts(backend, JOBS, 1, 2);
      same(await backend.dequeue(JOBS, { limit: 2, leaseMs: 50_000, owner: "receipt", requestId: "q1" }), first);
    },
  },
  {
    name: "the same request id with another owner is a conflict, and takes nothing",
    needs: ["process-owners"],
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const first = await backend.dequeue(JOBS, { owner: "receipt", requestId: "q1" });
      await refused(() => backend.dequeue(JOBS, { owner: "process", requestId: "q1" }), "id-conflict");
      await counts(backend, JOBS, 1, 1);
      same(await backend.dequeue(JOBS, { owner: "receipt", requestId: "q1" }), first);
    },
  },
  {
    name: "request ids of different queues do not meet, nor with message ids",
    async run({ backend }) {
      await make(backend, JOBS, "other", "jobs/q1");
      for (const queue of [JOBS, name("other"), name("jobs/q1")]) await backend.enqueue(queue, [{ id: "q1" as never, data: bytes(queue) }]);
      for (const queue of [JOBS, name("other"), name("jobs/q1")]) {
        const first = await backend.dequeue(queue, { requestId: "q1" });
        assert.deepEqual(first.map(content), [queue]);
        same(await backend.dequeue(queue, { requestId: "q1" }), first);
      }
    },
  },
  {
    name: "request ids are compared exactly",
    async run({ backend }) {
      await make(backend, JOBS);
      const requestIds = ["q", "Q", "é", "e\u0301", "a/b", "a:b", "{}", "__proto__", "constructor", "%", "_", "'", "x".repeat(255)];
      await put(backend, JOBS, ...requestIds);
      for (const requestId of requestIds) assert.deepEqual((await backend.dequeue(JOBS, { requestId })).map(content), [requestId]);
      for (const requestId of requestIds) assert.deepEqual((await backend.dequeue(JOBS, { requestId })).map(content), [requestId]);
      await empty(backend, JOBS);
    },
  },
  {
    name: "a request id is forgotten once rememberMs have passed",
    options: { rememberMs: 1000 },
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      assert.deepEqual((await backend.dequeue(JOBS, { requestId: "q1" })).map(content), ["1"]);
      await passTime(1100);
      assert.deepEqual((await backend.dequeue(JOBS, { requestId: "q1" })).map(content), ["2"]);
      assert.deepEqual((await backend.dequeue(JOBS, { requestId: "q1" })).map(content), ["2"]);
    },
  },
  {
    name: "ten minutes are remembered unless told otherwise, exactly",
    needs: ["manual-clock"],
    async run({ backend, passTime }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const first = await backend.dequeue(JOBS, { requestId: "q1" });
      await ack(backend, JOBS, ...first);
      await passTime(10 * 60 * 1000 - 1);
      same(await backend.dequeue(JOBS, { requestId: "q1" }), first);
      await passTime(1);
      assert.deepEqual((await backend.dequeue(JOBS, { requestId: "q1" })).map(content), ["2"]);
    },
  },
  {
    name: "of many calls with one request id at once, one takes and all get its answer",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      await put(backend, JOBS, ...Array.from({ length: 20 }, (_, index) => String(index)));
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (index % 2 ? backend : other).dequeue(JOBS, { limit: 3, requestId: "q1" })),
      );
      for (const answer of answers) same(answer, answers[0] ?? []);
      await counts(backend, JOBS, 17, 3);
    },
  },
  {
    name: "after a clear the repeat still gets the first answer, whose receipts are stale",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      const first = await backend.dequeue(JOBS, { requestId: "q1" });
      await backend.clear(JOBS);
      await put(backend, JOBS, "2");
      same(await backend.dequeue(JOBS, { requestId: "q1" }), first);
      await assertStale(backend, JOBS, first[0]?.receipt as never);
      assert.deepEqual(await takeTexts(backend, JOBS), ["2"]);
    },
  },
]);
