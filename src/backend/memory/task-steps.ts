/** What can be done with tasks as a whole. Each function is one step; the caller settles the book after it. */

import type { Random } from "../../core/clock.ts";
import { QueueFSError, quote, taskActive, taskEnded } from "../../core/errors.ts";
import { TASK_STEP_ITEMS } from "../../core/limits.ts";
import type { EnqueueAnswer, Forward, NewMessage } from "../../core/message.ts";
import type { MessageId, TaskId } from "../../core/names.ts";
import { checkMessages } from "../../core/request.ts";
import type { ProducerRenewal, RedrivenTask, SealOptions } from "../../core/task.ts";
import type { TaskChangeRequest, TaskRequest } from "../../core/task-request.ts";
import { Admission, type Step } from "./admission.ts";
import { redrive } from "./deliveries.ts";
import { type Entry, PROCESSING } from "./entry.ts";
import type { QueueState } from "./queue-state.ts";
import type { MemoryStore } from "./store.ts";
import type { TaskState } from "./task-state.ts";
import { checkRoom } from "./totals.ts";

/** Messages that one step of cancelling looks through at most. */
const MESSAGES_PER_LOOK = 20_000;

/** A task that was made, or the one of that id that was there. */
export interface Created {
  readonly task: TaskState;
  readonly enqueued: readonly (readonly EnqueueAnswer[])[] | undefined;
}

/** Makes a task with its first messages. @throws QueueFSError `queue-not-found`, `store-full`, `message-too-large`, … */
export function createTask(store: MemoryStore, request: TaskRequest, batches: readonly Forward[], step: Step, random: Random): Created {
  const { tasks } = store.resources;
  const known = request.id === undefined ? undefined : tasks.byId.get(request.id);
  if (known !== undefined) return { task: known, enqueued: undefined };
  const { maxMessageBytes, maxTasks } = step.bounds;
  if (!Array.isArray(batches))
    throw new QueueFSError("invalid-argument", `the messages of a new task must be an array of queues and messages, got ${quote(batches)}`);
  let bytes = 0;
  let count = 0;
  let isPlain = true;
  for (const { messages } of batches) {
    checkMessages(messages, maxMessageBytes);
    count += messages.length;
    for (const message of messages) {
      bytes += message.data.length;
      isPlain &&= message.id === undefined && message.delayMs === undefined;
    }
  }
  if (bytes > maxMessageBytes) {
    throw new QueueFSError(
      "message-too-large",
      `the messages of a new task have ${bytes} bytes together, which exceeds the limit of ${maxMessageBytes}; make it with a producer and enqueue the rest`,
    );
  }
  tasks.checkRoom(maxTasks);
  if (isPlain) return createPlainly(store, request, batches, step, random, count, bytes);
  const admission = new Admission(store.resources, step);
  // Whose they are is said by the call as a whole.
  const plans = batches.map(({ queue, messages }) =>
    admission.plan(
      store.queue(queue),
      messages.map(({ task: _owner, ...message }: NewMessage) => message),
    ),
  );
  admission.check();
  const task = tasks.create(store.resources.id, request, step.wallMs, step.nowMs, random);
  const enqueued = plans.map((plan) => admission.store(plan, task));
  for (const { queue } of batches) store.changed(queue);
  return { task, enqueued };
}

/** Messages without ids and delays need no plan. */
function createPlainly(
  store: MemoryStore,
  request: TaskRequest,
  batches: readonly Forward[],
  step: Step,
  random: Random,
  count: number,
  bytes: number,
): Created {
  const { totals, tasks, id } = store.resources;
  const queues = batches.map(({ queue }) => store.queue(queue));
  checkRoom(totals, step.bounds, count, bytes, 0);
  const task = tasks.create(id, request, step.wallMs, step.nowMs, random);
  const enqueued = batches.map(({ messages }, index) => {
    const queue = queues[index] as QueueState;
    store.changed(queue.name);
    return messages.map(
      ({ data }): EnqueueAnswer => ({ outcome: "enqueued", id: queue.append(data, undefined, 0, step.wallMs, step.nowMs, task) }),
    );
  });
  return { task, enqueued };
}

/** Changes what is said of a task. @throws QueueFSError `task-ended` */
export function updateTask(store: MemoryStore, task: TaskState, change: TaskChangeRequest): void {
  if (task.ended !== undefined) throw taskEnded(task.id, task.status);
  task.stage = change.stage ?? task.stage;
  task.meta = change.meta ?? task.meta;
  task.result = change.result ?? task.result;
  store.resources.tasks.touch(task);
}

/** Seals a task. @returns whether it was open, and for this producer */
export function sealTask(store: MemoryStore, task: TaskState, { producer, error }: SealOptions): boolean {
  if (task.sealed || (producer !== undefined && task.producer?.token !== producer)) return false;
  task.seal(error);
  store.resources.tasks.produced.delete(task);
  store.resources.tasks.touch(task);
  return true;
}

/** Renews the lease of a producer. */
export function renewProducer(store: MemoryStore, item: ProducerRenewal, nowMs: number): "renewed" | "stale" {
  const producer = store.resources.tasks.byId.get(item.task)?.producer;
  if (producer?.token !== item.producer) return "stale";
  producer.untilMs = nowMs + item.leaseMs;
  return "renewed";
}

/** Marks a task as cancelling. One that has ended stays as it is. */
export function cancelTask(store: MemoryStore, task: TaskState, reason: string | undefined): void {
  const { tasks } = store.resources;
  if (task.ended !== undefined || task.cancelling) return;
  task.cancelling = true;
  task.seal(undefined);
  if (reason !== undefined) task.error ??= { reason };
  tasks.produced.delete(task);
  tasks.cancelling.add(task);
  tasks.touch(task);
}

/** Removes pending messages of a task that is cancelling, a bounded number, going on where the last step stopped. */
export function removePending(store: MemoryStore, task: TaskState): { removed: number; more: boolean } {
  let removed = 0;
  let looked = 0;
  task.searched ??= new Map();
  const { searched } = task;
  for (const queue of store.queues.values()) {
    if (!queue.owners.has(task)) continue;
    const found: Entry[] = [];
    let place = searched.get(queue) ?? 0;
    queue.visit(place, (entry) => {
      if (removed + found.length === TASK_STEP_ITEMS || looked === MESSAGES_PER_LOOK) return false;
      looked += 1;
      place = entry.place + 1;
      if (entry.owner?.task === task && entry.state !== PROCESSING) found.push(entry);
      return true;
    });
    searched.set(queue, place);
    if (found.length > 0) withdraw(store, queue, found);
    removed += found.length;
    if (removed === TASK_STEP_ITEMS || looked === MESSAGES_PER_LOOK) return { removed, more: true };
  }
  store.resources.tasks.cancelling.delete(task);
  return { removed, more: false };
}

function withdraw(store: MemoryStore, queue: QueueState, entries: readonly Entry[]): void {
  for (const entry of entries) queue.cancel(entry);
  queue.forgetCancelled();
  store.changed(queue.name);
}

/** Makes dead letters of one task pending again, as messages of another or of the same. @throws QueueFSError `task-active`, `task-ended` */
export function redriveTask(store: MemoryStore, from: TaskId, into: TaskId): RedrivenTask {
  const { tasks } = store.resources;
  const source = tasks.get(from);
  const target = tasks.open(into);
  if (source !== target && source.ended === undefined) throw taskActive(from, source.status);
  const byQueue = new Map<QueueState, MessageId[]>();
  let redriven = 0;
  source.failures.visit(0, ({ queue, record }) => {
    if (redriven === TASK_STEP_ITEMS) return false;
    redriven += 1;
    const ids = byQueue.get(queue);
    if (ids === undefined) byQueue.set(queue, [record.id]);
    else ids.push(record.id);
    return true;
  });
  for (const [queue, ids] of byQueue) {
    redrive(queue, ids, target);
    store.changed(queue.name);
  }
  return { redriven, more: source.failures.length > 0 };
}

/** Removes the record of a task that has ended. @throws QueueFSError `task-active` */
export function removeTask(store: MemoryStore, task: TaskState): void {
  if (task.ended === undefined) throw taskActive(task.id, task.status);
  store.resources.tasks.remove(task);
}
