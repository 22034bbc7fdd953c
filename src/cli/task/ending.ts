/** How a task ended, as an error of the command that waited for it. */

import type { Backend } from "../../backend/contract.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import type { Task } from "../../core/task.ts";
import { whereOf } from "./task-lines.ts";

/** Failed messages that are counted at most: they come with their payloads. */
const COUNTED_FAILURES = 1_000;
const PAGE_FAILURES = 100;

/** How many failed messages of a task are dead letters now; `undefined`: too many to count, or the store does not tell. */
async function countDeadLetters(backend: Backend, task: Task): Promise<number | undefined> {
  let count = 0;
  let after: string | undefined;
  try {
    do {
      const page = await backend.taskFailures(task.id, { limit: PAGE_FAILURES, ...(after === undefined ? {} : { after }) });
      count += page.items.length;
      after = page.next;
    } while (after !== undefined && count < COUNTED_FAILURES);
  } catch {
    // How the task ended is known and must be told all the same.
    return undefined;
  }
  return after === undefined ? count : undefined;
}

/** Where the failed messages are to be found. */
async function placeOf(backend: Backend, task: Task): Promise<string> {
  const count = await countDeadLetters(backend, task);
  if (count === undefined) return "queuefs task show lists those that are dead letters";
  if (count >= task.progress.failed) return "queuefs task show lists them";
  if (count === 0) return "none of them is a dead letter now: they were removed, or tried again";
  return `queuefs task show lists ${count} of them, the others were removed, or tried again`;
}

/** Says how an ended task ended, unless it completed. @throws QueueFSError `task-failed`, `task-cancelled` */
export async function assertCompleted(backend: Backend, task: Task): Promise<void> {
  const { id, status, progress, error } = task;
  const why = error === undefined ? "" : `: ${error.reason}${whereOf(error)}`;
  if (status === "cancelled") throw new QueueFSError("task-cancelled", `task ${quote(id)} was cancelled${why}`);
  if (status !== "failed") return;
  if (progress.failed === 0) throw new QueueFSError("task-failed", `task ${quote(id)} failed${why}`);
  const count = `${progress.failed} of ${progress.total} messages`;
  throw new QueueFSError("task-failed", `task ${quote(id)} failed, ${count}${why}; ${await placeOf(backend, task)}`);
}
