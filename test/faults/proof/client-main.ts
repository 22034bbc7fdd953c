/** A client process of the fault runner. */

import type { Backend } from "../../../src/backend/contract.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { SeededRandom } from "../../../src/testing/seeded-random.ts";
import { serve } from "../../support/child-process-main.ts";
import { RecordedCalls } from "./calls.ts";
import { type ClientStore, openClient } from "./client-store.ts";
import { Lane, type Plan } from "./lane.ts";
import type { OperationOf } from "./operation.ts";
import { fileSink, nanoseconds, Recorder } from "./record.ts";

let wallStepMs = 0;
const steppedClock: Clock = { ...systemClock, wallMs: () => Date.now() + wallStepMs };

let backend: Backend | undefined;
let isOver = true;
let running: Promise<unknown> = Promise.resolve();

/** What the lanes of a client are told for one epoch. */
export interface Orders {
  readonly client: string;
  readonly lanes: number;
  readonly seed: number;
  readonly originNs: bigint;
  readonly record: string;
  readonly plan: Plan;
  /** Dequeues of killed clients, to be asked once more. */
  readonly resume: readonly OperationOf<"dequeue">[];
}

const programs = {
  /** Opens the store; tries again while it is away. */
  async open(store: ClientStore): Promise<void> {
    for (let attempt = 1; backend === undefined; attempt += 1) {
      try {
        backend = await openClient(store, steppedClock);
      } catch (error) {
        if (attempt >= 40) throw error;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    }
  },

  /** Begins to work, and answers at once. */
  begin({ client, lanes, seed, originNs, record, plan, resume }: Orders): void {
    const store = backend;
    if (store === undefined) throw new Error("open comes before begin");
    isOver = false;
    const recorder = new Recorder(fileSink(record), () => nanoseconds(originNs));
    const lane = async (index: number): Promise<void> => {
      const calls = new RecordedCalls(`${client}.${index}`, store, recorder);
      if (index === 0) for (const { queue, limit, leaseMs, requestId } of resume) await calls.dequeue(queue, limit, leaseMs, requestId);
      const random = new SeededRandom(seed + index);
      // Numbers of values must differ between epochs: a task's id is known to the store for a day.
      await new Lane(calls, random, plan, () => isOver, systemClock.monotonicMs, seed * 1_000).run();
    };
    running = Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)));
    running.catch(() => {});
  },

  /** Ends the work; resolves when the last call was answered. */
  async end(): Promise<void> {
    isOver = true;
    await running;
  },

  /** Steps this client's wall clock. */
  stepWallClock(byMs: number): void {
    wallStepMs += byMs;
  },
};

/** What a client process can be asked. */
export type ClientPrograms = typeof programs;

serve(programs);
