/** Runs the conformance cases and the model on memory, each on a store of its own, with time moved by hand. */

import assert from "node:assert/strict";
import { MemoryStore, openMemory } from "../../src/backend/memory/index.ts";
import { type ConformanceHarness, ManualClock, SeededRandom } from "../../src/testing/index.ts";

/** The harness of the memory backend. */
export const memoryHarness: ConformanceHarness = {
  name: "memory",
  capabilities: ["manual-clock", "wall-clock-steps", "process-owners", "bounded"],
  spanMs: 1000,
  async createStore() {
    const clock = new ManualClock();
    const random = new SeededRandom(1);
    const store = new MemoryStore(random);
    const errors: unknown[] = [];
    return {
      open: (options) =>
        openMemory({ store, clock, random, sweepIntervalMs: 3_600_000, onError: (error) => void errors.push(error), ...options }),
      passTime: (ms) => clock.advanceAndSettle(ms),
      stepWall: (ms) => clock.stepWall(ms),
      async destroy() {
        assert.deepEqual(
          errors.filter((error) => !String(error).includes("on purpose")),
          [],
          "no error in the background",
        );
        assert.equal(clock.timerCount, 0, "closed clients leave no timer");
      },
    };
  },
};
