import fc from "fast-check";
import { it } from "vitest";
import { runHistory } from "../../src/testing/index.ts";
import { sqliteHarness } from "../support/sqlite-harness.ts";
import { histories, randomness } from "./steps.ts";
import { runTaskHistory } from "./task-history.ts";
import { taskHistories } from "./task-steps.ts";

it("sqlite answers like the model, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(histories(true, 100), (steps) => runHistory(steps, sqliteHarness("normal"), { options: { rememberMs: 10_000 } })),
    randomness(60),
  );
});

it("tasks of sqlite count and end as the model says, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(taskHistories(true, 80), (steps) => runTaskHistory(steps, sqliteHarness("normal"))),
    randomness(80),
  );
});
