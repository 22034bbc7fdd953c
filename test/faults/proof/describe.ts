/** Violations in words, with the operations that prove them. */

import type { Report } from "./check/promises.ts";
import type { Operation } from "./operation.ts";

/** One operation on one line; times in milliseconds. */
export function describeOperation({ client, begin, end, outcome, op, ...rest }: Operation): string {
  const at = (time: number): string => (time === Number.POSITIVE_INFINITY ? "never" : (time / 1e6).toFixed(3));
  return `  ${client} ${op} [${at(begin)}, ${at(end)}] ${outcome} ${JSON.stringify(rest)}`;
}

/** All violations of a report; empty when there are none. */
export function describeReport({ violations }: Pick<Report, "violations">): string {
  return violations.map(({ property, text, proof }) => [`${property}: ${text}`, ...proof.map(describeOperation)].join("\n")).join("\n");
}
