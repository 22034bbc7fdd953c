/** Tasks over many messages. */

export { type Batch, batch } from "./batch.ts";
export type { OpenTask } from "./open-task.ts";
export { assertSameTask, type TaskSpecification, Tasks, type TasksOptions } from "./tasks.ts";
export { TaskTimeoutError, type TaskWaitBackend, type TaskWaitOptions, waitTask } from "./wait.ts";
