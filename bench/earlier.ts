/** Results of an earlier run, of which some suites are measured anew: so that one disturbed suite need not cost the whole again. */

import { isDeepStrictEqual } from "node:util";
import type { Machine } from "./machine.ts";
import type { Results, Suite } from "./results.ts";
import type { Settings } from "./settings.ts";

/** What both runs must have in common: figures of one page are those of one day, one machine and the same versions and settings. */
export interface Conditions {
  readonly date: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Settings;
}

/** The result of a run, as `--json` writes it. */
export interface EarlierResult extends Conditions {
  readonly suites: Readonly<Record<string, Suite>>;
  readonly skipped: readonly string[];
  readonly seconds: Readonly<Record<string, number>>;
}

/**
 * Takes over all suites of an earlier run; those that are begun after that take their place.
 *
 * @throws Error when the runs do not have their conditions in common
 */
export function takeOver(results: Results, earlier: EarlierResult, now: Conditions): void {
  const conditions = ({ date, machine, versions, settings }: Conditions): unknown => {
    const { loadAtBegin: _, ...kind } = machine;
    return { date, kind, versions, settings };
  };
  if (!isDeepStrictEqual(conditions(earlier), conditions(now)))
    throw new Error("--with takes a result of the same day, machine, versions and settings; measure all suites anew");
  for (const [name, { measures, ...about }] of Object.entries(earlier.suites)) {
    results.begin(name, about);
    for (const [measure, { unit, contenders }] of Object.entries(measures)) {
      for (const [contender, { rounds }] of Object.entries(contenders)) {
        for (const value of rounds) results.record(name, measure, contender, unit, value);
      }
    }
  }
  results.skip(earlier.skipped);
}
