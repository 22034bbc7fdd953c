/** A history of one process on one open store, without faults: to hold the checks to backends that are broken on purpose. */

import type { Backend } from "../../../src/backend/contract.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { SeededRandom } from "../../../src/testing/seeded-random.ts";
import { RecordedCalls } from "./calls.ts";
import { drain } from "./drain.ts";
import { Lane, type Plan } from "./lane.ts";
import type { History } from "./operation.ts";
import { nanoseconds, Recorder, RecordReader } from "./record.ts";

/** How much is done. */
export interface InProcessOptions {
  readonly seed: number;
  readonly operations: number;
  readonly lanes: number;
  /** How long the drain may take. */
  readonly drainMs: number;
}

/** A plan with queues of these names. */
export function planOf(prefix: string, times: Omit<Plan, "work" | "cleared" | "removed">): Plan {
  const work = ["a", "b", "c"].map((name) => `${prefix}/${name}`);
  return { work, cleared: `${prefix}/cleared`, removed: `${prefix}/removed`, ...times };
}

/** All queues of a plan. */
export function queuesOf({ work, cleared, removed }: Plan): string[] {
  return [...work, cleared, removed];
}

/** Runs lanes on a backend until so many operations were begun, drains it, and gives the history. */
export async function runInProcess(backend: Backend, options: InProcessOptions): Promise<History> {
  const plan = planOf("proof", { shortestLeaseMs: 30, longestLeaseMs: 120, turnMs: 100, longestWaitMs: 400, pauseMs: 1 });
  for (const queue of queuesOf(plan)) await backend.createQueue(parseQueueName(queue), { maxDeliveries: 0 });
  const reader = new RecordReader();
  const originNs = process.hrtime.bigint();
  const recorder = new Recorder(reader.add, () => nanoseconds(originNs));
  const isOver = (): boolean => reader.operations.length >= options.operations;
  await Promise.all(
    Array.from({ length: options.lanes }, (_, index) => {
      const calls = new RecordedCalls(`c${index}.0`, backend, recorder);
      return new Lane(calls, new SeededRandom(options.seed * 100 + index), plan, isOver, () => nanoseconds(originNs) / 1e6).run();
    }),
  );
  const drained = await drain(new RecordedCalls("drain.0", backend, recorder), plan, reader.operations, options.drainMs);
  return { operations: reader.operations, faults: [], drained };
}
