/** The tasks of a store as a program works with them. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { MAX_LEASE_MS, MIN_LEASE_MS } from "../core/limits.ts";
import type { Page, PageOptions } from "../core/message.ts";
import { parseChosenTaskId, parseTaskId, type TaskId } from "../core/names.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import { isTerminal, type NewTask, type Task, type TaskChange, type TaskFailure, type TaskListOptions } from "../core/task.ts";
import { NEW_TASK_OPTIONS } from "../core/task-request.ts";
import type { Batch } from "./batch.ts";
import { OpenTask } from "./open-task.ts";
import { type TaskWaitOptions, waitTask } from "./wait.ts";

/** Options of {@link Tasks}, as a table. */
export const TASKS_OPTIONS = {
  producerLeaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    default: 60_000,
    meaning: "after how long a producer that does not renew its lease is taken for gone, in milliseconds",
  },
  clock: { type: "object", meaning: "the time; the host's unless given" },
  onError: { type: "object", meaning: "told of renewals that failed" },
} as const satisfies OptionTable;

/** Options of {@link Tasks}. */
export interface TasksOptions {
  /**
   * After how long a producer of this process that does not renew its lease is taken for gone, in milliseconds: longer than it ever keeps the
   * event loop busy. 10 ms to 7 days, default 60,000. A process that died is seen earlier on SQLite.
   */
  readonly producerLeaseMs?: number;
  /** The time; the host's unless given. */
  readonly clock?: Clock;
  /** Told of renewals that failed. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

// What else the store takes is said by the methods here.
const { producer: _producer, retryOf: _retryOf, ...SPECIFICATION_OPTIONS } = NEW_TASK_OPTIONS;

/** What a program says of a new task. */
export type TaskSpecification = Omit<NewTask, "id" | "producer" | "retryOf"> & {
  /** An id that makes a repeat safe: the same id again, with the same type and resource, gives the task that is there. */
  readonly id?: string;
};

/** All tasks of one store. */
export class Tasks {
  /** The store. */
  readonly backend: Backend;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #onError: (error: unknown) => void;

  /** @throws QueueFSError `invalid-argument` */
  constructor(backend: Backend, options: TasksOptions = {}) {
    const { producerLeaseMs } = readOptions("Tasks", TASKS_OPTIONS, options);
    this.backend = backend;
    this.#leaseMs = producerLeaseMs;
    this.#clock = options.clock ?? systemClock;
    this.#onError = options.onError ?? ((error) => process.emitWarning(error instanceof Error ? error : String(error)));
  }

  /**
   * Makes a task with all its messages, in one step, sealed: it ends with the last of them and of what their handlers enqueue. With an `id` that
   * is there already, nothing is stored and that task is the answer.
   *
   * @throws QueueFSError `id-conflict` when the task of that id has another type or resource, `invalid-argument`, `invalid-name`, `store-full`, …
   */
  async create(specification: TaskSpecification, batches: readonly Batch[] = []): Promise<Task> {
    const task = this.#newTask(specification);
    const created = await this.backend.createTask(task, await Promise.all(batches.map((one) => one.encode())));
    assertSameTask(created.task, specification);
    return created.task;
  }

  /**
   * Makes a task that is open for more messages, until it is sealed.
   *
   * @throws QueueFSError `id-conflict` when there is a task of that id already, whatever it is; `invalid-argument`, `invalid-name`, …
   */
  async open(specification: TaskSpecification, batches: readonly Batch[] = []): Promise<OpenTask> {
    return this.#open(this.#newTask(specification), batches);
  }

  async #open(task: NewTask, batches: readonly Batch[]): Promise<OpenTask> {
    const encoded = await Promise.all(batches.map((one) => one.encode()));
    const created = await this.backend.createTask({ ...task, producer: { leaseMs: this.#leaseMs } }, encoded);
    if (created.outcome === "exists" || created.producer === undefined)
      throw new QueueFSError(
        "id-conflict",
        `there is a task ${quote(task.id)} already (${created.task.status}); choose another id, or work with that one`,
      );
    const context = { backend: this.backend, clock: this.#clock, onError: this.#onError, leaseMs: this.#leaseMs };
    return new OpenTask(context, created.task.id, created.producer);
  }

  /**
   * Makes a task, calls `produce`, and seals: what `produce` enqueues into named queues of this store belongs to the task, without passing ids. When
   * it throws, the task fails with that error once its messages are settled, and the error is thrown on.
   *
   * @returns the task as it was when it was sealed; {@link wait} tells how it ends
   */
  async run(specification: TaskSpecification, produce: (task: OpenTask) => unknown): Promise<Task> {
    if (typeof produce !== "function")
      throw new QueueFSError("invalid-argument", `run needs a function that produces, got ${quote(produce)}`);
    const task = await this.open(specification);
    try {
      await task.run(() => produce(task));
    } catch (error) {
      // One that it sealed itself before is as it is; what it threw is what the caller must know.
      await task.fail(error).catch((failure: unknown) => {
        if (!isQueueFSError(failure, "task-ended")) throw failure;
      });
      throw error;
    }
    return task.seal();
  }

  /** One task. @throws QueueFSError `task-not-found` */
  async get(id: string): Promise<Task> {
    return this.backend.task(parseTaskId(id));
  }

  /** One page of the tasks, newest first. It may be short, even empty, and still have a next one. */
  async page(options?: TaskListOptions): Promise<Page<Task>> {
    return this.backend.tasks(options);
  }

  /** The tasks, newest first, page by page. */
  async *list(options: TaskListOptions = {}): AsyncGenerator<Task, void, undefined> {
    let page = await this.backend.tasks(options);
    for (;;) {
      yield* page.items;
      if (page.next === undefined) return;
      page = await this.backend.tasks({ ...options, after: page.next });
    }
  }

  /** Changes what is said of a task. @throws QueueFSError `task-not-found`, `task-ended` */
  async update(id: string, change: TaskChange): Promise<Task> {
    return this.backend.updateTask(parseTaskId(id), change);
  }

  /**
   * Cancels a task: its pending messages are removed, its running handlers get an aborted signal, and it takes no more work. It is `cancelling`
   * until what is in processing is settled, then `cancelled`. Repeats are harmless; a task that has ended stays as it is.
   *
   * @throws QueueFSError `task-not-found`
   */
  async cancel(id: string, options: { readonly reason?: string } = {}): Promise<Task> {
    const parsed = parseTaskId(id);
    for (;;) {
      const { task, more } = await this.backend.cancelTask(parsed, options);
      if (!more) return task;
    }
  }

  /** Waits until a task has ended, however it ended; see {@link waitTask} for options and errors. */
  async wait(id: string, options?: TaskWaitOptions): Promise<Task> {
    return waitTask(this.backend, parseTaskId(id), options, this.#clock);
  }

  /**
   * Tries the dead letters of a task again. Of a task that has ended a new one is made, of the same type, resource and meta, which owns them; the
   * old one stays as it ended. Of a task that goes on they become its own pending messages again.
   *
   * @returns the task that owns them now
   * @throws QueueFSError `task-not-found`; `message-not-found` when it has no dead letters
   */
  async retry(id: string): Promise<Task> {
    const from = await this.get(id);
    const nothingLeft = (): QueueFSError =>
      new QueueFSError("message-not-found", `task ${quote(from.id)} (${from.status}) has no dead letters that could be tried again`);
    const { items } = await this.backend.taskFailures(from.id, { limit: 1 });
    if (items.length === 0) throw nothingLeft();
    if (!isTerminal(from.status)) {
      if ((await this.#redrive(from.id, from.id)) === 0) throw nothingLeft();
      return this.get(from.id);
    }
    const { type, resource, meta } = from;
    const again = await this.#open(
      { type, ...(resource === undefined ? {} : { resource }), ...(meta === undefined ? {} : { meta }), retryOf: from.id },
      [],
    );
    let redriven: number;
    try {
      redriven = await this.#redrive(from.id, again.id);
    } catch (error) {
      await again.fail(error);
      throw error;
    }
    if (redriven > 0) return again.seal();
    // Somebody else tried them again in the meantime: a task without any would be completed, and say what is not so.
    await again.fail("somebody else tried the dead letters again first");
    await this.backend.removeTask(again.id);
    throw nothingLeft();
  }

  async #redrive(from: TaskId, into: TaskId): Promise<number> {
    let total = 0;
    for (;;) {
      const { redriven, more } = await this.backend.redriveTask(from, into);
      total += redriven;
      if (!more) return total;
    }
  }

  /** Removes the record of a task that has ended. @throws QueueFSError `task-not-found`, `task-active` */
  async remove(id: string): Promise<void> {
    return this.backend.removeTask(parseTaskId(id));
  }

  /** The messages of a task that were given up on, each with its queue and its error, page by page, in the order they failed. */
  async *failures(id: string, options: Pick<PageOptions, "limit"> = {}): AsyncGenerator<TaskFailure, void, undefined> {
    const parsed = parseTaskId(id);
    let page = await this.backend.taskFailures(parsed, options);
    for (;;) {
      yield* page.items;
      if (page.next === undefined) return;
      page = await this.backend.taskFailures(parsed, { ...options, after: page.next });
    }
  }

  #newTask(specification: TaskSpecification): NewTask {
    readOptions("a task", SPECIFICATION_OPTIONS, specification);
    // Without one the store says what is missing.
    const { id, ...rest } = specification ?? {};
    return id === undefined ? rest : { ...rest, id: parseChosenTaskId(id) };
  }
}

/** Checks that the task which has the id already may be the one that is asked for. @throws QueueFSError `id-conflict` */
export function assertSameTask(task: Task, { type, resource }: Pick<TaskSpecification, "type" | "resource">): void {
  if (task.type === type && task.resource === resource) return;
  const kind = (type: string, resource: string | undefined): string =>
    `of type ${quote(type)} ${resource === undefined ? "without a resource" : `about ${quote(resource)}`}`;
  throw new QueueFSError(
    "id-conflict",
    `task ${quote(task.id)} is ${kind(task.type, task.resource)}, not ${kind(type, resource)}; choose another id`,
  );
}
