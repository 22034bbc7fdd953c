/** Deleting what no longer counts, a bounded amount per step: rows of cleared and removed queues, and what was remembered long enough. */

import type { Step, StoreContext } from "./step.ts";

/** Rows of one kind that one step deletes. */
const ROWS_PER_STEP = 500;

/** Whether a step would find anything to do; a look needs no lock. */
export function isTidyDue({ sql, clock }: StoreContext): boolean {
  const nowMs = clock.monotonicMs();
  return sql.emptyingSlot.get() !== undefined || sql.dueChosenIds.get(nowMs, 1) !== undefined || sql.dueRequest.get(nowMs) !== undefined;
}

/** One step. Answers whether there is more to do. */
export function tidyStep(step: Step): boolean {
  const emptying = emptySlot(step);
  const forgetting = forgetChosenIds(step);
  const { changes } = step.sql.forgetRequests.run(step.nowMs, ROWS_PER_STEP);
  return emptying || forgetting || changes === ROWS_PER_STEP;
}

function emptySlot(step: Step): boolean {
  const row = step.sql.emptyingSlot.get() as [number, number | null] | undefined;
  if (row === undefined) return false;
  const [slot, life] = row;
  let deleted =
    step.sql.deleteSomePlaces.run(slot, slot, ROWS_PER_STEP).changes + step.sql.deleteSomeMessages.run(slot, slot, ROWS_PER_STEP).changes;
  if (life !== null) {
    deleted += step.sql.deleteSomeDeadLetters.run(life, ROWS_PER_STEP).changes;
    deleted += step.sql.deleteSomeChosenIds.run(life, life, ROWS_PER_STEP).changes;
    deleted += step.sql.deleteSomeRequests.run(life, life, ROWS_PER_STEP).changes;
  }
  if (deleted === 0) step.sql.endEmptying.run(slot);
  return true;
}

function forgetChosenIds(step: Step): boolean {
  const rows = step.sql.dueChosenIds.all(step.nowMs, ROWS_PER_STEP) as [number, string, number, number][];
  for (const [life, id, slot, sequence] of rows) {
    // A message that is still there keeps its id taken; its removal forgets it.
    const alive =
      (step.queueAtSlot(slot)?.life === life && step.sql.idAt.get(slot, sequence) !== undefined) ||
      step.sql.isDead.get(life, id) !== undefined;
    (alive ? step.sql.keepChosenId : step.sql.deleteChosenId).run(life, id);
  }
  return rows.length === ROWS_PER_STEP;
}
