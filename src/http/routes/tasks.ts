/** Routes about tasks. */

import { isQueueFSError, QueueFSError } from "../../core/errors.ts";
import { MAX_LONG_POLL_MS } from "../../core/limits.ts";
import { parseTaskId } from "../../core/names.ts";
import type { OptionTable } from "../../core/options.ts";
import type { NewTask, SealOptions, TaskChange } from "../../core/task.ts";
import { TASK_LIST_OPTIONS } from "../../core/task-request.ts";
import { createdTaskToWire, forwardsFromWire, messageToWire, taskToWire } from "../../core/wire.ts";
import { MESSAGES_TYPE } from "../../core/wire-bytes.ts";
import { waitTask } from "../../task/wait.ts";
import { asObject, type Call, properties, type Route, type RouteAnswer, taskOf } from "../route.ts";
import { PAGE_QUERY } from "./messages.ts";

/** The query of a wait for a task, as a table. */
export const TASK_WAIT_QUERY = {
  timeoutMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_LONG_POLL_MS,
    default: MAX_LONG_POLL_MS,
    meaning: "how long to wait, in milliseconds",
  },
} as const satisfies OptionTable;

const JSON_TYPES = ["application/json"] as const;

async function create(call: Call): Promise<RouteAnswer> {
  const { json, beside } = await call.body();
  const { task: given, batches } = properties(json, ["task", "batches"]);
  const forwards = batches === undefined ? [] : forwardsFromWire(batches, beside);
  beside?.end();
  for (const { queue } of forwards) call.caller.needQueue(queue);
  const task = asObject("a task", given) as unknown as NewTask;
  // The process that the store sees is the server, whose death says nothing of the producer's.
  const producer = task.producer === undefined ? undefined : { ...asObject("the producer of a task", task.producer), owner: "receipt" };
  const created = await call.backend.createTask({ ...task, ...(producer === undefined ? {} : { producer }) } as NewTask, forwards);
  return { status: created.outcome === "created" ? 201 : 200, json: createdTaskToWire(created) };
}

async function wait(call: Call): Promise<RouteAnswer> {
  const id = taskOf(call);
  const { timeoutMs } = call.query(TASK_WAIT_QUERY);
  try {
    const task = await call.polls.run(timeoutMs, call.signal, (allowedMs, signal) =>
      waitTask(call.polls.looks, id, { timeoutMs: allowedMs, signal }),
    );
    return { json: taskToWire(task) };
  } catch (error) {
    call.signal.throwIfAborted();
    const isOver = isQueueFSError(error, "timed-out") || call.polls.drained.aborted;
    if (!isOver) throw error;
    return { json: taskToWire(await call.backend.task(id)) };
  }
}

/** Tasks. */
export const TASK_ROUTES: readonly Route[] = [
  {
    name: "task.create",
    method: "POST",
    path: "/tasks",
    summary: "Makes a task and stores its first messages, all in one step",
    access: "write",
    scope: "body",
    remembered: true,
    body: { description: "The task and its messages", schema: "NewTask", required: true, types: ["application/json", MESSAGES_TYPE] },
    answers: {
      201: { description: "It was made", schema: "CreatedTask" },
      200: { description: "There is one of that id; nothing changed", schema: "CreatedTask" },
    },
    errors: ["invalid-name", "reserved-name", "queue-not-found", "message-too-large", "store-full", "task-not-found"],
    handle: create,
  },
  {
    name: "task.list",
    method: "GET",
    path: "/tasks",
    summary: "Tasks, newest first",
    description: "A page looks through 1,000 tasks at most: it may be short, even empty, and still have a next one.",
    access: "read",
    scope: "store",
    query: TASK_LIST_OPTIONS,
    answers: { 200: { description: "A page of tasks", schema: "Tasks" } },
    errors: [],
    async handle(call) {
      const { items, next } = await call.backend.tasks(call.query(TASK_LIST_OPTIONS));
      return { json: { items: items.map(taskToWire), ...(next === undefined ? {} : { next }) } };
    },
  },
  {
    name: "task.read",
    method: "GET",
    path: "/tasks/{task}",
    summary: "One task, of one moment",
    access: "read",
    scope: "none",
    answers: { 200: { description: "The task", schema: "Task" } },
    errors: ["invalid-name", "task-not-found"],
    handle: async (call) => ({ json: taskToWire(await call.backend.task(taskOf(call))) }),
  },
  {
    name: "task.update",
    method: "PATCH",
    path: "/tasks/{task}",
    summary: "Changes what is said of a task that has not ended",
    access: "write",
    scope: "store",
    remembered: true,
    body: { description: "What changes", schema: "TaskChange", required: true, types: JSON_TYPES },
    answers: { 200: { description: "The task", schema: "Task" } },
    errors: ["invalid-name", "task-not-found", "task-ended", "message-too-large"],
    async handle(call) {
      const { json } = await call.body();
      return { json: taskToWire(await call.backend.updateTask(taskOf(call), asObject("the body", json) as TaskChange)) };
    },
  },
  {
    name: "task.remove",
    method: "DELETE",
    path: "/tasks/{task}",
    summary: "Removes the record of a task that has ended",
    access: "write",
    scope: "store",
    remembered: true,
    answers: { 200: { description: "It was removed", schema: "Removed" } },
    errors: ["invalid-name", "task-not-found", "task-active"],
    async handle(call) {
      await call.backend.removeTask(taskOf(call));
      return { json: { removed: 1 } };
    },
  },
  {
    name: "task.seal",
    method: "POST",
    path: "/tasks/{task}/seal",
    summary: "Says that nobody adds to a task any more but its own handlers",
    description: "A token for some queues needs the producer's token as well.",
    access: "write",
    scope: "none",
    remembered: true,
    body: { description: "Who seals, and why if it failed", schema: "Seal", required: false, types: JSON_TYPES },
    answers: { 200: { description: "What became of it", schema: "SealedTask" } },
    errors: ["invalid-name", "task-not-found"],
    async handle(call) {
      const { json } = await call.body();
      const options = asObject("the body", json ?? {}) as SealOptions;
      // A task may span queues that the caller is not for: only its producer, who knows its token, may end it then.
      if (options.producer === undefined) call.caller.needWholeStore();
      const { outcome, task } = await call.backend.sealTask(taskOf(call), options);
      return { json: { outcome, task: taskToWire(task) } };
    },
  },
  {
    name: "task.cancel",
    method: "POST",
    path: "/tasks/{task}/cancel",
    summary: "Cancels a task and removes a bounded number of its pending messages",
    description: "Ask again while there is more. Repeats are harmless.",
    access: "write",
    scope: "store",
    remembered: true,
    body: { description: "Why", schema: "Cancel", required: false, types: JSON_TYPES },
    answers: { 200: { description: "What this step did", schema: "CancelledTask" } },
    errors: ["invalid-name", "task-not-found"],
    async handle(call) {
      const { json } = await call.body();
      const { reason } = properties(json, ["reason"]);
      if (reason !== undefined && typeof reason !== "string") throw new QueueFSError("invalid-argument", "reason must be a text");
      const { task, removed, more } = await call.backend.cancelTask(taskOf(call), reason === undefined ? {} : { reason });
      return { json: { task: taskToWire(task), removed, more } };
    },
  },
  {
    name: "task.redrive",
    method: "POST",
    path: "/tasks/{task}/redrive",
    summary: "Makes dead letters of a task pending again, as messages of a task",
    description: "A bounded number, the oldest first; ask again while there is more.",
    access: "write",
    scope: "store",
    remembered: true,
    body: { description: "The task that is to own them", schema: "RedriveTask", required: true, types: JSON_TYPES },
    answers: { 200: { description: "What this step did", schema: "RedrivenTask" } },
    errors: ["invalid-name", "task-not-found", "task-ended", "task-active"],
    async handle(call) {
      const { json } = await call.body();
      return { json: await call.backend.redriveTask(taskOf(call), parseTaskId(properties(json, ["into"]).into)) };
    },
  },
  {
    name: "task.failures",
    method: "GET",
    path: "/tasks/{task}/failures",
    summary: "Messages of a task that are dead letters now, over all queues",
    access: "read",
    scope: "store",
    query: PAGE_QUERY,
    answers: { 200: { description: "A page of dead letters", schema: "TaskFailures" } },
    errors: ["invalid-name", "task-not-found"],
    async handle(call) {
      const { items, next } = await call.backend.taskFailures(taskOf(call), call.query(PAGE_QUERY));
      return { json: { items: items.map((failure) => messageToWire(failure, call.beside)), ...(next === undefined ? {} : { next }) } };
    },
  },
  {
    name: "task.wait",
    method: "GET",
    path: "/tasks/{task}/wait",
    summary: "Waits until a task has ended, and gives it, ended or not",
    access: "read",
    scope: "none",
    slow: "waits",
    query: TASK_WAIT_QUERY,
    answers: { 200: { description: "The task", schema: "Task" } },
    errors: ["invalid-name", "task-not-found", "overloaded"],
    handle: wait,
  },
];
