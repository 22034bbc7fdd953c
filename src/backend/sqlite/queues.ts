/** Making, changing, clearing and removing queues. */

import { QueueFSError, queueNotFound } from "../../core/errors.ts";
import type { Cleared, QueueSettings } from "../../core/message.ts";
import { isWithin, type QueueName } from "../../core/names.ts";
import { SLOT_BOUND } from "./place.ts";
import type { Step } from "./step.ts";

/** A slot no queue has, with the sequence to go on from. */
function takeSlot(step: Step): { slot: number; tail: number } {
  const spare = step.sql.takeSpareSlot.get() as [number, number] | undefined;
  if (spare !== undefined) return { slot: spare[0], tail: spare[1] };
  const [slot] = step.sql.nextSlot.get() as [number];
  if (slot >= SLOT_BOUND) {
    throw new QueueFSError(
      "store-full",
      `the store has ${SLOT_BOUND - 1} queues or cleared ones still being deleted, which is its limit; remove queues, or wait a moment`,
    );
  }
  return { slot, tail: 0 };
}

/** Makes a queue. */
export function createQueue(step: Step, name: QueueName, settings: QueueSettings): "created" | "exists" {
  if (step.findQueue(name) !== undefined) return "exists";
  const { slot, tail } = takeSlot(step);
  const [life] = step.sql.nextLife.get() as [number];
  step.sql.insertQueue.run(slot, name, life, step.wallMs, settings.maxDeliveries, tail, tail);
  step.changedQueues.add(name);
  return "created";
}

/** Changes settings of a queue. */
export function configureQueue(step: Step, name: QueueName, settings: Partial<QueueSettings>): QueueSettings {
  const queue = step.queue(name);
  queue.maxDeliveries = settings.maxDeliveries ?? queue.maxDeliveries;
  step.sql.configureQueue.run(queue.maxDeliveries, queue.slot);
  return { maxDeliveries: queue.maxDeliveries };
}

/** Removes a queue and, if asked to, all under it. Its rows are deleted in steps later; its slot and life are nobody's at once. */
export function removeQueue(step: Step, path: QueueName, recursive: boolean): number {
  step.save();
  const within = (step.sql.queuesWithin.all(path, path, path) as [number, string, number, number][]).map(([slot, name]) => ({
    slot,
    name,
  }));
  if (within.length === 0) throw queueNotFound(path);
  const below = within.filter(({ name }) => name !== path && isWithin(name, path));
  if (below.length > 0 && !recursive) {
    throw new QueueFSError(
      "not-empty",
      `${below.length} queues lie under "${path}", such as "${below[0]?.name}"; remove it recursively, or those first`,
    );
  }
  for (const { slot } of within) {
    const queue = step.queueAtSlot(slot);
    if (queue === undefined) continue;
    step.settle(queue);
    if (queue.pending + queue.processing > 0) step.tasks.cleared(queue.slot, queue.name);
    step.sql.addSpareSlot.run(queue.slot, queue.tail, queue.life);
    step.sql.deleteQueue.run(queue.slot);
  }
  return within.length;
}

/** Removes all unacked messages at once, by giving the queue a new slot whose sequences go on where the old one's stopped. */
export function clearQueue(step: Step, name: QueueName): Cleared {
  const queue = step.queue(name);
  const cleared = { pending: queue.pending, processing: queue.processing };
  if (cleared.pending + cleared.processing === 0) return cleared;
  step.settle(queue);
  const { slot, tail } = takeSlot(step);
  step.tasks.cleared(queue.slot, queue.name);
  step.sql.addSpareSlot.run(queue.slot, queue.tail, null);
  const start = Math.max(tail, queue.tail);
  step.sql.moveQueue.run(slot, start, start, queue.slot);
  return cleared;
}
