/** What can be done with tasks as a whole. Each function is one step. */

import { QueueFSError, taskActive, taskEnded } from "../../core/errors.ts";
import { TASK_STEP_ITEMS } from "../../core/limits.ts";
import type { Forward, NewMessage } from "../../core/message.ts";
import { type MessageId, makeTaskId, type QueueName, type TaskId } from "../../core/names.ts";
import { checkBatch, checkMessages } from "../../core/request.ts";
import type { CancelledTask, CreatedTask, ProducerRenewal, RedrivenTask, SealedTask, SealOptions, Task } from "../../core/task.ts";
import type { TaskChangeRequest, TaskRequest } from "../../core/task-request.ts";
import { redriveInto } from "./dead-letters.ts";
import { copyMessages, enqueueInto, payloadBytes } from "./enqueue.ts";
import type { Step } from "./step.ts";
import { removePending, TaskSearchBounds } from "./task-cancelling.ts";
import type { TaskState } from "./task-memory.ts";
import { showTask } from "./task-reading.ts";

/** Payload bytes of the dead letters that one step of trying again takes, unless the first alone has more: 8 MiB. */
const REDRIVE_BYTES = 8 * 1024 * 1024;

/** Checks the first messages of a task, and copies them. Whose they are is said by the call as a whole. @throws QueueFSError `message-too-large`, … */
export function checkBatches(
  batches: readonly Forward[],
  maxMessageBytes: number,
): { copies: readonly Forward[]; bytes: number; messages: number } {
  checkBatch("createTask", batches);
  let bytes = 0;
  let count = 0;
  const copies = batches.map((batch) => {
    const messages = copyMessages(checkMessages(batch?.messages, maxMessageBytes));
    bytes += payloadBytes(messages);
    count += messages.length;
    return { queue: batch.queue, messages };
  });
  if (bytes > maxMessageBytes) {
    throw new QueueFSError(
      "message-too-large",
      `the messages of a new task have ${bytes} bytes together, which exceeds the limit of ${maxMessageBytes}; make it with a producer and enqueue the rest`,
    );
  }
  return { copies, bytes, messages: count };
}

/** Makes a task with its first messages. @param session of this process, for a producer that it owns. @throws QueueFSError `queue-not-found` */
export function createTask(step: Step, request: TaskRequest, batches: readonly Forward[], session: () => number): CreatedTask {
  const known = request.id === undefined ? undefined : step.tasks.find(request.id);
  if (known !== undefined) {
    step.tasks.save();
    return { outcome: "exists", task: showTask(step.context, known.number) };
  }
  for (const { queue } of batches) step.queue(queue);
  const task = insertTask(step, request, session);
  const enqueued = batches.map(({ queue, messages }) =>
    enqueueInto(
      step,
      step.queue(queue),
      messages.map((message): NewMessage => ({ ...message, task: task.state.id })),
    ),
  );
  step.tasks.judge(task.state);
  return {
    outcome: "created",
    task: showTask(step.context, task.state.number),
    ...(task.producer === undefined ? {} : { producer: task.producer }),
    enqueued,
  };
}

function insertTask(step: Step, request: TaskRequest, session: () => number): { state: TaskState; producer: string | undefined } {
  const { type, stage, resource, meta, keepMs, producer, retryOf } = request;
  const [number] = step.sql.nextTask.get() as [number];
  const id = request.id ?? makeTaskId(step.context.storeId, number);
  const token = producer === undefined ? undefined : `p-${step.context.random.token().toString(36)}`;
  step.sql.insertTask.run(
    number,
    id,
    producer === undefined ? 1 : 0,
    step.wallMs,
    step.wallMs,
    keepMs.completed,
    keepMs.failed,
    keepMs.cancelled,
    token ?? null,
    producer === undefined ? null : Math.ceil(step.nowMs + producer.leaseMs),
    producer?.owner === "process" ? session() : null,
    type,
    stage ?? null,
    retryOf ?? null,
    resource ?? null,
    meta ?? null,
  );
  return { state: step.tasks.get(id), producer: token };
}

/** Changes what is said of a task. @throws QueueFSError `task-not-found`, `task-ended` */
export function updateTask(step: Step, id: TaskId, change: TaskChangeRequest): Task {
  const task = step.tasks.get(id);
  if (task.status !== null) throw taskEnded(id, task.status);
  step.sql.updateTask.run(change.stage ?? null, change.meta ?? null, change.result ?? null, step.wallMs, task.number);
  step.tasks.save();
  step.tasks.changed = true;
  return showTask(step.context, task.number);
}

/** Seals a task for its producer or for whoever asks. @throws QueueFSError `task-not-found` */
export function sealTask(step: Step, id: TaskId, options: SealOptions): SealedTask {
  const task = step.tasks.get(id);
  const isStale =
    task.sealed || (options.producer !== undefined && (step.sql.producerOf.get(task.number) as [string | null])[0] !== options.producer);
  if (isStale) step.tasks.save();
  else {
    seal(step, task, options.error);
    step.tasks.judge(task);
  }
  return { outcome: isStale ? "stale" : "sealed", task: showTask(step.context, task.number) };
}

/** Seals a task. @param error why its producer failed, if it did */
export function seal(step: Step, task: TaskState, error: string | undefined): void {
  step.sql.sealTask.run(error ?? null, step.wallMs, task.number);
  task.sealed = true;
  task.producerFailed ||= error !== undefined;
  step.tasks.altered(task);
}

/** Renews the lease of a producer, counted from now. */
export function renewProducer(step: Step, item: ProducerRenewal): "renewed" | "stale" {
  const { changes } = step.sql.renewProducer.run(Math.ceil(step.nowMs + item.leaseMs), item.task, item.producer);
  return changes === 1 ? "renewed" : "stale";
}

/** One step of cancelling a task. @throws QueueFSError `task-not-found` */
export function cancelTask(step: Step, id: TaskId, reason: string): CancelledTask {
  const task = step.tasks.get(id);
  let removed = 0;
  let more = false;
  if (task.status === null) {
    if (!task.cancelling) {
      step.sql.beginCancel.run(step.wallMs, task.number);
      task.sealed = true;
      task.cancelling = true;
      step.tasks.altered(task);
      if (reason !== "") step.tasks.keepError(task.number, { reason });
    }
    ({ removed, more } = removePending(step, task, new TaskSearchBounds()));
    step.tasks.judge(task);
  }
  step.tasks.save();
  return { task: showTask(step.context, task.number), removed, more };
}

/** Makes dead letters of one task pending again, as messages of another or of the same. @throws QueueFSError `task-not-found`, `task-ended`, `task-active` */
export function redriveTask(step: Step, from: TaskId, into: TaskId): RedrivenTask {
  const source = step.tasks.get(from);
  const target = step.tasks.open(into);
  step.tasks.save();
  if (source.number !== target.number && source.status === null) throw taskActive(from, showTask(step.context, source.number).status);
  let redriven = 0;
  let bytes = 0;
  const failures = step.sql.failuresOfTask.all(source.number, TASK_STEP_ITEMS + 1) as [QueueName, MessageId][];
  for (const [queue, id] of failures) {
    if (redriven === TASK_STEP_ITEMS || bytes >= REDRIVE_BYTES) break;
    bytes += redriveInto(step, step.queue(queue), id, target) ?? 0;
    redriven += 1;
  }
  return { redriven, more: redriven < failures.length };
}

/** Removes the record of a task that has ended. @throws QueueFSError `task-not-found`, `task-active` */
export function removeTask(step: Step, id: TaskId): void {
  const task = step.tasks.get(id);
  if (task.status === null) {
    step.tasks.save();
    throw taskActive(id, showTask(step.context, task.number).status);
  }
  forgetTask(step, task);
}

/** Removes the record of a task that has ended. Dead letters keep its number, which from then on means none. */
export function forgetTask(step: Step, task: TaskState): void {
  step.sql.deleteTask.run(task.number);
  step.tasks.removed(task);
}
