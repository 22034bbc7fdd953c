/** The proof of what a task says of its import: that it ended when its queues were complete, with the right status, numbers and report. */

import { isComplete, type QueueStatus, type Task, type TaskStatus } from "../../src/index.ts";
import type { Check } from "./verify.ts";

/** One message that was given up on, as the report of a task names it. */
export interface Failure {
  readonly document: string;
  readonly reason: string;
}

/** Each document is a message of either queue. */
const MESSAGES_EACH = 2;

/**
 * Whether the end of a task and the completion of its queues were one moment.
 *
 * @param afterEnd the first snapshot after the task had ended
 * @param afterComplete the task, looked at first after a snapshot was complete
 */
export function checkMoment(afterEnd: readonly QueueStatus[], afterComplete: TaskStatus): Check {
  const unfinished = afterEnd.filter((status) => !isComplete([status])).map(({ queue }) => queue);
  if (unfinished.length > 0) return { passed: false, text: `the task had ended, yet ${unfinished.join(", ")} was not complete` };
  if (afterComplete !== "completed" && afterComplete !== "failed")
    return { passed: false, text: `both queues were complete, yet the task was ${afterComplete}` };
  return { passed: true, text: "the task ended when both queues were complete: neither was seen without the other" };
}

/** Whether a task tells that all its documents were imported. */
export function checkCompleted(task: Task, documents: number): Check {
  return checkEnd(task, "completed", documents * MESSAGES_EACH, 0);
}

/** Whether a task tells which one of its documents failed, and why, and that all others were imported. */
export function checkFailed(task: Task, failures: readonly Failure[], expected: Failure, others: number): Check[] {
  const named = failures.map(({ document, reason }) => `${document} (${reason})`).join(", ");
  const isRight =
    failures.length === 1 &&
    failures[0]?.document === expected.document &&
    failures[0].reason === expected.reason &&
    task.error?.reason === expected.reason;
  const report = isRight
    ? `its report names ${expected.document} and no other: ${expected.reason}`
    : `its report names ${named || "nothing"}, and ${task.error?.reason ?? "nothing"} as its error`;
  return [checkEnd(task, "failed", others * MESSAGES_EACH, 1), { passed: isRight, text: report }];
}

function checkEnd({ status, progress }: Task, expected: TaskStatus, done: number, failed: number): Check {
  const { total, cancelled, unacked } = progress;
  const isRight =
    status === expected &&
    progress.done === done &&
    progress.failed === failed &&
    cancelled === 0 &&
    unacked === 0 &&
    total === done + failed;
  const counts = `${progress.done} of its ${total} messages done, ${progress.failed} failed, ${unacked} left`;
  return { passed: isRight, text: isRight ? `the task is ${status}: ${counts}` : `the task is ${status}, not ${expected}: ${counts}` };
}
