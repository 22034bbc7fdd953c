/** Random histories of tasks for fast-check. */

import fc from "fast-check";
import { parseQueueName, type QueueName } from "../../src/core/names.ts";

/** The queues of a history. */
export const TASK_QUEUES: readonly QueueName[] = ["a", "a/b", "b"].map(parseQueueName);

/** One step; numbers choose among what there is, the last made first. */
export type TaskStep =
  | { readonly do: "create"; readonly counts: readonly number[]; readonly isOpen: boolean }
  | {
      readonly do: "enqueue";
      readonly queue: number;
      readonly count: number;
      readonly task: number | undefined;
      readonly isDelayed: boolean;
    }
  | { readonly do: "dequeue"; readonly queue: number; readonly limit: number; readonly isShort: boolean }
  | {
      readonly do: "ack";
      readonly held: number;
      readonly forward: "none" | "own" | "other" | "nobody";
      readonly queue: number;
      readonly byId: boolean;
    }
  | { readonly do: "nack"; readonly held: number; readonly giveUp: boolean }
  | { readonly do: "release"; readonly held: number }
  | { readonly do: "redrive" | "drop"; readonly dead: number }
  | { readonly do: "clear" | "remake"; readonly queue: number }
  | { readonly do: "cancel" | "removeTask"; readonly task: number }
  | { readonly do: "seal"; readonly task: number; readonly isFailed: boolean }
  | { readonly do: "redriveTask"; readonly from: number; readonly into: number }
  | { readonly do: "pass" };

/** Histories. @param timed whether time is moved by hand: otherwise no lease ends in them */
export function taskHistories(timed: boolean, maxLength: number): fc.Arbitrary<TaskStep[]> {
  const queue = fc.nat(TASK_QUEUES.length - 1);
  const few = fc.nat(5);
  const step = (
    name: TaskStep["do"],
    weight: number,
    rest: Record<string, fc.Arbitrary<unknown>> = {},
  ): fc.WeightedArbitrary<TaskStep> => ({
    weight,
    arbitrary: fc.record({ do: fc.constant(name), ...rest }) as unknown as fc.Arbitrary<TaskStep>,
  });
  const steps = fc.oneof(
    step("create", 6, { counts: fc.array(fc.nat(2), { minLength: 3, maxLength: 3 }), isOpen: fc.boolean() }),
    step("enqueue", 10, {
      queue,
      count: fc.integer({ min: 1, max: 3 }),
      task: fc.option(few, { nil: undefined }),
      isDelayed: fc.boolean(),
    }),
    step("dequeue", 14, { queue, limit: fc.integer({ min: 1, max: 4 }), isShort: timed ? fc.boolean() : fc.constant(false) }),
    step("ack", 14, { held: few, forward: fc.constantFrom("none", "none", "own", "other", "nobody"), queue, byId: fc.boolean() }),
    step("nack", 8, { held: few, giveUp: fc.boolean() }),
    step("release", 3, { held: few }),
    step("redrive", 3, { dead: few }),
    step("drop", 1, { dead: few }),
    step("clear", 1, { queue }),
    step("remake", 1, { queue }),
    step("cancel", 3, { task: few }),
    step("removeTask", 2, { task: few }),
    step("seal", 4, { task: few, isFailed: fc.boolean() }),
    step("redriveTask", 3, { from: few, into: few }),
    ...(timed ? [step("pass", 4)] : []),
  );
  return fc.array(steps, { maxLength, size: "max" });
}
