import { expect, it } from "vitest";
import { CONFORMANCE_CASES, registerConformance, skippedTitles } from "../../src/testing/index.ts";
import { vitestRunner } from "../support/conformance-runner.ts";
import { memoryHarness } from "../support/memory-harness.ts";

registerConformance(CONFORMANCE_CASES, memoryHarness, vitestRunner);

it("memory skips exactly these cases", () => {
  expect(skippedTitles(CONFORMANCE_CASES, memoryHarness)).toEqual([
    "keeping tasks: tasks outlive their clients",
    "opening and closing: a durable store says so",
    "durability: queues, settings, messages, deliveries, delays, dead letters and statistics are the same after all clients were closed",
    "durability: message ids and request ids are remembered after all clients were closed",
    "durability: made ids and receipts are not used again after all clients were closed",
    "durability: what an enqueue answered is there for a client opened afterwards, large and small, many times",
    "durability: a mark is still good after all clients were closed",
  ]);
});
