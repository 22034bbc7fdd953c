/** Opening, describing, inspecting and closing. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import { section } from "./case.ts";
import { bytes, content, counts, everyMessage, id, JOBS, make, put, refused, take } from "./steps.ts";

function everyCall(backend: Backend): Record<string, () => Promise<unknown>> {
  return {
    createQueue: () => backend.createQueue(JOBS),
    configureQueue: () => backend.configureQueue(JOBS, {}),
    removeQueue: () => backend.removeQueue(JOBS),
    listQueues: () => backend.listQueues(),
    enqueue: () => backend.enqueue(JOBS, [{ data: bytes("x") }]),
    "enqueue of nothing": () => backend.enqueue(JOBS, []),
    dequeue: () => backend.dequeue(JOBS),
    ack: () => backend.ack(JOBS, [{ receipt: "r-1-1-1" as never }]),
    ackById: () => backend.ackById(JOBS, [id("x")]),
    nack: () => backend.nack(JOBS, [{ receipt: "r-1-1-1" as never }]),
    release: () => backend.release(JOBS, ["r-1-1-1" as never]),
    extend: () => backend.extend(JOBS, [{ receipt: "r-1-1-1" as never, leaseMs: 1000 }]),
    nextDue: () => backend.nextDue(JOBS),
    peek: () => backend.peek(JOBS),
    messages: () => backend.messages(JOBS),
    clear: () => backend.clear(JOBS),
    status: () => backend.status(JOBS),
    statuses: () => backend.statuses({ queues: [JOBS] }),
    "statuses of all": () => backend.statuses({ under: "" }),
    "statuses of none": () => backend.statuses({ queues: [] }),
    mark: () => backend.mark({ queues: [JOBS] }),
    reached: () => backend.reached({ queues: [] }),
    statistics: () => backend.statistics(JOBS),
    recover: () => backend.recover(),
    deadLetters: () => backend.deadLetters(JOBS),
    redrive: () => backend.redrive(JOBS, [id("x")]),
    drop: () => backend.drop(JOBS, [id("x")]),
    inspect: () => backend.inspect(),
  };
}

/** The cases of the section "opening and closing". */
export const closingCases = section("opening and closing", [
  {
    name: "a store describes itself, the same to every client",
    options: { maxMessageBytes: 12_345 },
    async run({ backend, open }) {
      const { description } = backend;
      assert.deepEqual(Object.keys(description).toSorted(), ["durable", "kind", "location", "maxMessageBytes", "sharedBy", "storeId"]);
      assert.match(description.kind, /^[a-z]+$/);
      assert.ok(["process", "host", "hosts"].includes(description.sharedBy));
      assert.equal(description.maxMessageBytes, 12_345);
      assert.deepEqual((await open()).description, description);
    },
  },
  {
    name: "a durable store says so",
    needs: ["durable"],
    async run({ backend }) {
      assert.equal(backend.description.durable, true);
      assert.notEqual(backend.description.sharedBy, "process");
    },
  },
  {
    name: "after close every call rejects as closed, and closing again is harmless",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      await other.close();
      await other.close();
      await Promise.all([other.close(), other[Symbol.asyncDispose]()]);
      for (const [what, call] of Object.entries(everyCall(other))) assert.match(await refused(call, "closed"), /closed/, what);
      await counts(backend, JOBS, 0, 0);
      assert.deepEqual(await backend.messages(JOBS), { items: [] }, "nothing was done");
    },
  },
  {
    name: "close waits for calls in the air: each is done, or refused as closed, and none half",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const other = await open();
      const calls = Array.from({ length: 50 }, (_, index) =>
        other.enqueue(JOBS, [{ data: bytes(`${index}a`) }, { data: bytes(`${index}b`) }]),
      );
      const taking = other.dequeue(JOBS, { limit: 4 });
      await other.close();
      await Promise.all([...calls, taking]);
      await counts(backend, JOBS, 96, 4);
      assert.equal(new Set((await everyMessage(backend, JOBS)).map(content)).size, 100);
    },
  },
  {
    name: "disposing closes",
    async run({ backend, open }) {
      await make(backend, JOBS);
      const kept = await open();
      {
        await using other = kept;
        await put(other, JOBS, "1");
      }
      await refused(() => kept.status(JOBS), "closed");
      await counts(backend, JOBS, 1, 0);
    },
  },
  {
    name: "one client closed leaves the others at work, and its deliveries in their hands",
    async run({ backend, open }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      const other = await open();
      const held = await take(other, JOBS);
      await other.close();
      await counts(backend, JOBS, 1, 1);
      assert.deepEqual(await backend.ack(JOBS, [{ receipt: held.receipt }]), [{ outcome: "acked", forwarded: [] }]);
      await counts(await open(), JOBS, 1, 0);
    },
  },
  {
    name: "a healthy store's inspection finds no error, and every finding has words",
    async run({ backend }) {
      await make(backend, JOBS, "other");
      await put(backend, JOBS, "1", "2", "3");
      await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt, giveUp: true }]);
      await take(backend, JOBS);
      const findings = await backend.inspect();
      assert.ok(findings.length > 0);
      for (const finding of findings) {
        assert.ok(["ok", "warning"].includes(finding.severity), JSON.stringify(finding));
        assert.match(finding.check, /^[a-z]+(-[a-z]+)*$/);
        assert.ok(finding.message.length > 5);
      }
    },
  },
]);
