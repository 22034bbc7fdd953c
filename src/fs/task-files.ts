/** Tasks as files: one file of JSON for each, in one directory, the newest first. */

import type { Backend } from "../backend/contract.ts";
import { QueueFSError } from "../core/errors.ts";
import { MAX_LISTED_TASKS, MAX_PAGE_ITEMS } from "../core/limits.ts";
import type { TaskId } from "../core/names.ts";
import type { Task } from "../core/task.ts";
import { describeTask } from "../core/task-json.ts";
import { waitTask } from "../task/index.ts";
import { type Loaded, whole } from "./control-reads.ts";

const encoder = new TextEncoder();

function taskContent(task: Task): Loaded {
  return whole(encoder.encode(`${JSON.stringify(describeTask(task))}\n`));
}

/** The file of a task: what is known of it now. @throws QueueFSError `task-not-found` */
export async function readTask(backend: Backend, id: TaskId): Promise<Loaded> {
  return taskContent(await backend.task(id));
}

/** What waits for the end of a task: the same, once it has ended. @throws QueueFSError `task-not-found` */
export async function readTaskWait(backend: Backend, id: TaskId, signal: AbortSignal): Promise<Loaded> {
  return taskContent(await waitTask(backend, id, { signal }));
}

/** All tasks, the newest first. @throws QueueFSError `message-too-large` for more than a listing may name */
export async function listTasks(backend: Backend): Promise<Task[]> {
  const tasks: Task[] = [];
  let after: string | undefined;
  do {
    const page = await backend.tasks({ limit: MAX_PAGE_ITEMS, ...(after === undefined ? {} : { after }) });
    tasks.push(...page.items);
    if (tasks.length > MAX_LISTED_TASKS) {
      throw new QueueFSError(
        "message-too-large",
        `there are more than ${MAX_LISTED_TASKS} tasks, which is the limit of a listing; list them page by page (queuefs task list, tasks.list)`,
      );
    }
    after = page.next;
  } while (after !== undefined);
  return tasks;
}
