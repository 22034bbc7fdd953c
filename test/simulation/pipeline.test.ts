/** Workers, named queues, waits and tasks over the memory backend, with everything between them ruled by the seed. */

import { expect, it } from "vitest";
import { playPipeline } from "./pipeline-run.ts";
import { firstSeed, playSeedsWith } from "./seeds.ts";

it("tasks end when, and only when, all of their work is done, whoever dies", async () => {
  await playSeedsWith("workers and tasks", (seed) => playPipeline(seed), 100);
});

it("one seed is one run", async () => {
  const seed = firstSeed();
  const [first, second] = [await playPipeline(seed), await playPipeline(seed)];
  expect(second.lines).toEqual(first.lines);
  expect(second.hash).toBe(first.hash);
});
