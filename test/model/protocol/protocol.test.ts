/** The protocol of completion, model by model: which of them must be sound, and which must fall, and how. */

import { beforeAll, describe, expect, it } from "vitest";
import { check, missingPrograms } from "./checker.ts";

/** One model in one variant. */
interface Expectation {
  readonly model: string;
  readonly variant?: readonly string[];
  readonly says: string;
  /** What the way to the error must tell, in this order; without it there must be no error at all. */
  readonly falls?: readonly (string | RegExp)[];
  /** Which state must be reachable for the model to say anything, as the definitions that turn its assertion round. */
  readonly reaches?: readonly (readonly string[])[];
}

const COMPLETE = /^reader: says complete; really unfinished now: [1-9]/;

const MODELS: readonly Expectation[] = [
  {
    model: "two-sources.pml",
    says: "pending in the store and a counter of the process that is raised after the dequeue: false completion",
    falls: [/worker: takes message/, /reads the store, 0 pending/, /reads the counter, 0 in hand/, COMPLETE],
  },
  {
    model: "two-sources.pml",
    variant: ["NO_GAP"],
    says: "the same with the counter raised in the step of the dequeue: a crash forgets it, or a message comes in between: false completion",
    falls: [COMPLETE],
  },
  {
    model: "two-sources.pml",
    variant: ["NO_GAP", "NO_CRASH"],
    says: "and without any crash: the two reads are two moments: false completion",
    falls: [/reads the store, 0 pending/, /producer: enqueues message/, /reads the counter, 0 in hand/, COMPLETE],
  },
  {
    model: "two-sources.pml",
    variant: ["NO_GAP", "NO_CRASH", "COUNTER_FIRST"],
    says: "and with the counter read first: false completion",
    falls: [/reads the counter, 0 in hand/, /worker: takes message/, /reads the store, 0 pending/, COMPLETE],
  },
  {
    model: "queue-snapshots.pml",
    says: "two queues read one after the other while a worker forwards: false completion",
    falls: [/reads queue \d, 0 unacked/, /acks and forwards/, /reads queue \d too, 0 unacked together/, COMPLETE],
  },
  {
    model: "queue-snapshots.pml",
    variant: ["SNAPSHOT"],
    says: "pending and processing of all queues in one snapshot: sound",
    reaches: [["REACHABLE"]],
  },
  {
    model: "two-collections.pml",
    says: "several slots, collected twice, all zero and no arrival between: sound",
    reaches: [["REACHABLE"]],
  },
  {
    model: "two-collections.pml",
    variant: ["NO_ARRIVALS"],
    says: "the same without the arrival counters: false completion",
    falls: [/collection 1/, /collection 2/, COMPLETE],
  },
  {
    model: "task-rule.pml",
    says: "a task that ends in the step of its last ack, once sealed, with a lease of its producer: sound, whoever looks and whoever dies",
    reaches: [["REACHABLE=completed"], ["REACHABLE=failed"]],
  },
  {
    model: "task-rule.pml",
    variant: ["BEFORE_SEAL"],
    says: "a task that may end before it is sealed: done while its producer still adds",
    falls: [/worker \d: acks/, /the task has ended as completed/],
  },
  {
    model: "task-rule.pml",
    variant: ["STATUS_AFTER_ACK"],
    says: "a status that is saved after the last ack: after a crash between the two it is never done",
    falls: [/crashes before it saves the status/, /finale: .* the task is running/],
  },
  {
    model: "task-rule.pml",
    variant: ["NO_PRODUCER_LEASE"],
    says: "a producer without a lease: after its death the task is never done",
    falls: [/producer: dies/, /finale: .* the task is running/],
  },
  {
    model: "handler-order.pml",
    says: "a handler that acks and forwards in one step: sound",
    reaches: [["REACHABLE"]],
  },
  { model: "handler-order.pml", variant: ["LOSS"], says: "and nothing is lost" },
  {
    model: "handler-order.pml",
    variant: ["ENQUEUE_FIRST"],
    says: "a handler that enqueues its follow-up and acks then: sound",
    reaches: [["REACHABLE"]],
  },
  { model: "handler-order.pml", variant: ["ENQUEUE_FIRST", "LOSS"], says: "and nothing is lost" },
  {
    model: "handler-order.pml",
    variant: ["ACK_FIRST"],
    says: "a handler that acks before it enqueues its follow-up: false completion, although the snapshot is atomic",
    falls: [/handler: acks, and has the follow-up in hand/, COMPLETE],
  },
  {
    model: "handler-order.pml",
    variant: ["ACK_FIRST", "LOSS"],
    says: "and a crash loses the follow-up",
    falls: [/nobody has the follow-up/, /finale: both queues are empty, really unfinished: [1-9]/],
  },
  { model: "fencing.pml", says: "settling by the receipt of the delivery: a late ack is stale, sound", reaches: [["REACHABLE"]] },
  {
    model: "fencing.pml",
    variant: ["BARE_ID"],
    says: "settling by the bare id: a late ack ends the delivery of another worker",
    falls: [/takes the message with receipt 1/, /lease of delivery 1 has ended/, /takes the message with receipt 2/, /delivery 1: acked/],
  },
];

/** Prints a line where the reader of a test run sees it. */
function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

beforeAll(() => {
  const missing = missingPrograms();
  if (missing !== undefined) throw new Error(missing);
});

describe("the protocol of completion", () => {
  for (const { model, variant = [], says, falls, reaches = [] } of MODELS) {
    it(`${model} ${variant.join(" ")}: ${says}`, () => {
      const { violated, trail, states } = check(model, variant);
      if (falls === undefined) {
        expect(violated, trail.join("\n")).toBeUndefined();
        tell(`${model} ${variant.join(" ")}: no error in ${states} states`);
      } else {
        expect(violated, "an error must be found").toBeDefined();
        tell(`${model} ${variant.join(" ")}: violates ${violated}\n  ${trail.join("\n  ")}`);
        let from = 0;
        for (const part of falls) {
          const found = trail.findIndex((line, index) => index >= from && line.search(part) >= 0);
          expect(found, `${String(part)} from line ${from} on of\n${trail.join("\n")}`).toBeGreaterThanOrEqual(0);
          from = found;
        }
      }
      for (const reached of reaches) {
        const { violated: met, trail: way } = check(model, [...variant, ...reached]);
        expect(met, `${reached.join(" ")} must be reachable, or the model says nothing`).toBeDefined();
        tell(`${model} ${reached.join(" ")}: reached in ${way.length} steps`);
      }
    });
  }
});
