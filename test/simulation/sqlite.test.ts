/** The SQLite backend under simulated clients, failing statements, dying processes, and a clock that the seed moves. */

import { expect, it } from "vitest";
import { playRun } from "./run.ts";
import { firstSeed, playSeeds } from "./seeds.ts";
import { sqliteSurroundings } from "./sqlite-surroundings.ts";

it("sqlite answers as some order of its calls explains, whichever statement fails or dies", async () => {
  await playSeeds("sqlite", sqliteSurroundings, { runs: 200, calls: 60 });
});

it("one seed is one run", async () => {
  const seed = firstSeed();
  const [first, second] = [await playRun(seed, sqliteSurroundings), await playRun(seed, sqliteSurroundings)];
  expect(second.lines).toEqual(first.lines);
  expect(second.hash).toBe(first.hash);
});
