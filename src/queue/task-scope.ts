/** The task on whose behalf code runs: what it enqueues belongs to that task without passing ids by hand. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Backend } from "../backend/contract.ts";
import type { TaskId } from "../core/names.ts";

/** A task of a store. */
export interface TaskScope {
  readonly backend: Backend;
  readonly task: TaskId;
}

// undefined is a scope of its own: "on behalf of nobody", whatever lies around it.
const scopes = new AsyncLocalStorage<TaskScope | undefined>();

/** Calls `work` on behalf of a task, or of none, and answers what it answers. All that it awaits and starts runs so too. */
export function runInTask<Result>(scope: TaskScope | undefined, work: () => Result): Result {
  return scopes.run(scope, work);
}

/** The task on whose behalf the caller runs, if it is one of the store that `backend` has open. */
export function currentTask(backend: Backend): TaskId | undefined {
  const scope = scopes.getStore();
  if (scope === undefined) return undefined;
  const isSame = scope.backend === backend || scope.backend.description.storeId === backend.description.storeId;
  return isSame ? scope.task : undefined;
}

/** Calls `work` on behalf of no task: what it enqueues belongs to none, unless it says so. */
export function detached<Result>(work: () => Result): Result {
  return runInTask(undefined, work);
}
