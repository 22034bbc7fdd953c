/** Removing the messages of cancelled tasks. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { TASK_STEP_ITEMS } from "../../core/limits.ts";
import { DELAYED, PROCESSING, READY, removeMessage } from "./place.ts";
import type { QueueRow, Step } from "./step.ts";
import type { TaskState } from "./task-memory.ts";

/** Messages that one step looks through: some 10 milliseconds. */
const MESSAGES_PER_LOOK = 20_000;

/** What one step of searching may still do. */
export class TaskSearchBounds {
  /** Messages to be removed. */
  removals = TASK_STEP_ITEMS;
  /** Messages to be looked at. */
  looks = MESSAGES_PER_LOOK;
}

/** Removes an unacked message because its task is cancelled. @param state where it is: that of its place, 0 for an untouched one */
export function withdraw(step: Step, queue: QueueRow, sequence: number, state: number, chosen: number, task: number): void {
  if (state === PROCESSING) queue.processing -= 1;
  else queue.pending -= 1;
  if (state === READY) queue.ready -= 1;
  if (state === DELAYED) queue.delayed -= 1;
  if (state !== 0) step.sql.deletePlace.run(queue.slot, sequence);
  removeMessage(step, queue, sequence, chosen);
  queue.cleared += 1;
  step.touch(queue);
  step.tasks.settled(task, queue.slot, "cancelled");
}

/**
 * Removes pending messages of a task that is cancelling, going on where the step before stopped. Nothing is added to such a task, so one
 * pass over the slots that hold messages of it finds all. `more`: it is not through.
 */
export function removePending(step: Step, task: TaskState, bounds: TaskSearchBounds): { removed: number; more: boolean } {
  const search = step.sql.searchOf.get(task.number) as [number, number] | undefined;
  if (search === undefined) return { removed: 0, more: false };
  let [slot, sequence] = search;
  let removed = 0;
  for (;;) {
    step.tasks.fold();
    const next = step.sql.nextUnackedPart.get(task.number, slot) as [number] | undefined;
    if (next === undefined) {
      step.sql.saveSearch.run(null, null, task.number);
      return { removed, more: false };
    }
    // Beyond what a number can tell apart, the next slot would be the same for ever.
    if (!Number.isSafeInteger(next[0]))
      throw new QueueFSError(
        "store-corrupt",
        `task ${quote(task.id)} has counts at the slot ${next[0]}, which no store has; run queuefs doctor`,
      );
    if (next[0] !== slot) [slot, sequence] = [next[0], 0];
    const stretch = bounds.looks > 0 ? removeStretch(step, task, slot, sequence, bounds) : { removed: 0, end: sequence };
    removed += stretch.removed;
    if (stretch.end !== undefined && (bounds.looks <= 0 || bounds.removals < 0)) {
      step.sql.saveSearch.run(slot, stretch.end, task.number);
      return { removed, more: true };
    }
    if (stretch.end === undefined) slot += 1;
    sequence = stretch.end ?? 0;
  }
}

/**
 * Looks through the next messages of a slot. `end`: where to go on, absent at the end of the slot. One message more than may be removed is
 * looked for, since only that one tells whether another step is needed; once it is found, `removals` is below 0.
 */
function removeStretch(
  step: Step,
  task: TaskState,
  slot: number,
  sequence: number,
  bounds: TaskSearchBounds,
): { removed: number; end: number | undefined } {
  const queue = step.queueAtSlot(slot);
  if (queue === undefined) return { removed: 0, end: undefined };
  const [end, looked] = step.sql.endOfMessages.get(slot, sequence, slot, bounds.looks) as [number | null, number];
  if (end === null) return { removed: 0, end: undefined };
  const limit = bounds.removals;
  const rows = step.sql.pendingOfTask.all(slot, sequence, slot, end, task.number, limit + 1) as [number, number, number][];
  const taken = rows.slice(0, limit);
  for (const [at, state, chosen] of taken) withdraw(step, queue, at, state, chosen, task.number);
  const isAtEnd = looked < bounds.looks;
  bounds.removals -= rows.length;
  bounds.looks -= looked;
  if (rows.length > limit) return { removed: taken.length, end: taken.at(-1)?.[0] ?? sequence };
  return { removed: taken.length, end: isAtEnd ? undefined : end };
}
