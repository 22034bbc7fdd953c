/** The ends of a delivery: ack, nack, release; and its renewal. */

import type { AckAnswer, AckItem, ExtendItem, NackAnswer, NackItem, ReleaseAnswer } from "../../core/message.ts";
import { type MessageId, placeOfMessageId, type Receipt } from "../../core/names.ts";
import { storableReason, usedUpReason } from "../../core/request.ts";
import { buryMessage } from "./dead-letters.ts";
import { admitTasks, enqueueInto } from "./enqueue.ts";
import { DELAYED, deliveryOf, idOf, PROCESSING, READY, removeMessage } from "./place.ts";
import type { QueueRow, Step } from "./step.ts";
import { withdraw } from "./task-cancelling.ts";

/** Removes messages by receipt and stores what they forward. */
export function ackItems(step: Step, queue: QueueRow, items: readonly AckItem[]): AckAnswer[] {
  // All queues must exist, and all tasks take more work, before anything is written.
  for (const item of items) {
    for (const forward of item.forward ?? []) {
      step.queue(forward.queue);
      admitTasks(step, forward.messages);
    }
  }
  return items.map((item) => {
    if (!ackOne(step, queue, item.receipt)) return { outcome: "stale" };
    const forwarded = (item.forward ?? []).map((forward) => enqueueInto(step, step.queue(forward.queue), forward.messages));
    return { outcome: "acked", forwarded };
  });
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
