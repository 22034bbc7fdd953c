/** The task on whose behalf a command enqueues: the option, or the environment in which `queuefs work` runs a program. */

import { parseTaskId, type TaskId } from "../core/names.ts";
import { absoluteLocation, STORE_VARIABLE } from "./store-option.ts";

/** The environment variable that names the task where no option does. */
export const TASK_VARIABLE = "QUEUEFS_TASK";

/**
 * The task that `--task` names, else the one of the environment, unless `--no-task` (`false`) was given, or `--store` names another store than
 * the environment does, where that task is not.
 *
 * @param store the value of `--store`
 * @throws QueueFSError `invalid-name`
 */
export function taskOf(
  option: string | false | undefined,
  store: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): TaskId | undefined {
  if (option === false) return undefined;
  if (option !== undefined) return parseTaskId(option);
  const named = environment[TASK_VARIABLE];
  if (named === undefined || named === "") return undefined;
  const around = environment[STORE_VARIABLE];
  const isElsewhere = store !== undefined && around && absoluteLocation(store) !== absoluteLocation(around);
  return isElsewhere ? undefined : parseTaskId(named);
}
