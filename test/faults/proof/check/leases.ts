/** Until when a delivery was certainly current, and from when its lease had certainly ended. */

import { endsDelivery } from "./bounds.ts";
import { type Delivery, MS } from "./life.ts";

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Earliest instant at which the lease can have ended, as far as uses tell that were begun before `before`. An accepted extension counts from
 * its begin, and sets the lease anew; an unknown one may have shortened it.
 */
export function leaseEndsAtEarliest({ begin, leaseMs, uses }: Delivery, before = NEVER): number {
  let end = begin + leaseMs * MS;
  let shortest = NEVER;
  for (const use of uses) {
    if (use.kind !== "extend" || use.begin >= before) continue;
    if (use.outcome === "ok") end = use.begin + use.leaseMs * MS;
    // It may be late, and come after others.
    else if (use.outcome === "info") shortest = Math.min(shortest, use.begin + use.leaseMs * MS);
  }
  return Math.min(end, shortest);
}

/** Latest instant at which the lease has ended, unless it is renewed after all. */
export function leaseEndsAtLatest({ end, leaseMs, uses }: Delivery): number {
  let last = end + leaseMs * MS;
  for (const use of uses) if (use.kind === "extend" && use.outcome !== "stale") last = Math.max(last, use.end + use.leaseMs * MS);
  return last;
}

/** Until when the message was certainly in processing by this delivery, from its end on. */
export function heldUntil(delivery: Delivery): number {
  const { uses, death, next, life } = delivery;
  const ending = uses.find((use) => use.outcome === "ok" && endsDelivery(use));
  if (ending !== undefined) return Math.min(ending.begin, next);
  let until = Math.min(leaseEndsAtEarliest(delivery), death);
  for (const use of uses) {
    if (use.outcome === "info" && endsDelivery(use)) until = Math.min(until, use.begin);
  }
  // An accepted extension says that nothing had ended the delivery before it.
  for (const use of uses) if (use.outcome === "ok") until = Math.max(until, use.begin);
  return Math.min(until, next, life.from);
}
