/** S3 to S6: what deliveries of one message, and uses of their receipts, may do to one another. */

import { processOf } from "../operation.ts";
import { endsDelivery } from "./bounds.ts";
import type { Indexed } from "./index-history.ts";
import { leaseEndsAtEarliest } from "./leases.ts";
import { type Delivery, type Life, MS, type ReceiptUse } from "./life.ts";
import type { Findings } from "./promises.ts";

/** No delivery begins after an accepted ack of the same message has ended. */
function checkResurrection(life: Life, findings: Findings): void {
  let first: ReceiptUse | undefined;
  for (const { uses } of life.deliveries)
    for (const use of uses) if (use.kind === "ack" && use.outcome === "ok" && (first === undefined || use.end < first.end)) first = use;
  if (first === undefined) return;
  findings.looked("S3", life.deliveries.length > 0);
  for (const { begin, operation } of life.deliveries)
    if (begin > first.end) findings.violated("S3", `${life.value} was delivered after it had been acked`, first.operation, operation);
}

/** Whether `earlier` may have come to an end before `later` handed the message out again. */
function isJustified(earlier: Delivery, later: Delivery, { promises }: Indexed): boolean {
  if (later.end >= leaseEndsAtEarliest(earlier) - promises.toleranceMs * MS) return true;
  if (promises.deathRecovery && earlier.death < later.end) return true;
  return earlier.uses.some(
    ({ kind, outcome, begin }) => (kind === "nack" || kind === "release") && outcome !== "stale" && begin < later.end,
  );
}

/** A message is handed out again only when the delivery before was over. */
function checkExclusivity(life: Life, indexed: Indexed, findings: Findings): void {
  for (const [index, later] of life.deliveries.entries()) {
    const earlier = life.deliveries[index - 1];
    if (earlier === undefined) continue;
    findings.looked("S4");
    const isOpen = later.begin < earlier.end;
    if (isJustified(earlier, later, indexed) || (isOpen && isJustified(later, earlier, indexed))) continue;
    const uses = [...earlier.uses, ...later.uses].map(({ operation }) => operation);
    findings.violated(
      "S4",
      `${life.value} was handed out twice although its first lease of ${earlier.leaseMs} ms had not ended`,
      earlier.operation,
      later.operation,
      ...uses,
    );
  }
}

/** A receipt is dead once a later delivery has answered, and after its own end. */
function checkFencing(life: Life, findings: Findings): void {
  for (const [index, earlier] of life.deliveries.entries()) {
    const later = life.deliveries.slice(index + 1).find(({ begin }) => begin >= earlier.end);
    const ending = earlier.uses.find((use) => use.outcome === "ok" && endsDelivery(use));
    for (const use of earlier.uses) {
      if (later !== undefined && use.begin > later.end) {
        findings.looked("S5");
        if (use.outcome === "ok")
          findings.violated(
            "S5",
            `a ${use.kind} of ${life.value} with a stale receipt was accepted`,
            earlier.operation,
            later.operation,
            use.operation,
          );
      }
      if (ending === undefined || use === ending || use.begin < ending.end) continue;
      const isSecondAck = use.kind === "ack" && ending.kind === "ack";
      findings.looked(isSecondAck ? "S6" : "S5");
      if (use.outcome === "ok")
        findings.violated(
          isSecondAck ? "S6" : "S5",
          `a ${use.kind} of ${life.value} was accepted although its delivery had ended by ${ending.kind}`,
          earlier.operation,
          ending.operation,
          use.operation,
        );
    }
  }
}

/** Whether something else than the lease may have ended the delivery before this use. */
function mayHaveEnded({ uses, death, life, begin: taken }: Delivery, use: ReceiptUse): boolean {
  if (death < use.end) return true;
  if (uses.some((other) => other !== use && other.outcome !== "stale" && endsDelivery(other) && other.begin < use.end)) return true;
  return life.removals.some(({ operation, begin, end: removed }) => operation.op !== "ack" && begin < use.end && removed > taken);
}

/** What is done with a current receipt within its lease is accepted. */
function checkAccepted(delivery: Delivery, indexed: Indexed, findings: Findings): void {
  for (const use of delivery.uses) {
    if (use.end > leaseEndsAtEarliest(delivery, use.begin) - indexed.promises.toleranceMs * MS || mayHaveEnded(delivery, use)) continue;
    findings.looked("S6");
    if (use.outcome === "stale")
      findings.violated(
        "S6",
        `a ${use.kind} of ${delivery.life.value} by ${processOf(use.operation.client)} was refused although the lease of ${delivery.leaseMs} ms had not ended`,
        delivery.operation,
        ...delivery.uses.filter(({ begin }) => begin <= use.begin).map(({ operation }) => operation),
      );
  }
}

/** At most one accepted ack removes a message. */
function checkOneRemoval(life: Life, findings: Findings): void {
  const acks = life.deliveries.flatMap(({ uses, receipt }) =>
    uses.filter(({ kind, outcome }) => kind === "ack" && outcome === "ok").map((use) => ({ use, receipt })),
  );
  if (acks.length === 0) return;
  findings.looked("S6", life.deliveries.length > 1);
  const [first, ...others] = acks;
  const other = others.find(({ receipt }) => receipt !== first?.receipt);
  if (other !== undefined) findings.violated("S6", `two acks removed ${life.value}`, first?.use.operation, other.use.operation);
}

/** Checks S3, S4, S5 and S6. */
export function checkReceipts(indexed: Indexed, findings: Findings): void {
  for (const life of indexed.lives.values()) {
    checkResurrection(life, findings);
    checkExclusivity(life, indexed, findings);
    checkFencing(life, findings);
    checkOneRemoval(life, findings);
    for (const delivery of life.deliveries) checkAccepted(delivery, indexed, findings);
  }
}
