/** Which seeds a test plays: many new ones, or the one that is to be repeated. */

import { randomInt } from "node:crypto";
import { Undecided } from "./linearization.ts";
import { type Ground, playRun, RunFailure, type RunOptions, type RunReport, type Surroundings } from "./run.ts";

/** Runs per test unless `QUEUEFS_SIMULATION_RUNS` asks for another number. */
export interface SeedOptions extends RunOptions {
  readonly runs: number;
}

/** The seed of the first run: `QUEUEFS_SIMULATION_SEED`, or any. */
export function firstSeed(): number {
  const { QUEUEFS_SIMULATION_SEED: seed } = process.env;
  return seed === undefined ? randomInt(2 ** 31) : Number(seed);
}

/** How many runs: one when a seed is to be repeated. */
export function runCount(runs: number): number {
  const { QUEUEFS_SIMULATION_SEED: seed, QUEUEFS_SIMULATION_RUNS: asked } = process.env;
  return asked !== undefined ? Number(asked) : seed === undefined ? runs : 1;
}

/** Plays many runs and prints what they came to. @throws RunFailure */
export function playSeeds(name: string, surround: (ground: Ground) => Surroundings, options: SeedOptions): Promise<void> {
  return playSeedsWith(name, (seed) => playRun(seed, surround, options), options.runs);
}

/** Plays many runs of any kind and prints what they came to. @throws RunFailure */
export async function playSeedsWith(name: string, play: (seed: number) => Promise<RunReport>, most: number): Promise<void> {
  const first = firstSeed();
  const runs = runCount(most);
  const begunMs = performance.now();
  const sum = { calls: 0, unknown: 0, refused: 0, crashes: 0, undecided: 0 };
  for (let seed = first; seed < first + runs; seed += 1) {
    try {
      add(sum, await play(seed));
    } catch (error) {
      if (!(error instanceof RunFailure && error.cause instanceof Undecided)) throw error;
      sum.undecided += 1;
    }
  }
  const perMinute = Math.round((runs / (performance.now() - begunMs)) * 60_000);
  process.stdout.write(
    `${name}: ${runs} runs from seed ${first}, ${perMinute} a minute; ${sum.calls} calls, ${sum.unknown} unknown outcomes, ${sum.refused} refused, ${sum.crashes} crashes, ${sum.undecided} undecided\n`,
  );
  if (sum.undecided * 20 > runs) throw new Error(`${sum.undecided} of ${runs} runs could not be judged`);
}

function add(sum: { calls: number; unknown: number; refused: number; crashes: number }, report: RunReport): void {
  sum.calls += report.calls;
  sum.unknown += report.unknown;
  sum.refused += report.refused;
  sum.crashes += report.crashes;
}
