/** The ends of a delivery: ack, nack, release; and its renewal. */

import { queueNotFound } from "../../core/errors.ts";
import type { AckAnswer, AckItem, ExtendItem, NackAnswer, NackItem, ReleaseAnswer } from "../../core/message.ts";
import { type MessageId, placeOfMessageId, type QueueName, type Receipt } from "../../core/names.ts";
import { storableReason, usedUpReason } from "../../core/request.ts";
import type { Answer } from "./answer.ts";
import { buryMessage } from "./dead-letters.ts";
import { admitTasks, enqueueInto } from "./enqueue.ts";
import { DELAYED, deliveryOf, forgetChosenId, idOf, PROCESSING, READY, removeMessage } from "./place.ts";
import type { QueueRow, Step } from "./step.ts";
import { withdraw } from "./task-cancelling.ts";

/** Removes messages by receipt and stores what they forward. */
export function ackItems(step: Step, queue: QueueRow, items: readonly AckItem[]): AckAnswer[] {
  // All queues must exist, and all tasks that get messages take more work, before anything is written.
  for (const item of items) {
    for (const forward of item.forward ?? []) {
      admitTasks(step, step.queue(forward.queue), forward.messages);
    }
  }
  return items.map((item) => {
    if (!ackOne(step, queue, item.receipt)) return { outcome: "stale" };
    const forwarded = (item.forward ?? []).map((forward) => enqueueInto(step, step.queue(forward.queue), forward.messages));
    return { outcome: "acked", forwarded };
  });
}

/** One ack that forwards nothing. */
export interface AckCall {
  readonly queue: QueueName;
  readonly items: readonly AckItem[];
}

/** One item of one of several acks. */
interface ReceiptToAck {
  readonly sequence: number;
  readonly token: number;
  readonly answers: AckAnswer[];
  readonly index: number;
}

/** Consecutive places from which on removing them as a range costs less than one by one. */
const SHORTEST_RANGE = 3;

/** Several acks of one transaction: what lies side by side is looked at and removed in one go. */
export function ackTogether(step: Step, calls: readonly AckCall[]): Answer<AckAnswer[]>[] {
  const byQueue = new Map<QueueRow, ReceiptToAck[]>();
  const outcomes = calls.map(({ queue: name, items }): Answer<AckAnswer[]> => {
    const queue = step.findQueue(name);
    if (queue === undefined) return { error: queueNotFound(name) };
    let receipts = byQueue.get(queue);
    if (receipts === undefined) {
      receipts = [];
      byQueue.set(queue, receipts);
    }
    const answers: AckAnswer[] = [];
    for (const { receipt } of items) {
      const delivery = deliveryOf(queue, receipt);
      // Written out: copying objects by spreading takes as long as a statement.
      if (delivery !== undefined) receipts.push({ sequence: delivery.sequence, token: delivery.token, answers, index: answers.length });
      answers.push(STALE);
    }
    return { value: answers };
  });
  for (const [queue, receipts] of byQueue) ackReceipts(step, queue, receipts);
  return outcomes;
}

const STALE: AckAnswer = { outcome: "stale" };

function ackReceipts(step: Step, queue: QueueRow, receipts: ReceiptToAck[]): void {
  // Stable: of the same receipt twice the earlier one is acked.
  receipts.sort((left, right) => left.sequence - right.sequence);
  for (let start = 0; start < receipts.length; ) {
    let end = start + 1;
    while (end < receipts.length && sequenceAt(receipts, end) === sequenceAt(receipts, end - 1) + 1) end += 1;
    if (end - start >= SHORTEST_RANGE) ackRange(step, queue, receipts.slice(start, end));
    else for (const receipt of receipts.slice(start, end)) ackReceipt(step, queue, receipt);
    start = end;
  }
}

function sequenceAt(receipts: readonly ReceiptToAck[], index: number): number {
  return (receipts[index] as ReceiptToAck).sequence;
}

function ackReceipt(step: Step, queue: QueueRow, { sequence, token, answers, index }: ReceiptToAck): void {
  const ended = step.sql.endDelivery.get(queue.slot, sequence, token) as Ended | undefined;
  if (ended === undefined) return;
  finishAck(step, queue, sequence, ended);
  answers[index] = { outcome: "acked", forwarded: [] };
}

/** Acks deliveries of consecutive places: those that are current, in stretches that are removed as ranges. */
function ackRange(step: Step, queue: QueueRow, receipts: readonly ReceiptToAck[]): void {
  const first = sequenceAt(receipts, 0);
  const last = sequenceAt(receipts, receipts.length - 1);
  if (ackWholeRange(step, queue, receipts, first, last)) return;
  const rows = step.sql.deliveriesBetween.all(queue.slot, first, queue.slot, last) as [sequence: number, token: number, ...ended: Ended][];
  let from = 0;
  let until = 0;
  for (const [sequence, token, chosen, task] of rows) {
    const receipt = receipts[sequence - first] as ReceiptToAck;
    if (receipt.token !== token) continue;
    receipt.answers[receipt.index] = { outcome: "acked", forwarded: [] };
    if (sequence !== until) {
      removeRange(step, queue, from, until);
      from = sequence;
    }
    until = sequence + 1;
    if (chosen === 1) forgetChosenId(step, queue, sequence);
    if (task !== null) step.tasks.settled(task, queue.slot, "done");
  }
  removeRange(step, queue, from, until);
}

/**
 * Acks deliveries of consecutive places if all of them are current, none has a chosen id, and all or none belong to one task, which is almost
 * always so: their tokens, compared as one text, cost half of what a row for each does. Answers whether it did.
 */
function ackWholeRange(step: Step, queue: QueueRow, receipts: readonly ReceiptToAck[], first: number, last: number): boolean {
  const [count, chosen, owned, least, most, tokens] = step.sql.deliveriesTogether.get(queue.slot, first, queue.slot, last) as [
    count: number,
    chosen: number,
    owned: number,
    least: number | null,
    most: number | null,
    tokens: string | null,
  ];
  if (count !== receipts.length || chosen !== 0 || (owned !== 0 && (owned !== count || least !== most))) return false;
  let expected = "";
  for (const { token } of receipts) expected += expected === "" ? token : `,${token}`;
  if (tokens !== expected) return false;
  for (const { answers, index } of receipts) {
    answers[index] = { outcome: "acked", forwarded: [] };
    if (least !== null) step.tasks.settled(least, queue.slot, "done");
  }
  removeRange(step, queue, first, last + 1);
  return true;
}

/** Removes the deliveries and messages of the places from `from` on, up to the one before `until`. */
function removeRange(step: Step, queue: QueueRow, from: number, until: number): void {
  if (from === until) return;
  step.sql.deletePlacesBetween.run(queue.slot, from, queue.slot, until);
  step.sql.deleteMessagesBetween.run(queue.slot, from, queue.slot, until);
  queue.processing -= until - from;
  queue.acked += until - from;
  step.touch(queue);
}

function ackOne(step: Step, queue: QueueRow, receipt: Receipt): boolean {
  const delivery = deliveryOf(queue, receipt);
  if (delivery === undefined) return false;
  const ended = step.sql.endDelivery.get(queue.slot, delivery.sequence, delivery.token) as Ended | undefined;
  if (ended === undefined) return false;
  finishAck(step, queue, delivery.sequence, ended);
  return true;
}

type Ended = [chosen: number, task: number | null];

function finishAck(step: Step, queue: QueueRow, sequence: number, [chosen, task]: Ended): void {
  removeMessage(step, queue, sequence, chosen);
  queue.processing -= 1;
  queue.acked += 1;
  if (task !== null) step.tasks.settled(task, queue.slot, "done");
  step.touch(queue);
}

/** Removes a message in processing by its id. */
export function ackIdOne(step: Step, queue: QueueRow, id: MessageId): "acked" | "not-in-processing" {
  const sequence = sequenceOfId(step, queue, id);
  if (sequence === undefined) return "not-in-processing";
  const ended = step.sql.endAnyDelivery.get(queue.slot, sequence) as Ended | undefined;
  if (ended === undefined) return "not-in-processing";
  finishAck(step, queue, sequence, ended);
  return "acked";
}

/** Where in the present slot the message of that id lies, if there is one. */
function sequenceOfId(step: Step, queue: QueueRow, id: MessageId): number | undefined {
  const made = placeOfMessageId(step.context.storeId, id);
  if (made !== undefined) {
    // One that was redriven after a clear lies at its old sequence in the new slot and keeps its id with it.
    const row = step.sql.idAt.get(queue.slot, made.sequence) as [string | null] | undefined;
    return row !== undefined && idOf(step, queue.slot, made.sequence, row[0]) === id ? made.sequence : undefined;
  }
  const chosen = step.sql.chosenId.get(queue.life, id) as [number, number] | undefined;
  return chosen !== undefined && chosen[0] === queue.slot ? chosen[1] : undefined;
}

type Delivery = [deliveryCount: number, chosen: number, task: number | null, reason: string | null];

function findDelivery(step: Step, queue: QueueRow, receipt: Receipt): { sequence: number; row: Delivery } | undefined {
  const delivery = deliveryOf(queue, receipt);
  if (delivery === undefined) return undefined;
  const row = step.sql.delivery.get(queue.slot, delivery.sequence, delivery.token) as Delivery | undefined;
  return row === undefined ? undefined : { sequence: delivery.sequence, row };
}

/** Gives a message back after a failure, or up. */
export function nackOne(step: Step, queue: QueueRow, item: NackItem): NackAnswer {
  const found = findDelivery(step, queue, item.receipt);
  if (found === undefined) return "stale";
  const {
    sequence,
    row: [deliveryCount, chosen, task, lastReason],
  } = found;
  const reason = storableReason(item.reason) || (lastReason ?? "");
  if (item.giveUp !== true && task !== null && step.tasks.isCancelling(task)) {
    withdraw(step, queue, sequence, PROCESSING, chosen, task);
    return "cancelled";
  }
  queue.processing -= 1;
  step.touch(queue);
  const usedUp = queue.maxDeliveries > 0 && deliveryCount >= queue.maxDeliveries;
  if (item.giveUp === true || usedUp) {
    buryMessage(
      step,
      queue,
      sequence,
      deliveryCount,
      chosen,
      task,
      usedUp ? usedUpReason(deliveryCount, reason) : reason || "given up by its consumer",
    );
    return "dead";
  }
  const delayMs = item.delayMs ?? 0;
  if (delayMs > 0) {
    step.sql.giveBack.run(
      DELAYED,
      Math.ceil(step.nowMs + delayMs),
      Math.ceil(step.wallMs + delayMs),
      deliveryCount,
      reason,
      queue.slot,
      sequence,
    );
    queue.delayed += 1;
  } else {
    step.sql.giveBack.run(READY, null, null, deliveryCount, reason, queue.slot, sequence);
    queue.ready += 1;
  }
  queue.pending += 1;
  queue.returned += 1;
  return "pending";
}

/** Gives a message back as if it had not been delivered. */
export function releaseOne(step: Step, queue: QueueRow, receipt: Receipt): ReleaseAnswer {
  const found = findDelivery(step, queue, receipt);
  if (found === undefined) return "stale";
  const {
    sequence,
    row: [deliveryCount, chosen, task, reason],
  } = found;
  if (task !== null && step.tasks.isCancelling(task)) {
    withdraw(step, queue, sequence, PROCESSING, chosen, task);
    return "cancelled";
  }
  step.sql.giveBack.run(READY, null, null, deliveryCount - 1, reason, queue.slot, sequence);
  queue.processing -= 1;
  queue.pending += 1;
  queue.ready += 1;
  queue.returned += 1;
  step.touch(queue);
  return "released";
}

/** Renews a lease, counted from now. */
export function extendOne(step: Step, queue: QueueRow, item: ExtendItem): "extended" | "stale" {
  const delivery = deliveryOf(queue, item.receipt);
  if (delivery === undefined) return "stale";
  const { changes } = step.sql.extendDelivery.run(Math.ceil(step.nowMs + item.leaseMs), queue.slot, delivery.sequence, delivery.token);
  return changes === 1 ? "extended" : "stale";
}
