/** Reading tasks without changing them. Each function runs in one transaction, and so sees one moment. */

import { taskNotFound } from "../../core/errors.ts";
import { TASK_LISTING_STEP_ITEMS } from "../../core/limits.ts";
import type { Page, PageOptions } from "../../core/message.ts";
import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import { checkPage } from "../../core/request.ts";
import type { Task, TaskError, TaskFailure, TaskStatus, TerminalStatus } from "../../core/task.ts";
import { isListed, jsonValue, type TaskListRequest } from "../../core/task-request.ts";
import { numberCursor, PAGE_BYTES, pageOf } from "./page.ts";
import type { Statements } from "./statements.ts";
import type { StoreContext } from "./step.ts";
import type { TaskSums } from "./task-memory.ts";

type ShownColumns = [
  number: number,
  id: TaskId,
  status: TerminalStatus | null,
  sealed: number,
  started: number,
  cancelling: number,
  done: number,
  failed: number,
  cancelled: number,
  createdAt: number,
  updatedAt: number,
  finishedAt: number | null,
  type: string,
  errorQueue: QueueName | null,
  errorMessage: MessageId | null,
  errorReason: string | null,
  producerError: string | null,
  stage: string | null,
  retryOf: TaskId | null,
  resource: string | null,
  result: string | null,
  meta: string | null,
];

function statusOf(ended: TerminalStatus | null, cancelling: number, started: number, unacked: () => number): TaskStatus {
  if (ended !== null) return ended;
  if (cancelling === 1) return "cancelling";
  return started === 1 && unacked() > 0 ? "running" : "pending";
}

/** Where the counters of tasks are. */
type Counted = Pick<StoreContext, "sql" | "tasks">;

function errorOf(
  reason: string | null,
  queue: QueueName | null,
  message: MessageId | null,
  producerError: string | null,
): TaskError | undefined {
  if (reason !== null) return { reason, ...(queue === null ? {} : { queue }), ...(message === null ? {} : { message }) };
  return producerError === null ? undefined : { reason: producerError };
}

/** The task of that number as a caller sees it. What a transaction counts must have been written before. @throws QueueFSError `internal` */
export function showTask({ sql, tasks }: Counted, number: number): Task {
  const columns = sql.shownTask.get(number) as ShownColumns;
  const [, id, ended, sealed, started, cancelling, ...more] = columns;
  const [doneAtEnd, failedAtEnd, cancelledAtEnd, createdAtMs, updatedAt, finishedAt, type, ...texts] = more;
  const [errorQueue, errorMessage, errorReason, producerError, stage, retryOf, resource, result, meta] = texts;
  const atEnd: TaskSums = { unacked: 0, done: doneAtEnd, failed: failedAtEnd, cancelled: cancelledAtEnd, updatedAt: 0 };
  const { unacked, done, failed, cancelled, updatedAt: countedAt } = ended === null ? tasks.sums(sql, number) : atEnd;
  const error = errorOf(errorReason, errorQueue, errorMessage, producerError);
  return {
    id,
    type,
    ...(resource === null ? {} : { resource }),
    status: statusOf(ended, cancelling, started, () => unacked),
    ...(stage === null ? {} : { stage }),
    progress: { total: unacked + done + failed + cancelled, done, failed, cancelled, unacked },
    sealed: sealed === 1,
    ...(meta === null ? {} : { meta: jsonValue(meta) }),
    ...(result === null ? {} : { result: jsonValue(result) }),
    ...(error === undefined ? {} : { error }),
    ...(retryOf === null ? {} : { retryOf }),
    createdAtMs,
    updatedAtMs: Math.max(updatedAt, countedAt),
    ...(finishedAt === null ? {} : { finishedAtMs: finishedAt }),
  };
}

function numberOf(sql: Statements, id: TaskId): number {
  const row = sql.taskById.get(id) as [number] | undefined;
  if (row === undefined) throw taskNotFound(id);
  return row[0];
}

/** One task. @throws QueueFSError `task-not-found` */
export function readTask(context: Counted, id: TaskId): Task {
  context.tasks.sync(context.sql);
  return showTask(context, numberOf(context.sql, id));
}

type BriefColumns = [
  number: number,
  status: TerminalStatus | null,
  started: number,
  cancelling: number,
  createdAt: number,
  type: string,
  resource: string | null,
];

/** One page of the tasks, newest first. The cursor is the number of the last task that was looked at. */
export function readTasks(context: Counted, request: TaskListRequest): Page<Task> {
  const { sql, tasks } = context;
  tasks.sync(sql);
  const before = request.after === undefined ? Number.MAX_SAFE_INTEGER : numberCursor(request.after);
  const items: Task[] = [];
  let bytes = 0;
  let looked = before;
  const rows = sql.tasksBefore.all(before, TASK_LISTING_STEP_ITEMS + 1) as BriefColumns[];
  for (const [index, [number, ended, started, cancelling, createdAtMs, type, resource]] of rows.entries()) {
    if (index === TASK_LISTING_STEP_ITEMS || items.length === request.limit || bytes >= PAGE_BYTES) return { items, next: String(looked) };
    looked = number;
    const status = statusOf(ended, cancelling, started, () => tasks.sums(sql, number).unacked);
    if (!isListed({ type, status, createdAtMs, ...(resource === null ? {} : { resource }) }, request)) continue;
    const task = showTask(context, number);
    items.push(task);
    // Only these two can be large.
    if (task.meta !== undefined || task.result !== undefined) bytes += JSON.stringify([task.meta, task.result]).length;
  }
  return { items };
}

type FailureColumns = [
  number: number,
  id: MessageId,
  enqueuedAt: number,
  diedAt: number,
  deliveryCount: number,
  reason: string,
  data: Buffer,
  queue: QueueName,
];

/** One page of the dead letters of a task. @throws QueueFSError `task-not-found` */
export function readFailures(sql: Statements, task: TaskId, options: PageOptions | undefined): Page<TaskFailure> {
  const { after, limit } = checkPage(options);
  const start = numberCursor(after);
  const rows = sql.failuresPage.iterate(numberOf(sql, task), start, limit + 1) as IterableIterator<FailureColumns>;
  return pageOf(rows, limit, ([number, id, enqueuedAtMs, diedAtMs, deliveryCount, reason, data, queue]) => ({
    cursor: String(number),
    bytes: data.byteLength,
    item: { queue, id, data, enqueuedAtMs, deliveryCount, task, reason, diedAtMs },
  }));
}
