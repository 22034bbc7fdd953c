/**
 * How the properties of this folder are run: more or fewer cases by QUEUEFS_FUZZ_RUNS, the same ones again by QUEUEFS_FUZZ_SEED, which every
 * failure prints.
 */

import { randomInt } from "node:crypto";
import { inspect } from "node:util";
import fc from "fast-check";
import { expect } from "vitest";
import { ERROR_TABLE, isQueueFSError, type QueueFSError } from "../../src/core/errors.ts";

function numberFrom(variable: string, otherwise: number): number {
  const text = process.env[variable];
  if (text === undefined || text === "") return otherwise;
  if (!/^\d{1,10}$/.test(text)) throw new Error(`${variable} must be a whole number, got ${text}`);
  return Number(text);
}

/** Cases of a property of middling cost. */
const RUNS = numberFrom("QUEUEFS_FUZZ_RUNS", 50);
/** The seed of all properties of one run. */
const SEED = numberFrom("QUEUEFS_FUZZ_SEED", randomInt(2 ** 31));

function parameters<Values>(share: number): fc.Parameters<Values> {
  return {
    seed: SEED,
    numRuns: Math.max(1, Math.round(RUNS * share)),
    // The report of fast-check has the seed and the path to the case; this is how they come in again.
    reporter: (details) => {
      if (!details.failed) return;
      throw new Error(`QUEUEFS_FUZZ_SEED=${SEED} replays this:\n${fc.defaultReportMessage(details)}`, { cause: details.errorInstance });
    },
  };
}

/** Holds a property over many cases. @param share how many in proportion: 10 for what takes microseconds, 0.2 for what opens files */
export function hold<Values extends [unknown, ...unknown[]]>(
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  share: number,
  check: (...values: Values) => void,
): void {
  const all = fc.tuple(...(arbitraries as fc.Arbitrary<unknown>[])) as unknown as fc.Arbitrary<Values>;
  fc.assert(
    fc.property(all, (values) => check(...values)),
    parameters(share),
  );
}

/** The same for a property that waits for something. */
export async function holdAsync<Values extends [unknown, ...unknown[]]>(
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  share: number,
  check: (...values: Values) => Promise<void>,
): Promise<void> {
  const all = fc.tuple(...(arbitraries as fc.Arbitrary<unknown>[])) as unknown as fc.Arbitrary<Values>;
  await fc.assert(
    fc.asyncProperty(all, (values) => check(...values)),
    parameters(share),
  );
}

/** What an action ends with: its result, or an error of the table. Any other error is a bug, and so fails. */
export type Ending<Result> =
  | { readonly result: Result; readonly error?: undefined }
  | { readonly error: QueueFSError; readonly result?: undefined };

function endingOf(error: unknown): { readonly error: QueueFSError } {
  if (!isQueueFSError(error)) expect.fail(`a raw error came through: ${inspect(error)}`);
  expect(Object.keys(ERROR_TABLE)).toContain(error.code);
  expect(error.code, `a broken invariant: ${inspect(error)}`).not.toBe("internal");
  expect(error.message.length).toBeGreaterThan(0);
  return { error };
}

/** Runs what may throw an error of the table, and nothing else. */
export function ending<Result>(action: () => Result): Ending<Result> {
  try {
    return { result: action() };
  } catch (error) {
    return endingOf(error);
  }
}

/** Runs what may reject with an error of the table, and nothing else. */
export async function endingAsync<Result>(action: () => Promise<Result>): Promise<Ending<Result>> {
  try {
    return { result: await action() };
  } catch (error) {
    return endingOf(error);
  }
}
