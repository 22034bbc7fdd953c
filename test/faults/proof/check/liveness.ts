/** L2 and L3: the store comes to an end of its work, and answers while nothing is wrong with it. */

import { processOf } from "../operation.ts";
import type { Indexed } from "./index-history.ts";
import { MS } from "./life.ts";
import type { Findings } from "./promises.ts";

/** Answers that are right although they are errors. */
const EXPECTED = new Set(["queue-not-found", "task-not-found", "task-ended", "timed-out"]);

/** Checks failures and the duration of calls. */
export function checkLiveness({ history, operations, promises }: Indexed, findings: Findings): void {
  findings.looked("L2");
  if (!history.drained) findings.violated("L2", "what was left could not be drained", ...operations.slice(-5));
  const tail = promises.faultTailMs * MS;
  const faults = history.faults.toSorted((left, right) => left.begin - right.begin);
  const longest = faults.reduce((most, { begin, end }) => Math.max(most, end - begin), 0) + tail;
  let first = 0;
  const failed: (typeof operations)[number][] = [];
  let calls = 0;
  for (const operation of operations) {
    const { begin, end, client, outcome, error } = operation;
    if (end === Number.POSITIVE_INFINITY) continue;
    while (first < faults.length && (faults[first]?.begin as number) < begin - longest) first += 1;
    let isExcused = false;
    for (let index = first; index < faults.length && !isExcused; index += 1) {
      const fault = faults[index] as (typeof faults)[number];
      if (fault.begin > end) break;
      const concerns = fault.process === "server" || fault.process === "network" || fault.process === processOf(client);
      isExcused = concerns && fault.end + tail > begin;
    }
    if (isExcused) continue;
    calls += 1;
    findings.looked("L3");
    if (outcome !== "ok" && !EXPECTED.has(error ?? "")) failed.push(operation);
    const allowedMs = promises.callMs + (operation.op === "wait" ? operation.timeoutMs : 0);
    if (end - begin > allowedMs * MS)
      findings.violated("L3", `a call took ${Math.round((end - begin) / MS)} ms while nothing was wrong`, operation);
  }
  if (failed.length > promises.errorRate * calls)
    findings.violated("L3", `${failed.length} of ${calls} calls failed while nothing was wrong`, ...failed.slice(0, 5));
}
