import fc from "fast-check";
import { it } from "vitest";
import { runHistory } from "../../src/testing/index.ts";
import { memoryHarness } from "../support/memory-harness.ts";
import { histories, randomness } from "./steps.ts";
import { runTaskHistory } from "./task-history.ts";
import { taskHistories } from "./task-steps.ts";

it("memory answers like the model, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(histories(true, 100), (steps) => runHistory(steps, memoryHarness, { options: { rememberMs: 10_000 } })),
    randomness(250),
  );
});

it("tasks of memory count and end as the model says, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(taskHistories(true, 80), (steps) => runTaskHistory(steps, memoryHarness)),
    randomness(300),
  );
});
