/** The simulation must be able to fail: each broken backend is found within a bounded number of seeds. */

import { describe, expect, it } from "vitest";
import { BREAKAGES, type Breakage } from "./broken.ts";
import { Undecided } from "./linearization.ts";
import { memorySurroundings } from "./memory-surroundings.ts";
import { playPipeline } from "./pipeline-run.ts";
import { playRun, RunFailure } from "./run.ts";

/** Seeds within which each breakage must be found. */
const MOST_SEEDS = 150;

/** The first seed, from a fixed one on, with which a run fails, and how. */
async function firstFailure(play: (seed: number) => Promise<unknown>): Promise<{ seed: number; runs: number; message: string }> {
  for (let seed = 1; seed <= MOST_SEEDS; seed += 1) {
    try {
      await play(seed);
    } catch (error) {
      if (!(error instanceof RunFailure)) throw error;
      if (!(error.cause instanceof Undecided)) return { seed: error.seed, runs: seed, message: error.message };
    }
  }
  throw new Error(`not found within ${MOST_SEEDS} seeds`);
}

function found(what: string, { seed, runs, message }: { seed: number; runs: number; message: string }): void {
  expect(message).toContain(`QUEUEFS_SIMULATION_SEED=${seed}`);
  process.stdout.write(`a backend that ${what}: found after ${runs} runs\n`);
}

describe("a backend that", () => {
  for (const [what, between] of Object.entries(BREAKAGES)) {
    it(`${what} is found`, async () => {
      found(what, await firstFailure((seed) => playRun(seed, memorySurroundings, { between, calls: 40, inAir: 2, isCalm: true })));
    });
  }
});

describe("below workers and tasks, a backend that", () => {
  const names = ["hands out a message and leaves it where it was", "acks, and forwards in a step of its own"];
  for (const what of names) {
    it(`${what} is found`, async () => {
      found(what, await firstFailure((seed) => playPipeline(seed, { between: BREAKAGES[what] as Breakage })));
    });
  }
});
