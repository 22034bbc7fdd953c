/** Runs the conformance cases and the model on SQLite, each on a file of its own, with time moved by hand. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { type ConformanceHarness, ManualClock, SeededRandom } from "../../src/testing/index.ts";

/** The harness of one durability; `normal` is faster, `full` is the default of the product. */
export function sqliteHarness(durability: "full" | "normal"): ConformanceHarness {
  return {
    name: `sqlite, durability ${durability}`,
    capabilities: ["durable", "manual-clock", "wall-clock-steps", "process-owners"],
    spanMs: 1000,
    async createStore() {
      const folder = await mkdtemp(join(tmpdir(), "queuefs-conformance-"));
      const clock = new ManualClock();
      const random = new SeededRandom(1);
      const errors: unknown[] = [];
      return {
        open: (options) =>
          openSqlite({
            path: join(folder, "queue.db"),
            durability,
            clock,
            random,
            bootId: "conformance",
            sweepIntervalMs: 3_600_000,
            onError: (error) => void errors.push(error),
            ...options,
          }),
        passTime: (ms) => clock.advanceAndSettle(ms),
        stepWall: (ms) => clock.stepWall(ms),
        async destroy() {
          await rm(folder, { recursive: true });
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
}
