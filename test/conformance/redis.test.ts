import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFORMANCE_CASES, registerConformance, skippedTitles } from "../../src/testing/index.ts";
import { vitestRunner } from "../support/conformance-runner.ts";
import { redisHarness } from "../support/redis-harness.ts";

const { harness, begin, end } = redisHarness();

beforeAll(begin);
afterAll(end);

registerConformance(CONFORMANCE_CASES, harness, vitestRunner);

it("redis skips exactly these cases", () => {
  expect(skippedTitles(CONFORMANCE_CASES, harness)).toMatchInlineSnapshot(`
    [
      "enqueue: messages whose delays end together or one after another come in enqueue order among those due",
      "enqueue: the longest delay, 366 days, is kept",
      "message ids: ten minutes are remembered unless told otherwise, exactly",
      "message ids: an id used anew after it was forgotten is remembered anew",
      "deliveries: a lease ends exactly when its time has passed, neither a millisecond before nor after",
      "deliveries: a step of the wall clock, forward or back, ends no lease, delay or memory early or late",
      "request ids: ten minutes are remembered unless told otherwise, exactly",
      "next due: it is exact to the millisecond",
      "statistics: delayed messages count as delayed until their time has come",
      "statistics: ages are counted from the enqueue, of the oldest in each state",
      "bounds: a full store refuses new messages and drops none; acks still work and make room",
      "bounds: the bound counts exactly: repeats and conflicts take no room, and an ack makes room for what it forwards",
    ]
  `);
});
