/** Tasks as JSON, the same on every surface. */

import { formatTimestamp } from "./codec.ts";
import type { TaskId } from "./names.ts";
import type { Json, Task, TaskError, TaskProgress, TaskStatus } from "./task.ts";

/** A task as JSON shows it, with its keys in this order; those that do not apply are absent. */
export interface TaskJson {
  readonly id: TaskId;
  readonly type: string;
  readonly resource?: string;
  readonly status: TaskStatus;
  readonly stage?: string;
  readonly progress: TaskProgress;
  readonly sealed: boolean;
  readonly meta?: Json;
  readonly result?: Json;
  readonly error?: TaskError;
  readonly retryOf?: TaskId;
  /** RFC 3339 in UTC, as the two below. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly finishedAt?: string;
}

/** A task as an object in the shape of its JSON. */
export function describeTask(task: Task): TaskJson {
  const { id, type, resource, status, stage, progress, sealed, meta, result, error, retryOf } = task;
  const { total, done, failed, cancelled, unacked } = progress;
  return {
    id,
    type,
    ...(resource === undefined ? {} : { resource }),
    status,
    ...(stage === undefined ? {} : { stage }),
    progress: { total, done, failed, cancelled, unacked },
    sealed,
    ...(meta === undefined ? {} : { meta }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error: describeError(error) }),
    ...(retryOf === undefined ? {} : { retryOf }),
    createdAt: formatTimestamp(task.createdAtMs),
    updatedAt: formatTimestamp(task.updatedAtMs),
    ...(task.finishedAtMs === undefined ? {} : { finishedAt: formatTimestamp(task.finishedAtMs) }),
  };
}

function describeError({ reason, queue, message }: TaskError): TaskError {
  return { reason, ...(queue === undefined ? {} : { queue }), ...(message === undefined ? {} : { message }) };
}
