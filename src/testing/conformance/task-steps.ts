/** The steps of which the cases about tasks are made. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import type { Forward, NewMessage } from "../../core/message.ts";
import { parseTaskId, type QueueName, type TaskId } from "../../core/names.ts";
import type { CreatedTask, NewTask, Task, TaskFailure, TaskListOptions } from "../../core/task.ts";
import { bytes, everyListed } from "./steps.ts";

/** A task id for a case. */
export const taskId: (text: string) => TaskId = parseTaskId;

/** Texts for one queue, as a batch of a new task. */
export function batch(queue: QueueName, ...texts: readonly string[]): Forward {
  return { queue, messages: texts.map((text) => ({ data: bytes(text) })) };
}

/** Makes a task and fails unless it was made. */
export async function begin(
  backend: Backend,
  batches: readonly Forward[] = [],
  task: Partial<NewTask> = {},
): Promise<Extract<CreatedTask, { outcome: "created" }>> {
  const created = await backend.createTask({ type: "import", ...task }, batches);
  assert.equal(created.outcome, "created");
  assert.ok(created.outcome === "created");
  return created;
}

/** Makes a task that is open for more, and gives its id and its producer's name. */
export async function beginOpen(
  backend: Backend,
  batches: readonly Forward[] = [],
  task: Partial<NewTask> = {},
): Promise<{ readonly id: TaskId; readonly producer: string }> {
  const created = await begin(backend, batches, { producer: { leaseMs: 3_600_000 }, ...task });
  assert.ok(created.producer, "an open task names its producer");
  return { id: created.task.id, producer: created.producer };
}

/** Enqueues texts into a task. */
export async function putFor(backend: Backend, queue: QueueName, task: TaskId, ...texts: readonly string[]): Promise<void> {
  const answers = await backend.enqueue(
    queue,
    texts.map((text): NewMessage => ({ data: bytes(text), task })),
  );
  assert.deepEqual(
    answers.map((answer) => answer.outcome),
    texts.map(() => "enqueued"),
  );
}

/** Fails unless a task has this status and these counts. */
export async function assertTask(
  backend: Backend,
  id: TaskId,
  status: Task["status"],
  progress: Partial<Task["progress"]> = {},
): Promise<Task> {
  const task = await backend.task(id);
  assert.equal(task.id, id);
  assert.equal(task.status, status, `status of the task, which counts ${JSON.stringify(task.progress)}`);
  const { total, done, failed, cancelled, unacked } = task.progress;
  assert.equal(total, done + failed + cancelled + unacked, "the counts add up");
  assert.deepEqual({ ...task.progress, ...progress }, task.progress, "progress");
  const isTerminal = status === "completed" || status === "failed" || status === "cancelled";
  assert.equal(task.finishedAtMs !== undefined, isTerminal, "a task has a time of its end when, and only when, it has ended");
  if (isTerminal) assert.equal(unacked, 0, "an ended task has nothing unacked");
  return task;
}

/** Cancels a task, step by step, until no pending message of it is left; answers how many were removed and how many steps it took. */
export async function cancelAll(backend: Backend, id: TaskId): Promise<{ removed: number; steps: number }> {
  const total = { removed: 0, steps: 0 };
  for (;;) {
    const { removed, more } = await backend.cancelTask(id);
    total.removed += removed;
    total.steps += 1;
    if (!more) return total;
    assert.ok(total.steps < 10_000, "cancelling comes to an end");
  }
}

/** All tasks of a listing. */
export function everyTask(backend: Backend, options: TaskListOptions = {}): Promise<Task[]> {
  return everyListed((after) => backend.tasks(after === undefined ? options : { ...options, after }));
}

/** All failures of a task. */
export function everyFailure(backend: Backend, id: TaskId, limit = 100): Promise<TaskFailure[]> {
  return everyListed((after) => backend.taskFailures(id, after === undefined ? { limit } : { limit, after }));
}
