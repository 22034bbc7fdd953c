/** The memory backend under simulated clients, lost calls and answers, and a clock that the seed moves. */

import { expect, it } from "vitest";
import { memorySurroundings } from "./memory-surroundings.ts";
import { playRun } from "./run.ts";
import { firstSeed, playSeeds } from "./seeds.ts";

it("memory answers as some order of its calls explains, whatever is lost, late or twice", async () => {
  await playSeeds("memory", memorySurroundings, { runs: 500, calls: 60 });
});

it("one seed is one run", async () => {
  const seed = firstSeed();
  const [first, second] = [await playRun(seed, memorySurroundings), await playRun(seed, memorySurroundings)];
  expect(second.lines).toEqual(first.lines);
  expect(second.hash).toBe(first.hash);
  expect((await playRun(seed + 1, memorySurroundings)).hash).not.toBe(first.hash);
});
