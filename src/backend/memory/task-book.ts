/** All tasks of one store. */

import type { Random } from "../../core/clock.ts";
import { QueueFSError, taskEnded, taskNotFound } from "../../core/errors.ts";
import { makeTaskId, type TaskId } from "../../core/names.ts";
import type { TaskRequest } from "../../core/task-request.ts";
import { Heap } from "./heap.ts";
import { OrderedLog } from "./ordered-log.ts";
import { TaskState } from "./task-state.ts";

/** The tasks, and those whose counts changed in the present step. */
export class TaskBook {
  readonly byId = new Map<TaskId, TaskState>();
  /** By number, which is the order of their making. */
  readonly log = new OrderedLog<TaskState>();
  /** Cancelled ones of which pending messages may be left. */
  readonly cancelling = new Set<TaskState>();
  /** Ended ones, by when they are to be removed. */
  readonly ended = new Heap<TaskState>();
  /** Those that are open for a producer. */
  readonly produced = new Set<TaskState>();
  /** Those that were changed in this step, each once. */
  #touched: TaskState[] = [];
  #lastNumber = 0;

  /** The task of that id. @throws QueueFSError `task-not-found` */
  get(id: TaskId): TaskState {
    const task = this.byId.get(id);
    if (task === undefined) throw taskNotFound(id);
    return task;
  }

  /** The task of that id, which must take more work. @throws QueueFSError `task-not-found`, `task-ended` */
  open(id: TaskId): TaskState {
    const task = this.get(id);
    if (!task.isOpen) throw taskEnded(id, task.status);
    return task;
  }

  /** Refuses a new task when there is no room for it. @throws QueueFSError `store-full` */
  checkRoom(maxTasks: number): void {
    if (this.byId.size < maxTasks) return;
    throw new QueueFSError(
      "store-full",
      `the memory store holds ${this.byId.size} tasks, which is the limit (maxTasks); remove ended ones, or raise the limit`,
    );
  }

  /** Makes a task that is not there yet. */
  create(store: string, request: TaskRequest, wallMs: number, nowMs: number, random: Random): TaskState {
    this.#lastNumber += 1;
    const id = request.id ?? makeTaskId(store, this.#lastNumber);
    const producer =
      request.producer === undefined ? undefined : { token: `p-${random.token().toString(36)}`, untilMs: nowMs + request.producer.leaseMs };
    const task = new TaskState(this.#lastNumber, id, request, producer, wallMs);
    this.byId.set(id, task);
    this.log.push(task);
    if (producer !== undefined) this.produced.add(task);
    this.touch(task);
    return task;
  }

  /** Says that a task was changed. */
  touch(task: TaskState): void {
    if (task.isTouched) return;
    task.isTouched = true;
    this.#touched.push(task);
  }

  /** Whether a task was changed in this step. */
  get isTouched(): boolean {
    return this.#touched.length > 0;
  }

  /** Ends what has ended: the last thing of each step, so that no half of a step is judged. @param atMs the wall clock */
  settle(atMs: number): void {
    if (this.#touched.length === 0) return;
    for (const task of this.#touched) {
      task.isTouched = false;
      task.updatedAtMs = Math.max(task.updatedAtMs, atMs);
      const status = task.verdict();
      if (status === undefined) continue;
      task.ended = { status, atMs };
      task.searched = undefined;
      this.cancelling.delete(task);
      this.ended.push(task.keptUntilMs, task);
    }
    if (this.#touched.length === 1) this.#touched.pop();
    else this.#touched = [];
  }

  /** Removes a task that has ended. */
  remove(task: TaskState): void {
    this.byId.delete(task.id);
    this.log.remove(task);
  }

  /** Seals tasks whose producers are gone, and removes those that were kept long enough. @returns whether more is to be done */
  sweep(nowMs: number, wallMs: number, atMost: number): boolean {
    let left = atMost;
    for (const task of this.produced) {
      if (task.producer === undefined) this.produced.delete(task);
      else if (task.producer.untilMs <= nowMs && left > 0) {
        task.orphan();
        this.produced.delete(task);
        this.touch(task);
        left -= 1;
      }
    }
    while (left > 0 && this.ended.firstKey() <= wallMs) {
      const task = this.ended.pop() as TaskState;
      if (task.removed) continue;
      this.remove(task);
      left -= 1;
    }
    return left === 0;
  }
}
