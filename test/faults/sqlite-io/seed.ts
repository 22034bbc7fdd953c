/** Seeds that can be given, so that a failure is repeated. */

import { newSeed, report } from "../report.ts";

/** The seed that `QUEUEFS_SEED` gives, or a new one; printed either way. */
export function givenSeed(): number {
  const given = process.env.QUEUEFS_SEED;
  if (given === undefined) return newSeed();
  report(`seed ${given}, as given`);
  return Number(given);
}
