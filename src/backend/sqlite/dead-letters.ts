/** Messages given up on: moved in the step that gives up, listed, redriven, dropped. */

import type { DeadLetter, Page, PageOptions } from "../../core/message.ts";
import type { MessageId, TaskId } from "../../core/names.ts";
import { checkPage } from "../../core/request.ts";
import { numberCursor, pageOf } from "./page.ts";
import { idOf, READY } from "./place.ts";
import type { Statements } from "./statements.ts";
import type { QueueRow, Step } from "./step.ts";
import { isOpen } from "./task-changes.ts";
import type { TaskState } from "./task-memory.ts";

/**
 * Moves a message to the dead letters, whatever its row holds. The caller has taken it out of the counters of where it was.
 *
 * @param chosen 1 when the caller of enqueue chose its id
 * @param task the number of the task that owns it
 */
export function buryMessage(
  step: Step,
  queue: QueueRow,
  sequence: number,
  deliveryCount: number,
  chosen: number,
  task: number | null,
  reason: string,
): void {
  const [enqueuedAt, kept, data] = (step.sql.messageAt.get(queue.slot, sequence) ?? [step.wallMs, null, Buffer.alloc(0)]) as [
    number,
    string | null,
    Buffer,
  ];
  const id = idOf(step, queue.slot, sequence, kept);
  step.sql.insertDeadLetter.run(queue.life, id, sequence, enqueuedAt, step.wallMs, deliveryCount, chosen, reason, data, task);
  step.sql.deletePlace.run(queue.slot, sequence);
  step.sql.deleteMessage.run(queue.slot, sequence);
  queue.dead += 1;
  queue.deadLettered += 1;
  if (task !== null) step.tasks.failed(task, queue.slot, { reason, queue: queue.name, message: id });
  step.touch(queue);
}

type DeadLetterColumns = [
  number: number,
  id: string,
  enqueuedAt: number,
  diedAt: number,
  deliveryCount: number,
  reason: string,
  data: Buffer,
  task: TaskId | null,
];

/** One page of the dead letters of a queue. */
export function deadLettersPage(sql: Statements, life: number, options: PageOptions | undefined): Page<DeadLetter> {
  const { after, limit } = checkPage(options);
  const rows = sql.deadLettersPage.iterate(life, numberCursor(after), limit + 1) as IterableIterator<DeadLetterColumns>;
  return pageOf(rows, limit, ([number, id, enqueuedAtMs, diedAtMs, deliveryCount, reason, data, task]) => ({
    cursor: String(number),
    bytes: data.byteLength,
    item: { id: id as MessageId, data, enqueuedAtMs, deliveryCount, ...(task === null ? {} : { task }), reason, diedAtMs },
  }));
}

type Found = [number: number, sequence: number, enqueuedAt: number, chosen: number, data: Buffer, task: number | null];

/** Makes a dead letter pending again, for its task while that goes on. */
export function redriveOne(step: Step, queue: QueueRow, id: MessageId): "redriven" | "not-found" {
  return redriveInto(step, queue, id, undefined) === undefined ? "not-found" : "redriven";
}

/**
 * Makes a dead letter pending again at its old place: sequences go on counting when a queue is cleared, so the place is still free.
 *
 * @param into the task that is to own it; its own one if absent, unless that has ended or is cancelled: then none
 * @returns its payload bytes, or `undefined` when there is none of that id
 */
export function redriveInto(step: Step, queue: QueueRow, id: MessageId, into: TaskState | undefined): number | undefined {
  const found = step.sql.deadLetterById.get(queue.life, id) as Found | undefined;
  if (found === undefined) return undefined;
  const [number, sequence, enqueuedAt, chosen, data, task] = found;
  const owner = into ?? (task === null ? undefined : step.tasks.at(task));
  const newTask = owner !== undefined && isOpen(owner) ? owner.number : null;
  if (newTask !== null) {
    if (newTask === task) step.tasks.revived(newTask, queue.slot);
    else step.tasks.stored(newTask, queue.slot);
  }
  const made = idOf(step, queue.slot, sequence, null);
  step.sql.insertMessage.run(queue.slot, sequence, enqueuedAt, 1, made === id ? null : id, newTask, data);
  step.sql.insertPlace.run(queue.slot, sequence, READY, null, 0, null, null, null, chosen, newTask);
  if (chosen === 1) step.sql.moveChosenId.run(queue.slot, sequence, queue.life, id);
  step.sql.deleteDeadLetter.run(number);
  queue.dead -= 1;
  queue.pending += 1;
  queue.ready += 1;
  step.touch(queue);
  return data.byteLength;
}

/** Removes a dead letter for good. */
export function dropOne(step: Step, queue: QueueRow, id: MessageId): "dropped" | "not-found" {
  const found = step.sql.deadLetterById.get(queue.life, id) as Found | undefined;
  if (found === undefined) return "not-found";
  step.sql.deleteDeadLetter.run(found[0]);
  if (found[3] === 1) step.sql.forgetChosenIdIfDue.run(queue.life, id, step.nowMs);
  queue.dead -= 1;
  step.touch(queue);
  return "dropped";
}
