/** The end of an epoch: everything left is taken and acked, by one client and without faults. */

import { setTimeout as sleep } from "node:timers/promises";
import type { RecordedCalls } from "./calls.ts";
import type { Plan } from "./lane.ts";
import type { Operation, OperationOf } from "./operation.ts";

/** Dequeues with a request id of which nobody saw the answer: whoever repeats them gets it. */
export function unansweredRequests(operations: readonly Operation[]): OperationOf<"dequeue">[] {
  const answered = new Set<string>();
  for (const operation of operations)
    if (operation.op === "dequeue" && operation.outcome === "ok" && (operation.received?.length ?? 0) > 0)
      answered.add(`${operation.queue} ${operation.requestId}`);
  const isOpen = (operation: Operation): operation is OperationOf<"dequeue"> =>
    operation.op === "dequeue" &&
    operation.outcome === "info" &&
    operation.requestId !== undefined &&
    !answered.has(`${operation.queue} ${operation.requestId}`);
  return operations.filter(isOpen);
}

/** Tasks that somebody made and nobody is known to have sealed. */
function unsealedTasks(operations: readonly Operation[]): string[] {
  const open = new Set<string>();
  for (const operation of operations)
    if (operation.op === "submit" && !operation.sealed && operation.outcome !== "fail") open.add(operation.task);
  for (const operation of operations) if (operation.op === "seal" && operation.outcome === "ok") open.delete(operation.task);
  return [...open];
}

/** Drains all queues of an epoch. @returns whether they were empty before `timeoutMs` had passed */
export async function drain(calls: RecordedCalls, plan: Plan, operations: readonly Operation[], timeoutMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs;
  for (const task of unsealedTasks(operations)) await calls.seal(task);
  const queues = [...plan.work, plan.cleared, plan.removed];
  await calls.create(plan.removed);
  let isEmpty = false;
  while (!isEmpty && performance.now() < deadlineMs) {
    let taken = 0;
    for (const queue of queues) {
      const result = await calls.dequeue(queue, 100, plan.longestLeaseMs);
      if (result.outcome !== "ok" || result.answer.length === 0) continue;
      taken += result.answer.length;
      await calls.ack(
        queue,
        result.answer.map(({ receipt }) => ({ receipt })),
      );
    }
    const statuses = await calls.status(queues);
    isEmpty = statuses.outcome === "ok" && statuses.answer.every(({ pending, processing }) => pending === 0 && processing === 0);
    if (taken === 0 && !isEmpty) await sleep(20);
  }
  await calls.wait(plan.work, 5_000, false);
  const tasks = new Set<string>();
  for (const operation of operations) if (operation.op === "submit" && operation.outcome === "ok") tasks.add(operation.task);
  for (const task of tasks) await calls.task(task);
  return isEmpty;
}
