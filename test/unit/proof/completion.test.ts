/** Histories at the border of the properties of status, completion and liveness. */

import { describe, expect, it } from "vitest";
import type { Operation } from "../../faults/proof/operation.ts";
import { type Around, ack, call, dequeue, enqueue, messages, status, use, violated } from "./script.ts";

interface Border extends Around {
  readonly name: string;
  readonly property: string;
  readonly legal: readonly Operation[];
  readonly illegal: readonly Operation[];
}

const taken = [enqueue([0, 1], "a", "v"), dequeue([10, 20], "a", ["v"])];
const forward = [{ queue: "b", messages: messages("f") }];
const handedOn = [...taken, ack([30, 40], "a", "v/1", forward)];

const sealed = call([0, 5], {
  op: "submit",
  task: "t",
  sealed: true,
  batches: [{ queue: "a", messages: [{ value: "v", task: "t" }] }],
  answer: "created",
});
const open = call([0, 5], {
  op: "submit",
  task: "t",
  sealed: false,
  batches: [{ queue: "a", messages: [{ value: "v", task: "t" }] }],
  answer: "created",
});
const worked = [dequeue([10, 20], "a", ["v"]), ack([30, 40], "a", "v/1")];
const read = (begin: number, end: number, state: string): Operation => call([begin, end], { op: "task", task: "t", status: state });
const wait = (begin: number, end: number, upToNow = false): Operation =>
  call([begin, end], { op: "wait", queues: ["a"], upToNow, timeoutMs: 60_000, answer: "complete" });
const mark = call([10, 12], { op: "mark", mark: "m", queues: ["a"] });
const reached = (begin: number, end: number, isReached: boolean): Operation =>
  call([begin, end], { op: "reached", mark: "m", reached: isReached });

const BORDERS: readonly Border[] = [
  {
    property: "S7",
    name: "the numbers must be those of one instant, not of two",
    legal: [...taken, status([15, 25], { a: [1, 0] }), status([19, 25], { a: [0, 1] })],
    illegal: [...taken, status([21, 25], { a: [1, 0] })],
  },
  {
    property: "S7",
    name: "what was counted must have been possible",
    legal: [enqueue([0, 20], "a", "v"), status([5, 10], { a: [1, 0] })],
    illegal: [enqueue([11, 20], "a", "v"), status([5, 10], { a: [1, 0] })],
  },
  {
    property: "S7",
    name: "a dequeue that was sent again after its lease may have held what it does not name",
    promises: { resends: true },
    legal: [enqueue([0, 1], "a", "v"), dequeue([10, 110], "a", []), status([50, 60], { a: [0, 1] })],
    illegal: [enqueue([0, 1], "a", "v"), dequeue([10, 100], "a", []), status([50, 60], { a: [0, 1] })],
  },
  {
    property: "C1",
    name: "empty while the ack is under way, not before it began",
    legal: [...taken, ack([30, 40], "a", "v/1"), status([25, 31], { a: [0, 0] })],
    illegal: [...taken, ack([30, 40], "a", "v/1"), status([25, 29], { a: [0, 0] })],
  },
  {
    property: "C1",
    name: "neither pending nor processing between the dequeue's begin and end is wrong",
    legal: [...taken, status([11, 19], { a: [1, 0] })],
    illegal: [...taken, status([11, 19], { a: [0, 0] })],
  },
  {
    property: "C1",
    name: "a wait judges an instant of its own time",
    legal: [...taken, ack([30, 40], "a", "v/1"), wait(2, 31)],
    illegal: [...taken, ack([30, 40], "a", "v/1"), wait(2, 29)],
  },
  {
    property: "C2",
    name: "while a forward is in the air something is unacked, though neither queue certainly",
    legal: [...handedOn, status([31, 39], { a: [0, 0], b: [1, 0] }), status([32, 38], { a: [0, 1], b: [0, 0] })],
    illegal: [...handedOn, status([31, 39], { a: [0, 0], b: [0, 0] })],
  },
  {
    property: "C2",
    name: "an enqueue that is under way may not have happened",
    legal: [enqueue([0, 10], "b", "w"), status([5, 9], { a: [0, 0], b: [0, 0] })],
    illegal: [enqueue([0, 4], "b", "w"), status([5, 9], { a: [0, 0], b: [0, 0] })],
  },
  {
    property: "C3",
    name: "numbers of two queues are of one instant",
    legal: [enqueue([0, 10], "a", "v"), enqueue([20, 30], "b", "w"), status([5, 25], { a: [1, 0], b: [1, 0] })],
    illegal: [enqueue([0, 10], "a", "v"), enqueue([20, 30], "b", "w"), status([5, 25], { a: [0, 0], b: [1, 0] })],
  },
  {
    property: "C4",
    name: "reached only when all before the mark is removed",
    legal: [enqueue([0, 9], "a", "v"), mark, dequeue([13, 20], "a", ["v"]), ack([30, 40], "a", "v/1"), reached(25, 31, true)],
    illegal: [enqueue([0, 9], "a", "v"), mark, dequeue([13, 20], "a", ["v"]), ack([30, 40], "a", "v/1"), reached(25, 29, true)],
  },
  {
    property: "C4",
    name: "an enqueue that overlaps the mark may be on either side",
    legal: [enqueue([0, 11], "a", "v"), mark, reached(25, 29, true)],
    illegal: [enqueue([0, 9], "a", "v"), mark, reached(25, 29, true)],
  },
  {
    property: "C4",
    name: "open only as long as something before it can be unacked",
    legal: [enqueue([0, 9], "a", "v"), mark, dequeue([13, 20], "a", ["v"]), ack([30, 40], "a", "v/1"), reached(39, 45, false)],
    illegal: [enqueue([0, 9], "a", "v"), mark, dequeue([13, 20], "a", ["v"]), ack([30, 40], "a", "v/1"), reached(41, 45, false)],
  },
  {
    property: "C4",
    name: "a wait up to now is not held up by what came during it, but waits for what came before",
    legal: [enqueue([0, 9], "a", "v"), wait(8, 20, true)],
    illegal: [enqueue([0, 9], "a", "v"), wait(10, 20, true)],
  },
  {
    property: "C5",
    name: "done while the last ack is under way, not before",
    legal: [sealed, ...worked, read(25, 31, "completed")],
    illegal: [sealed, ...worked, read(25, 29, "completed")],
  },
  {
    property: "C5",
    name: "done for ever",
    legal: [sealed, ...worked, read(30, 35, "completed"), read(34, 36, "running")],
    illegal: [sealed, ...worked, read(30, 35, "completed"), read(36, 38, "running")],
  },
  {
    property: "C5",
    name: "done in the step of the last ack",
    legal: [sealed, ...worked, read(39, 50, "running")],
    illegal: [sealed, ...worked, read(41, 50, "running")],
  },
  {
    property: "C5",
    name: "not done before it is sealed",
    legal: [open, ...worked, call([60, 70], { op: "seal", task: "t" }), read(50, 61, "completed")],
    illegal: [open, ...worked, call([60, 70], { op: "seal", task: "t" }), read(50, 59, "completed")],
  },
  {
    property: "L1",
    name: "a message whose holder is gone is there when its lease has certainly ended",
    legal: [...taken, dequeue([119, 121], "a", [])],
    illegal: [...taken, dequeue([121, 123], "a", [])],
  },
  {
    property: "L1",
    name: "an answer that came late, by a repeat of its request, may be of a delivery before the one that holds the message",
    legal: [
      enqueue([0, 1], "a", "v"),
      dequeue([10], "a", ["v"], { requestId: "r" }),
      dequeue([120, 130], "a", ["v/2"], { leaseMs: 1_000 }),
      dequeue([140, 150], "a", ["v"], { requestId: "r" }),
      dequeue([300, 310], "a", []),
    ],
    illegal: [
      enqueue([0, 1], "a", "v"),
      dequeue([10], "a", ["v"], { requestId: "r" }),
      dequeue([140, 150], "a", ["v"], { requestId: "r" }),
      dequeue([300, 310], "a", []),
    ],
  },
  {
    property: "L2",
    name: "a drain comes to its end",
    drained: true,
    legal: [...taken, ack([30, 40], "a", "v/1")],
    illegal: [],
  },
  {
    property: "L3",
    name: "failures are excused by a fault only",
    faults: [{ kind: "server killed", process: "server", begin: 0, end: 10e6 }],
    promises: { faultTailMs: 5 },
    legal: [call([8, 14], { op: "peek", queue: "a" }, "fail")],
    illegal: [call([16, 20], { op: "peek", queue: "a" }, "fail")],
  },
  {
    property: "L3",
    name: "calls end in time",
    promises: { callMs: 10 },
    legal: [status([0, 10], { a: [0, 0] })],
    illegal: [status([0, 11], { a: [0, 0] })],
  },
  {
    property: "L4",
    name: "a waiter is woken",
    promises: { wakeUpMs: 50 },
    legal: [...taken, ack([30, 40], "a", "v/1"), wait(2, 90)],
    illegal: [...taken, ack([30, 40], "a", "v/1"), wait(2, 91)],
  },
];

describe.each(BORDERS)("$property: $name", ({ property, legal, illegal, drained, ...around }) => {
  const known = drained === undefined ? around : { ...around, drained };
  it("takes the legal one", () => expect(violated(legal, known)).toEqual([]));
  it("catches the illegal one", () => {
    expect(violated(illegal, property === "L2" ? { ...around, drained: false } : known)).toContain(property);
  });
});

describe("unknown operations", () => {
  it("an ack that nobody saw answered has happened once what it forwards is seen", () => {
    const unseen = [...taken, use([30], "ack", "a", "v/1", "acked", { forward })];
    expect(violated([...unseen, status([50, 60], { a: [0, 1] })])).toEqual([]);
    expect(violated([...unseen, dequeue([40, 45], "b", ["f"]), status([50, 60], { a: [0, 1] })])).toContain("S7");
  });

  it("a killed client of a local store does nothing after its end", () => {
    const faults = [{ kind: "kill", process: "c1", begin: 10e6, end: 12e6 }];
    const late = [enqueue([9], "a", "v"), status([20, 30], { a: [0, 0] }), status([40, 50], { a: [1, 0] })];
    expect(violated(late, { faults })).toEqual([]);
  });
});
