/** S1, S2, S9, S10 and S12: what exists, exists once, together with what was stored with it, and not after it was swept away. */

import type { Operation, OperationOf } from "../operation.ts";
import { seenBy, sweepsOf } from "./bounds.ts";
import type { Indexed } from "./index-history.ts";
import type { Life, StoringStep } from "./life.ts";
import type { Findings } from "./promises.ts";

/** What was stored must have been delivered, and nothing before it was sent. */
function checkStored(life: Life, indexed: Indexed, findings: Findings): void {
  const stored = life.storings.find(({ step }) => step.outcome === "ok");
  for (const { end, operation } of life.deliveries) {
    if (end >= life.born) continue;
    const isRefusedForward = life.storings.every(({ step }) => step.outcome === "fail" && step.source !== undefined);
    const property = life.born === Number.POSITIVE_INFINITY && isRefusedForward ? "S12" : "S2";
    findings.violated(property, `${life.value} was delivered although nothing can have stored it`, life.storings[0]?.operation, operation);
  }
  if (!indexed.history.drained || stored === undefined) return;
  const isPartOfUnknown = stored.operation.outcome === "info";
  findings.looked(isPartOfUnknown ? "S12" : "S1");
  if (life.removals.length > 0) return;
  findings.violated(
    isPartOfUnknown ? "S12" : "S1",
    isPartOfUnknown
      ? `${life.value} is not there although what was stored in the same step is`
      : `${life.value} is gone although nothing can have removed it`,
    stored.operation,
    ...life.deliveries.flatMap(({ operation, uses }) => [operation, ...uses.map((use) => use.operation)]),
  );
}

/** Answers to the same id tell that it was stored once. */
function checkRepeats(life: Life, findings: Findings): void {
  if (life.storings.length < 2) {
    const [only] = life.storings;
    if (only?.reply === "repeated" || only?.reply === "conflict")
      findings.violated("S10", `the only enqueue of ${life.value} was answered ${only.reply}`, only.operation);
    return;
  }
  findings.looked("S10");
  const first = life.storings.filter(({ reply }) => reply === "enqueued");
  if (first.length > 1) findings.violated("S10", `${life.value} was stored twice under one id`, ...first.map(({ operation }) => operation));
  const conflict = life.storings.find(({ reply }) => reply === "conflict");
  if (conflict !== undefined) findings.violated("S10", `a repeat of ${life.value} was taken for another message`, conflict.operation);
}

/** A follow-up exists only if the message it came from is gone for ever. */
function checkForward(step: StoringStep, indexed: Indexed, findings: Findings): void {
  const source = step.source === undefined ? undefined : indexed.deliveryByReceipt.get(step.source);
  if (source === undefined || step.outcome === "fail") return;
  const follower = step.storings.find(({ life }) => seenBy(life) < Number.POSITIVE_INFINITY && life.storings.length === 1);
  findings.looked("S12", follower !== undefined);
  if (follower === undefined) return;
  const again = source.life.deliveries.find((other) => other !== source && other.begin >= source.end);
  if (again === undefined) return;
  findings.violated(
    "S12",
    `${source.life.value} was delivered again although what its ack forwarded, ${follower.life.value}, is there`,
    source.operation,
    step.operation,
    again.operation,
    follower.life.deliveries[0]?.operation,
  );
}

function checkSweeps(life: Life, sweeps: readonly Operation[], findings: Findings): void {
  const sweep = sweeps.find(({ begin, outcome }) => outcome === "ok" && begin > life.sure);
  if (sweep !== undefined) {
    findings.looked("S9", life.from >= sweep.begin);
    const again = life.deliveries.find(({ begin }) => begin > sweep.end);
    if (again !== undefined)
      findings.violated(
        "S9",
        `${life.value} was delivered after ${sweep.op} had removed it`,
        life.storings[0]?.operation,
        sweep,
        again.operation,
      );
  }
  for (const { end, uses, operation } of life.deliveries) {
    const ending = sweeps.find(({ begin, outcome }) => outcome === "ok" && begin > end);
    const revived = ending === undefined ? undefined : uses.find(({ begin, outcome }) => outcome === "ok" && begin > ending.end);
    if (revived !== undefined)
      findings.violated("S9", `a receipt of ${life.value} was accepted after ${ending?.op}`, operation, ending, revived.operation);
  }
}

/** What peek shows must have been stored, and not have been acked before. */
function checkPeek(peek: OperationOf<"peek">, { lives }: Indexed, findings: Findings): void {
  if (typeof peek.value !== "string") return;
  findings.looked("S2");
  const life = lives.get(peek.value);
  if (life === undefined || life.queue !== peek.queue || life.born > peek.end) {
    findings.violated("S2", `peek showed ${peek.value}, which was not in the queue`, life?.storings[0]?.operation, peek);
    return;
  }
  const removal = life.removals.find(({ isCertain, end }) => isCertain && end < peek.begin);
  if (removal !== undefined) findings.violated("S3", `peek showed ${peek.value} after its end`, removal.operation, peek);
}

/** Ids are what the enqueue answered. */
function checkIds(indexed: Indexed, findings: Findings): void {
  const ids = new Map<string, { value: string; operation: Operation }>();
  const look = (id: string, value: string, operation: Operation): void => {
    const known = ids.get(id);
    if (known === undefined) ids.set(id, { value, operation });
    else if (known.value !== value)
      findings.violated("S2", `id ${id} names two messages, ${known.value} and ${value}`, known.operation, operation);
  };
  for (const operation of indexed.operations) {
    if (operation.op === "enqueue")
      for (const [index, reply] of (operation.answers ?? []).entries()) look(reply.id, operation.messages[index]?.value ?? "", operation);
    else if (operation.op === "dequeue") for (const { id, value } of operation.received ?? []) look(id, value, operation);
  }
}

/** Checks S1, S2, S9, S10 and S12. */
export function checkExistence(indexed: Indexed, findings: Findings): void {
  const sweeps = sweepsOf(indexed.operations);
  for (const life of indexed.lives.values()) {
    checkStored(life, indexed, findings);
    checkRepeats(life, findings);
    checkSweeps(life, sweeps.get(life.queue) ?? [], findings);
  }
  for (const step of indexed.steps) checkForward(step, indexed, findings);
  for (const operation of indexed.operations) if (operation.op === "peek") checkPeek(operation, indexed, findings);
  checkIds(indexed, findings);
}
