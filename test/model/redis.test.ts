import fc from "fast-check";
import { afterAll, beforeAll, it } from "vitest";
import { runHistory } from "../../src/testing/index.ts";
import { redisHarness } from "../support/redis-harness.ts";
import { histories, randomness } from "./steps.ts";
import { runTaskHistory } from "./task-history.ts";
import { taskHistories } from "./task-steps.ts";

const { harness, begin, end } = redisHarness();

beforeAll(begin);
afterAll(end);

it("redis answers like the model, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(histories(false, 100), (steps) => runHistory(steps, harness)),
    randomness(50),
  );
});

it("tasks of redis count and end as the model says, whatever happens in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(taskHistories(false, 80), (steps) => runTaskHistory(steps, harness)),
    randomness(60),
  );
});
