/** Subscriptions tell of changes, by whatever client. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import type { QueueName } from "../../core/names.ts";
import { type ConformanceContext, section } from "./case.ts";
import { ack, eventually, JOBS, make, name, put, take } from "./steps.ts";

/** Counts the calls that may concern a queue. */
function watch(backend: Backend, queue: QueueName): { calls(): number; stop(): void } {
  let calls = 0;
  const stop = backend.subscribe((queues) => {
    if (queues === undefined || queues.has(queue)) calls += 1;
  });
  return { calls: () => calls, stop };
}

async function wakes(
  context: ConformanceContext,
  watched: { calls(): number },
  what: string,
  change: () => Promise<unknown>,
): Promise<void> {
  const before = watched.calls();
  await change();
  await eventually(context, `the listener is called after ${what}`, () => watched.calls() > before);
}

/** The cases of the section "waking". */
export const wakingCases = section("waking", [
  {
    name: "a listener is called after every kind of change, whether its own client made it or another",
    async run(context) {
      const { backend, open } = context;
      await make(backend, JOBS);
      const other = await open();
      for (const [whose, client] of [
        ["its own", backend],
        ["another", other],
      ] as const) {
        const watched = watch(backend, JOBS);
        const step = (what: string, change: () => Promise<unknown>): Promise<void> =>
          wakes(context, watched, `${what} by ${whose} client`, change);
        await step("enqueue", () => put(client, JOBS, "1", "2", "3"));
        let held = await take(backend, JOBS);
        await step("ack", () => ack(client, JOBS, held));
        held = await take(backend, JOBS);
        await step("nack", () => client.nack(JOBS, [{ receipt: held.receipt }]));
        held = await take(backend, JOBS);
        await step("release", () => client.release(JOBS, [held.receipt]));
        held = await take(backend, JOBS);
        await step("ack by id", () => client.ackById(JOBS, [held.id]));
        held = await take(backend, JOBS);
        await step("give up", () => client.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]));
        await step("redrive", () => client.redrive(JOBS, [held.id]));
        await step("clear", () => client.clear(JOBS));
        await step("removal", () => client.removeQueue(JOBS));
        await step("creation", () => client.createQueue(JOBS));
        watched.stop();
      }
    },
  },
  {
    name: "a listener is called when a dequeue empties the queue of another, and when a lease is recovered",
    async run(context) {
      const { backend, open, passTime, spanMs } = context;
      await make(backend, JOBS);
      const other = await open();
      const watched = watch(other, JOBS);
      await put(backend, JOBS, "1");
      await wakes(context, watched, "dequeue", () => take(backend, JOBS, { leaseMs: spanMs }));
      await passTime(spanMs);
      await wakes(context, watched, "recovery", () => backend.recover());
      watched.stop();
    },
  },
  {
    name: "a listener is called for the queue that an ack forwards to",
    async run(context) {
      const { backend, open } = context;
      await make(backend, JOBS, "next");
      await put(backend, JOBS, "1");
      const held = await take(backend, JOBS);
      const watched = watch(await open(), name("next"));
      await wakes(context, watched, "forward", () =>
        backend.ack(JOBS, [{ receipt: held.receipt, forward: [{ queue: name("next"), messages: [{ data: held.data }] }] }]),
      );
      watched.stop();
    },
  },
  {
    name: "many listeners are all called, also when one throws, and one that has ended is not",
    async run(context) {
      const { backend, open } = context;
      await make(backend, JOBS);
      const other = await open();
      const throwing = backend.subscribe(() => {
        throw new Error("a listener that throws, on purpose");
      });
      const ended = watch(backend, JOBS);
      const first = watch(backend, JOBS);
      const second = watch(backend, JOBS);
      ended.stop();
      ended.stop();
      const before = ended.calls();
      await wakes(context, first, "enqueue", () => put(other, JOBS, "1"));
      await eventually(context, "the second listener is called too", () => second.calls() > 0);
      assert.equal(ended.calls(), before);
      await put(backend, JOBS, "still works");
      for (const stop of [throwing, first.stop, second.stop]) stop();
    },
  },
  {
    name: "after close no listener is called",
    async run(context) {
      const { backend, open } = context;
      await make(backend, JOBS);
      const other = await open();
      const closed = watch(other, JOBS);
      const living = watch(backend, JOBS);
      await other.close();
      const before = closed.calls();
      const third = await open();
      await wakes(context, living, "enqueue", () => put(third, JOBS, "1"));
      assert.equal(closed.calls(), before);
      closed.stop();
      living.stop();
    },
  },
]);
