import fc from "fast-check";
import { it } from "vitest";
import { runHistory } from "../../src/testing/index.ts";
import { httpHarness } from "../support/http-harness.ts";
import { memoryHarness } from "../support/memory-harness.ts";
import { histories, randomness } from "./steps.ts";
import { runTaskHistory } from "./task-history.ts";
import { taskHistories } from "./task-steps.ts";

const harness = httpHarness(memoryHarness);

it("http answers like the model, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(histories(true, 100), (steps) => runHistory(steps, harness, { options: { rememberMs: 10_000 } })),
    randomness(20),
  );
});

it("tasks over http count and end as the model says, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(taskHistories(true, 80), (steps) => runTaskHistory(steps, harness)),
    randomness(20),
  );
});
