/** The changes of state that concern deliveries: handing out, the ways back, recovery, giving up. */

import type { Random } from "../../core/clock.ts";
import { DEFAULT_MAX_MESSAGE_BYTES, RECOVERY_STEP_ITEMS } from "../../core/limits.ts";
import type { DeliveredMessage, ExtendItem, NackAnswer, NackItem, ReleaseAnswer } from "../../core/message.ts";
import { type MessageId, makeReceipt, type Receipt } from "../../core/names.ts";
import { type DequeueRequest, storableReason, usedUpReason } from "../../core/request.ts";
import { deadWeight } from "./dead-letters.ts";
import { DUE, Entry, WAITING } from "./entry.ts";
import { isCurrentLease, type QueueState } from "./queue-state.ts";
import type { TaskState } from "./task-state.ts";

/** Payload bytes after which one dequeue stops, however many messages were asked for: the copies must fit into memory. */
const DELIVERY_BYTES = DEFAULT_MAX_MESSAGE_BYTES;

/** Hands out the oldest available messages. Recovery and delays must have been applied. */
export function deliver(queue: QueueState, request: DequeueRequest, nowMs: number, random: Random): DeliveredMessage[] {
  const first = takeNext(queue);
  if (first === undefined) return [];
  const { limit, leaseMs } = request;
  const delivered = [handOut(queue, first, leaseMs, nowMs, random)];
  for (let bytes = first.length; delivered.length < limit && bytes < DELIVERY_BYTES; ) {
    const entry = takeNext(queue);
    if (entry === undefined) break;
    bytes += entry.length;
    delivered.push(handOut(queue, entry, leaseMs, nowMs, random));
  }
  return delivered;
}

/** Takes the available message of the lowest place out of its collection, or `undefined` when none is available. */
function takeNext(queue: QueueState): Entry | undefined {
  for (;;) {
    const waiting = queue.backlog.settle();
    let entry: Entry | undefined;
    if (queue.due.firstKey() < waiting) entry = queue.due.pop();
    else if (waiting !== Number.POSITIVE_INFINITY) entry = queue.backlog.take();
    if (entry?.owner?.task.cancelling !== true) return entry;
    queue.cancel(entry);
  }
}

function handOut(queue: QueueState, entry: Entry, leaseMs: number, nowMs: number, random: Random): DeliveredMessage {
  const receipt = makeReceipt(queue.slot, entry.place, random.token());
  entry.deliveryCount += 1;
  queue.hold(entry, receipt, nowMs + leaseMs);
  queue.counts.delivered += 1;
  const id = queue.idOf(entry);
  const data = queue.resources.copies.copy(entry);
  const { enqueuedAtMs, deliveryCount, owner } = entry;
  // Two literals: copying objects by spreading takes as long as all the rest.
  return owner === undefined
    ? { id, data, enqueuedAtMs, deliveryCount, receipt, leaseMs }
    : { id, data, enqueuedAtMs, deliveryCount, task: begin(queue, owner.task), receipt, leaseMs };
}

function begin(queue: QueueState, task: TaskState): TaskState["id"] {
  if (!task.started) {
    task.started = true;
    queue.resources.tasks.touch(task);
  }
  return task.id;
}

/**
 * Applies what time has done to a queue before a dequeue looks: delays that are over, and ended leases. Stops after a bounded number
 * of recoveries, but not before `wanted` messages are available if recovery can make them so.
 *
 * @returns whether anything changed
 */
export function applyTime(queue: QueueState, wanted: number, nowMs: number, wallMs: () => number): boolean {
  queue.mature(nowMs);
  if (queue.leases.firstKey() > nowMs) return false;
  const first = recoverEnded(queue, RECOVERY_STEP_ITEMS, nowMs, wallMs);
  let recovered = first.recovered;
  let last = recovered;
  while (last > 0 && queue.backlog.waiting + queue.due.size < wanted) {
    last = recoverEnded(queue, 1, nowMs, wallMs).recovered;
    recovered += last;
  }
  return recovered > 0;
}

/** Recovers ended leases, at most so many. */
export function recoverEnded(queue: QueueState, atMost: number, nowMs: number, wallMs: () => number): { recovered: number; dead: number } {
  let recovered = 0;
  let dead = 0;
  while (recovered < atMost && queue.leases.firstKey() <= nowMs) {
    const stamp = queue.leases.firstStamp();
    const entry = queue.leases.pop() as Entry;
    if (!isCurrentLease(entry, stamp)) continue;
    recovered += 1;
    if (entry.owner?.task.cancelling === true) {
      cancelHeld(queue, entry);
    } else if (isUsedUp(queue, entry)) {
      bury(queue, entry, usedUpReason(entry.deliveryCount, entry.reason), wallMs());
      dead += 1;
    } else {
      giveBack(queue, entry, 0, nowMs);
    }
  }
  return { recovered, dead };
}

/** The message that a dequeue would take now, or `undefined`. Nothing that can be seen changes. */
export function findNext(queue: QueueState, nowMs: number): Entry | undefined {
  queue.mature(nowMs);
  let next = queue.due.firstKey() < queue.backlog.settle() ? queue.due.first() : queue.backlog.first();
  if (next?.owner?.task.cancelling === true) next = firstToStay(queue);
  // The ended leases that a dequeue would recover are taken out of the heap, and put back.
  const ended: { entry: Entry; untilMs: number }[] = [];
  while (queue.leases.firstKey() <= nowMs && (ended.length < RECOVERY_STEP_ITEMS || next === undefined)) {
    const untilMs = queue.leases.firstKey();
    const stamp = queue.leases.firstStamp();
    const entry = queue.leases.pop() as Entry;
    if (!isCurrentLease(entry, stamp)) continue;
    ended.push({ entry, untilMs });
    if (!isUsedUp(queue, entry) && entry.owner?.task.cancelling !== true && (next === undefined || entry.place < next.place)) next = entry;
  }
  for (const { entry, untilMs } of ended) queue.lease(entry, untilMs);
  return next;
}

/** The first available message whose task is not being cancelled. */
function firstToStay(queue: QueueState): Entry | undefined {
  let first: Entry | undefined;
  queue.visit(0, (entry) => {
    if ((entry.state === WAITING || entry.state === DUE) && entry.owner?.task.cancelling !== true) first = entry;
    return first === undefined;
  });
  return first;
}

/** How long until time alone may bring a message, in milliseconds: 0 when one is available, `undefined` when nothing waits for time. */
export function timeToNext(queue: QueueState, nowMs: number): number | undefined {
  queue.mature(nowMs);
  if (queue.backlog.waiting + queue.due.size > 0) return 0;
  while (queue.leases.size > 0 && !isCurrentLease(queue.leases.first(), queue.leases.firstStamp())) queue.leases.pop();
  const nextMs = Math.min(queue.leases.firstKey(), queue.delays.firstKey());
  return nextMs === Number.POSITIVE_INFINITY ? undefined : Math.max(0, nextMs - nowMs);
}

/** Removes a message in processing for good. */
export function acknowledge(queue: QueueState, entry: Entry): void {
  queue.letLoose(entry);
  queue.remove(entry);
  queue.counts.acked += 1;
  const task = queue.disown(entry);
  if (task !== undefined) task.done += 1;
}

/** Removes a message in processing because its task is being cancelled. */
function cancelHeld(queue: QueueState, entry: Entry): void {
  queue.letLoose(entry);
  queue.cancel(entry);
}

/** Gives one message back after a failure. */
export function nack(queue: QueueState, item: NackItem, nowMs: number, wallMs: () => number): NackAnswer {
  const entry = queue.processing.find(item.receipt);
  if (entry === undefined) return "stale";
  const reason = storableReason(item.reason);
  if (reason !== "") queue.setReason(entry, reason);
  if (item.giveUp === true) {
    bury(queue, entry, entry.reason === "" ? "given up by its consumer" : entry.reason, wallMs());
    return "dead";
  }
  if (entry.owner?.task.cancelling === true) {
    cancelHeld(queue, entry);
    return "cancelled";
  }
  if (isUsedUp(queue, entry)) {
    bury(queue, entry, usedUpReason(entry.deliveryCount, entry.reason), wallMs());
    return "dead";
  }
  giveBack(queue, entry, item.delayMs ?? 0, nowMs);
  return "pending";
}

/** Gives one message back as if it had not been delivered. */
export function release(queue: QueueState, receipt: Receipt, nowMs: number): ReleaseAnswer {
  const entry = queue.processing.find(receipt);
  if (entry === undefined) return "stale";
  if (entry.owner?.task.cancelling === true) {
    cancelHeld(queue, entry);
    return "cancelled";
  }
  entry.deliveryCount -= 1;
  giveBack(queue, entry, 0, nowMs);
  return "released";
}

/** Renews one lease, counted from now. */
export function extend(queue: QueueState, item: ExtendItem, nowMs: number): "extended" | "stale" {
  const entry = queue.processing.find(item.receipt);
  if (entry === undefined) return "stale";
  queue.lease(entry, nowMs + item.leaseMs);
  return "extended";
}

function isUsedUp(queue: QueueState, entry: Entry): boolean {
  const { maxDeliveries } = queue.settings;
  return maxDeliveries > 0 && entry.deliveryCount >= maxDeliveries;
}

function giveBack(queue: QueueState, entry: Entry, delayMs: number, nowMs: number): void {
  queue.letLoose(entry);
  queue.makePending(entry, delayMs, nowMs);
  queue.counts.returned += 1;
}

/** Moves a message in processing to the dead letters. */
function bury(queue: QueueState, entry: Entry, reason: string, wallMs: number): void {
  const record = {
    oldPlace: entry.place,
    id: queue.idOf(entry),
    // Not a view of a segment: a dead letter may stay for long.
    data: entry.bytes.slice(entry.start, entry.start + entry.length),
    enqueuedAtMs: entry.enqueuedAtMs,
    deliveryCount: entry.deliveryCount,
    reason,
    diedAtMs: wallMs,
    task: entry.owner?.task,
  };
  queue.letLoose(entry);
  queue.remove(entry);
  const buried = queue.dead.add(record);
  queue.disown(entry)?.bury(queue, buried);
  queue.resources.totals.messages += 1;
  queue.resources.totals.bytes += deadWeight(record);
  queue.counts.deadLettered += 1;
}

/** Makes dead letters pending again, at their old places. @param into the task that is to own them; their own if absent, while it goes on */
export function redrive(queue: QueueState, ids: readonly MessageId[], into?: TaskState): ("redriven" | "not-found")[] {
  const entries: Entry[] = [];
  const answers = ids.map((id) => {
    const record = takeDead(queue, id);
    if (record === undefined) return "not-found";
    const entry = new Entry(record.oldPlace, record.id, record.enqueuedAtMs, record.data, 0, record.data.length, undefined);
    entries.push(entry);
    if (into !== undefined && into !== record.task) queue.own(entry, into);
    else if (record.task?.isOpen === true) {
      record.task.revive();
      queue.ownAgain(entry, record.task);
    }
    return "redriven";
  });
  entries.sort((left, right) => left.place - right.place);
  queue.passed.insert(entries);
  for (const entry of entries) {
    queue.weigh(1, entry.weight);
    queue.makePending(entry, 0, 0);
  }
  return answers;
}

/** Removes dead letters for good. */
export function drop(queue: QueueState, ids: readonly MessageId[]): ("dropped" | "not-found")[] {
  return ids.map((id) => (takeDead(queue, id) === undefined ? "not-found" : "dropped"));
}

function takeDead(queue: QueueState, id: MessageId): ReturnType<QueueState["dead"]["take"]> {
  const record = queue.dead.take(id);
  if (record === undefined) return undefined;
  queue.resources.totals.messages -= 1;
  queue.resources.totals.bytes -= deadWeight(record);
  return record;
}
