/** The judge of histories, on histories that were made up: it must find what is wrong, and nothing else. */

import { describe, expect, it } from "vitest";
import { judge, type Operation } from "./history.ts";

const LIFE: readonly Operation[] = [
  { kind: "enqueue", queue: "a", message: "1", begin: 10, end: 20 },
  { kind: "dequeue", queue: "a", message: "1", begin: 30, end: 40 },
  { kind: "ack", queue: "a", message: "1", begin: 50, end: 60 },
];

function violations(operations: readonly Operation[], queues: readonly string[], ...snapshots: readonly (readonly number[])[]): string[] {
  return judge(operations, Float64Array.from(snapshots.flat()), queues).violations.map(({ kind, begin }) => `${kind} at ${begin}`);
}

describe("the judge of histories", () => {
  it.each([
    ["nothing before the enqueue", [0, 5, 0, 0]],
    ["the message while it is enqueued", [12, 14, 1, 0]],
    ["nothing while it is enqueued", [12, 14, 0, 0]],
    ["it pending", [22, 28, 1, 0]],
    ["it in processing while it is dequeued", [32, 38, 0, 1]],
    ["it in processing", [42, 48, 0, 1]],
    ["nothing while it is acked", [52, 58, 0, 0]],
    ["nothing in a call that reaches into the ack", [42, 52, 0, 0]],
    ["nothing in a call that began before the enqueue had ended", [19, 45, 0, 0]],
    ["nothing afterwards", [70, 80, 0, 0]],
  ])("accepts a snapshot that shows %s", (_what, snapshot) => {
    expect(violations(LIFE, ["a"], snapshot)).toEqual([]);
  });

  it.each([
    ["nothing while the message is pending", [22, 28, 0, 0], "false-completion at 22"],
    ["nothing while it goes from pending to processing", [22, 48, 0, 0], "false-completion at 22"],
    ["it twice while it goes from pending to processing", [22, 48, 1, 1], "no-instant at 22"],
    ["it pending after it was handed out", [42, 48, 1, 0], "no-instant at 42"],
    ["it in processing before it was handed out", [22, 28, 0, 1], "no-instant at 22"],
    ["it after the ack", [70, 80, 0, 1], "no-instant at 70"],
    ["it before the enqueue", [0, 5, 1, 0], "no-instant at 0"],
    ["a negative number", [70, 80, -1, 1], "no-instant at 70"],
  ])("refuses a snapshot that shows %s", (_what, snapshot, violation) => {
    expect(violations(LIFE, ["a"], snapshot)).toEqual([violation]);
  });

  it("refuses one snapshot of two queues that would need two instants", () => {
    const handed: readonly Operation[] = [...LIFE, { kind: "enqueue", queue: "b", message: "2", begin: 42, end: 44 }];
    expect(violations(handed, ["a", "b"], [30, 70, 0, 0, 1, 0], [30, 41, 0, 1, 0, 0])).toEqual([]);
    // "b" was empty before 44 only, "a" from 50 on only.
    expect(violations(handed, ["a", "b"], [30, 70, 0, 0, 0, 0])).toEqual(["false-completion at 30"]);
  });

  it("counts the work of a forward throughout, in one queue or the other", () => {
    const handed: readonly Operation[] = [...LIFE, { kind: "forward", queue: "b", message: "2", begin: 50, end: 60 }];
    expect(violations(handed, ["a", "b"], [52, 58, 0, 1, 0, 0], [52, 58, 0, 0, 1, 0])).toEqual([]);
    expect(violations(handed, ["a", "b"], [52, 58, 0, 0, 0, 0])).toEqual(["false-completion at 52"]);
  });

  it("follows a message that was given back and delivered again, whatever the order in which the calls began", () => {
    const again: readonly Operation[] = [
      // Waited for its turn from before the message was enqueued.
      { kind: "dequeue", queue: "a", message: "1", begin: 5, end: 40 },
      { kind: "enqueue", queue: "a", message: "1", begin: 10, end: 20 },
      { kind: "return", queue: "a", message: "1", begin: 45, end: 50 },
      { kind: "dequeue", queue: "a", message: "1", begin: 55, end: 60 },
      { kind: "ack", queue: "a", message: "1", begin: 70, end: 80 },
    ];
    expect(violations(again, ["a"], [22, 24, 1, 0], [22, 24, 0, 1], [51, 54, 1, 0], [61, 69, 0, 1], [81, 90, 0, 0])).toEqual([]);
    expect(violations(again, ["a"], [41, 44, 1, 0], [51, 54, 0, 1], [41, 69, 0, 0])).toEqual([
      "no-instant at 41",
      "no-instant at 51",
      "false-completion at 41",
    ]);
  });

  it("tells how many snapshots could have been wrong", () => {
    const verdict = judge(LIFE, Float64Array.from([22, 28, 1, 0, 52, 58, 0, 1, 70, 80, 0, 0]), ["a"]);
    expect(verdict).toMatchObject({ snapshots: 3, duringWork: 1, complete: 1, violations: [] });
  });
});
