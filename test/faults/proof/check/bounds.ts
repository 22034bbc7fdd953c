/** From when to when each message certainly, and possibly, existed: the derived instants of the properties. */

import type { Operation } from "../operation.ts";
import type { Indexed } from "./index-history.ts";
import type { Life, ReceiptUse, Storing } from "./life.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** Whether this storing is the only one that can have put its message there. */
function isOnly({ life, step }: Storing): boolean {
  return life.storings.every((other) => other.step === step || other.step.outcome === "fail");
}

/** When a message was first seen by somebody, at the latest. */
export function seenBy(life: Life): number {
  return life.deliveries[0]?.end ?? NEVER;
}

/** A step that nobody saw answered has happened when one of its messages was seen that only it can have stored: then all of it has. */
function settleSteps({ steps }: Indexed): void {
  for (const step of steps) {
    if (step.outcome !== "info") continue;
    const seen = step.storings.filter(isOnly).map(({ life }) => seenBy(life));
    const end = Math.min(...seen, NEVER);
    if (end === NEVER) continue;
    step.outcome = "ok";
    step.end = Math.min(step.end, end);
  }
}

/** An ack is known to have happened when what it forwards is known to be there. */
function settleAcks({ deliveries }: Indexed): void {
  for (const { uses } of deliveries) {
    for (const use of uses) {
      if (use.kind !== "ack" || use.outcome !== "info" || use.forward?.outcome !== "ok") continue;
      use.outcome = "ok";
      use.end = Math.min(use.end, use.forward.end);
    }
  }
}

function settleExistence(life: Life): void {
  for (const { operation, step } of life.storings) {
    if (step.outcome === "fail") continue;
    life.born = Math.min(life.born, operation.begin);
    if (step.outcome === "ok") life.sure = Math.min(life.sure, step.end);
  }
  life.sure = Math.min(life.sure, seenBy(life));
}

/** Begins of the last use of each receipt that was accepted: before that, the delivery had not ended. */
function lastAccepted(uses: readonly ReceiptUse[]): number {
  return uses.reduce((last, { outcome, begin }) => (outcome === "ok" ? Math.max(last, begin) : last), Number.NEGATIVE_INFINITY);
}

function addAcks(life: Life): void {
  for (const { end, begin: taken, next, uses } of life.deliveries) {
    const accepted = lastAccepted(uses);
    for (const use of uses) {
      if (use.kind !== "ack" || use.outcome === "stale") continue;
      if (use.outcome === "ok") life.removals.push({ begin: use.begin, end: use.end, isCertain: true, operation: use.operation });
      // A later delivery shows that this one ended otherwise; a later accepted use, that it had not ended then.
      else if (!(next >= end && next < NEVER) && !uses.some((other) => other.outcome === "ok" && endsDelivery(other)))
        life.removals.push({ begin: Math.max(use.begin, accepted, taken), end: use.end, isCertain: false, operation: use.operation });
    }
  }
}

/** Whether the receipt is dead after this use. */
export function endsDelivery({ kind }: ReceiptUse): boolean {
  return kind !== "extend";
}

/** Clears and removals of a queue, in the order of their begins. */
export function sweepsOf(operations: readonly Operation[]): Map<string, Operation[]> {
  const sweeps = new Map<string, Operation[]>();
  for (const operation of operations) {
    if ((operation.op !== "clear" && operation.op !== "remove") || operation.outcome === "fail") continue;
    const list = sweeps.get(operation.queue);
    if (list === undefined) sweeps.set(operation.queue, [operation]);
    else list.push(operation);
  }
  return sweeps;
}

function addSweeps(life: Life, sweeps: readonly Operation[], lastTaken: number): void {
  for (const operation of sweeps) {
    const { begin, end, outcome } = operation;
    // One that was over before the message can have existed, or before it was handed out again, did not remove it.
    if (end < life.born || end < lastTaken) continue;
    const isCertain = outcome === "ok" && begin > life.sure;
    life.removals.push({ begin: Math.max(begin, lastTaken, life.born), end, isCertain, operation });
    if (isCertain) return;
  }
}

/** Settles what is unknown as far as the history allows, and derives the four instants of every message. */
export function settle(indexed: Indexed): void {
  settleSteps(indexed);
  settleAcks(indexed);
  const sweeps = sweepsOf(indexed.operations);
  for (const life of indexed.lives.values()) {
    settleExistence(life);
    addAcks(life);
    const lastTaken = life.deliveries.reduce((last, { begin }) => Math.max(last, begin), Number.NEGATIVE_INFINITY);
    addSweeps(life, sweeps.get(life.queue) ?? [], lastTaken);
    // An accepted ack is the one removal that happened, whatever else is possible.
    const acked = life.removals.filter(({ isCertain, operation }) => isCertain && operation.op === "ack");
    for (const { begin, end, isCertain } of acked.length > 0 ? acked : life.removals) {
      life.from = Math.min(life.from, Math.max(begin, Math.min(lastTaken, end)));
      if (isCertain) life.by = Math.min(life.by, end);
    }
  }
}
