/** Random histories for fast-check. */

import fc from "fast-check";
import { HISTORY_QUEUES, type HistoryQueue, type HistorySelection, type HistoryStep, type Reference } from "../../src/testing/index.ts";

/** Where time is moved by hand, leases and delays are multiples of a second, so that they end exactly when time has passed. */
const SHORT_MS = [1000, 2000, 3000, 5000, 10_000];
/** Where time is real, no lease and no delay ends during a history. */
const LONG_MS = [600_000, 3_600_000];

/** Histories of a store. @param timed whether time is moved by hand; otherwise nothing in them depends on time */
export function histories(timed: boolean, maxLength: number): fc.Arbitrary<HistoryStep[]> {
  const spans = fc.constantFrom(...(timed ? SHORT_MS : LONG_MS));
  // Most deliveries are settled before their lease ends.
  const leases = fc.oneof({ weight: 1, arbitrary: spans }, { weight: 2, arbitrary: fc.constantFrom(...LONG_MS) });
  const queue = fc.constantFrom<HistoryQueue[]>("a", "a", "a", "a", "a", "a/b", "a/b", "a_b", "b");
  const under = fc.constantFrom<HistoryQueue | "">("", "a", "a/b", "b");
  const limit = fc.integer({ min: 1, max: 4 });
  const client = fc.constantFrom<(0 | 1)[]>(0, 1);
  const maxDeliveries = fc.constantFrom(0, 1, 2, 3);
  const reference: fc.Arbitrary<Reference> = fc.record(
    { back: fc.nat(5), among: fc.constantFrom<NonNullable<Reference["among"]>[]>("right", "right", "right", "own", "any") },
    { requiredKeys: ["back"] },
  );
  const references = fc.array(reference, { minLength: 1, maxLength: 3 });
  const delayMs = fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: spans });
  const message = fc.oneof(
    { weight: 3, arbitrary: fc.record({ data: fc.constantFrom("", "00", "61", "0a", "7b7d", "ff00fe") }) },
    { weight: 1, arbitrary: fc.record({ data: fc.constantFrom("61", "0a"), delayMs }) },
    { weight: 2, arbitrary: fc.record({ data: fc.constantFrom("61", "61", "61", "62"), id: fc.constantFrom("x", "y", "z", "é") }) },
    { weight: 1, arbitrary: fc.record({ data: fc.constantFrom("61", "62"), id: fc.constantFrom("x", "y", "z"), delayMs }) },
  );
  const messages = fc.array(message, { minLength: 1, maxLength: 4 });
  const selection: fc.Arbitrary<HistorySelection> = fc.oneof(
    fc.record({ queues: fc.uniqueArray(fc.constantFrom(...HISTORY_QUEUES), { maxLength: 3 }) }),
    fc.record({ under }),
  );
  const step = <Do extends HistoryStep["do"]>(
    name: Do,
    weight: number,
    rest: object,
    requiredKeys?: string[],
  ): fc.WeightedArbitrary<HistoryStep> => ({
    weight,
    arbitrary: fc.record(
      { client, do: fc.constant(name), ...rest } as Record<string, fc.Arbitrary<unknown>>,
      ...(requiredKeys ? [{ requiredKeys: ["client", "do", ...requiredKeys] }] : []),
    ) as unknown as fc.Arbitrary<HistoryStep>,
  });
  const steps = fc.oneof(
    step("createQueue", 3, { queue, maxDeliveries }, ["queue"]),
    step("configureQueue", 1, { queue, maxDeliveries }),
    step("removeQueue", 1, { queue: fc.constantFrom(...HISTORY_QUEUES), recursive: fc.boolean() }),
    step("listQueues", 1, { under, limit }),
    step("enqueue", 26, { queue, messages }),
    step("dequeue", 16, { queue, limit, leaseMs: leases, owner: fc.constantFrom("process", "receipt") }),
    step("dequeue", 3, {
      queue,
      limit: fc.constantFrom(1, 1, 1, 2),
      leaseMs: fc.constant(timed ? 2000 : 600_000),
      owner: fc.constant("process"),
      requestId: fc.constantFrom("q", "x"),
    }),
    step("ack", 7, { queue, items: references }),
    step("ack", 3, {
      queue,
      items: fc.array(
        fc.record({
          back: fc.nat(3),
          forward: fc.array(fc.record({ queue, messages: fc.array(message, { maxLength: 2 }) }), { maxLength: 2 }),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    }),
    step("ackById", 3, { queue, items: references }),
    step("nack", 6, {
      queue,
      items: fc.array(
        fc
          .tuple(reference, fc.oneof(fc.constant(0), spans), fc.constantFrom(false, false, true), fc.constantFrom("", "no", "worse"))
          .map(([one, delayMs, giveUp, reason]) => ({ ...one, delayMs, giveUp, reason })),
        { minLength: 1, maxLength: 3 },
      ),
    }),
    step("release", 4, { queue, items: references }),
    step("extend", 3, {
      queue,
      items: fc.array(
        fc.tuple(reference, spans).map(([one, leaseMs]) => ({ ...one, leaseMs })),
        { minLength: 1, maxLength: 3 },
      ),
    }),
    step("peek", 2, { queue }),
    step("nextDue", 2, { queue }),
    step("messages", 2, { queue, limit }),
    step("clear", 1, { queue }),
    step("status", 1, { queue }),
    step("statuses", 1, { selection }),
    step("mark", 2, { selection }),
    step("reached", 4, { back: fc.nat(3) }),
    step("statistics", 2, { queue }),
    step("recover", timed ? 4 : 1, {}),
    step("reopen", 1, {}),
    step("deadLetters", 1, { queue, limit }),
    step("redrive", 3, { queue, items: references }),
    step("drop", 1, { queue, items: references }),
    ...(timed ? [step("passTime", 8, { ms: fc.constantFrom(1, 999, 1000, 2000, 5000, 20_000) })] : []),
  );
  // Some things need several steps in a row to happen at all.
  const inQueue = fc.record({ client, queue });
  const chains = fc.oneof(
    { weight: 40, arbitrary: steps.map((one) => [one]) },
    {
      weight: 1,
      arbitrary: fc.tuple(inQueue, limit, spans).map(([where, most, leaseMs]): HistoryStep[] => [
        { ...where, do: "dequeue", limit: most, leaseMs, owner: "receipt" },
        { ...where, do: "nack", items: [0, 1, 2].map((back) => ({ back, delayMs: 0, giveUp: back !== 1, reason: "" })) },
        { ...where, do: "redrive", items: [{ back: 1 }] },
      ]),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(inQueue, limit, spans)
        .map(([where, most, leaseMs]): HistoryStep[] => [
          { ...where, do: "dequeue", limit: most, leaseMs, owner: "process" },
          ...(timed ? [{ ...where, do: "passTime", ms: leaseMs } as const] : []),
          { ...where, do: "peek" },
          { ...where, do: "recover" },
        ]),
    },
    {
      weight: 1,
      arbitrary: inQueue.map((where): HistoryStep[] => [
        { ...where, do: "removeQueue", recursive: true },
        { ...where, do: "createQueue", maxDeliveries: 3 },
      ]),
    },
  );
  // Without any queue everything is refused alike, so histories begin with some; a low limit makes dead letters likely.
  const begin = fc
    .tuple(
      fc.constantFrom(1, 3, 4, 4, 20),
      fc.constantFrom<HistoryQueue[][]>(["a", "a/b", "b"], ["a/b", "a", "a_b"], ["b", "a_b", "a", "a/b"]),
    )
    .map(([most, queues]) => queues.map((one): HistoryStep => ({ client: 0, do: "createQueue", queue: one, maxDeliveries: most })));
  return fc.tuple(begin, fc.array(chains, { minLength: 1, maxLength, size: "max" })).map(([first, rest]) => [...first, ...rest.flat()]);
}

/** How often and from which seed: `QUEUEFS_SEED` and `QUEUEFS_PATH` replay what a failure printed, `QUEUEFS_RUNS` lengthens. */
export function randomness(runs: number): fc.Parameters<unknown> {
  const { QUEUEFS_SEED: seed, QUEUEFS_PATH: path, QUEUEFS_RUNS: asked } = process.env;
  return {
    numRuns: asked === undefined ? runs : Number(asked),
    endOnFailure: false,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  };
}
