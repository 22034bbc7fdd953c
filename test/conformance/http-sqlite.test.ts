import { expect, it } from "vitest";
import { CONFORMANCE_CASES, registerConformance, skippedTitles } from "../../src/testing/index.ts";
import { vitestRunner } from "../support/conformance-runner.ts";
import { httpHarness } from "../support/http-harness.ts";
import { sqliteHarness } from "../support/sqlite-harness.ts";

const harness = httpHarness(sqliteHarness("normal"));

registerConformance(CONFORMANCE_CASES, harness, vitestRunner);

it("http over sqlite skips exactly these cases", () => {
  expect(skippedTitles(CONFORMANCE_CASES, harness)).toEqual([
    "request ids: the same request id with another owner is a conflict, and takes nothing",
    "bounds: a full store refuses new messages and drops none; acks still work and make room",
    "bounds: the bound counts exactly: repeats and conflicts take no room, and an ack makes room for what it forwards",
  ]);
});
