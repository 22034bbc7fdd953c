import { expect, it } from "vitest";
import { CONFORMANCE_CASES, registerConformance, skippedTitles } from "../../src/testing/index.ts";
import { vitestRunner } from "../support/conformance-runner.ts";
import { httpHarness } from "../support/http-harness.ts";
import { memoryHarness } from "../support/memory-harness.ts";

const harness = httpHarness(memoryHarness);

registerConformance(CONFORMANCE_CASES, harness, vitestRunner);

it("http over memory skips exactly these cases", () => {
  expect(skippedTitles(CONFORMANCE_CASES, harness)).toEqual([
    "request ids: the same request id with another owner is a conflict, and takes nothing",
    "keeping tasks: tasks outlive their clients",
    "opening and closing: a durable store says so",
    "durability: queues, settings, messages, deliveries, delays, dead letters and statistics are the same after all clients were closed",
    "durability: message ids and request ids are remembered after all clients were closed",
    "durability: made ids and receipts are not used again after all clients were closed",
    "durability: what an enqueue answered is there for a client opened afterwards, large and small, many times",
    "durability: a mark is still good after all clients were closed",
  ]);
});
