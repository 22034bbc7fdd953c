/** What time and deaths do to tasks: producers that are gone, messages of cancelled tasks, records kept long enough. */

import { TASK_STEP_ITEMS } from "../../core/limits.ts";
import { PRODUCER_GONE } from "../../core/task-request.ts";
import type { Step, StoreContext } from "./step.ts";
import { removePending, TaskSearchBounds } from "./task-cancelling.ts";
import { forgetTask, seal } from "./tasks.ts";

/** Whether a step would find anything to do; a look needs no lock. */
export function isTaskRecoveryDue({ sql, clock }: StoreContext): boolean {
  return (
    sql.dueProducers.get(clock.monotonicMs(), 1) !== undefined ||
    sql.searchedTasks.get(1) !== undefined ||
    sql.dueToForget.get(clock.wallMs(), 1) !== undefined
  );
}

/** One bounded step. Answers whether there is more to do. */
export function recoverTasks(step: Step): boolean {
  const due = sealOrphans(step, step.sql.dueProducers.all(step.nowMs, TASK_STEP_ITEMS) as [number][]);
  const searching = searchOn(step);
  return forget(step) || searching || due;
}

/** Seals tasks whose producer was in a process that is gone. Answers whether there may be more. */
export function sealForSession(step: Step, session: number): boolean {
  return sealOrphans(step, step.sql.producersOfSession.all(session, TASK_STEP_ITEMS) as [number][]);
}

function sealOrphans(step: Step, numbers: readonly [number][]): boolean {
  for (const [number] of numbers) {
    const task = step.tasks.at(number);
    if (task === undefined) continue;
    seal(step, task, PRODUCER_GONE);
  }
  return numbers.length === TASK_STEP_ITEMS;
}

/** Goes on removing messages of cancelled tasks. */
function searchOn(step: Step): boolean {
  const bounds = new TaskSearchBounds();
  for (const [number] of step.sql.searchedTasks.all(TASK_STEP_ITEMS) as [number][]) {
    const task = step.tasks.at(number);
    if (task !== undefined && removePending(step, task, bounds).more) return true;
  }
  return step.sql.searchedTasks.get(1) !== undefined;
}

function forget(step: Step): boolean {
  const numbers = step.sql.dueToForget.all(step.wallMs, TASK_STEP_ITEMS) as [number][];
  for (const [number] of numbers) {
    const task = step.tasks.at(number);
    if (task !== undefined) forgetTask(step, task);
  }
  return numbers.length === TASK_STEP_ITEMS;
}
