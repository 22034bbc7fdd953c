/** Looks at the store that many waiting requests share, so that a thousand waits for one queue cost as much as two. */

import type { Backend } from "../backend/contract.ts";
import type { QueueSelection, QueueStatus } from "../core/message.ts";
import type { TaskId } from "../core/names.ts";
import type { Task } from "../core/task.ts";

/**
 * Joins calls with one key: while one runs, those that come are served by one that begins after it. Never by the one that runs: it may have
 * looked before what its caller has just done.
 */
class Joined<Result> {
  /** Ends, in success or not, with the look that runs. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<Result>>();

  call(key: string, look: () => Promise<Result>): Promise<Result> {
    const running = this.#running.get(key);
    if (running === undefined) return this.#begin(key, look);
    const waiting = this.#next.get(key);
    if (waiting !== undefined) return waiting;
    const next = running.then(() => {
      this.#next.delete(key);
      return this.#begin(key, look);
    });
    this.#next.set(key, next);
    return next;
  }

  #begin(key: string, look: () => Promise<Result>): Promise<Result> {
    const looking = look();
    const running: Promise<void> = looking.then(
      () => this.#ended(key, running),
      () => this.#ended(key, running),
    );
    this.#running.set(key, running);
    return looking;
  }

  #ended(key: string, running: Promise<void>): void {
    if (this.#running.get(key) === running) this.#running.delete(key);
  }
}

/** What waits need of a backend, with shared looks. */
export class SharedLooks {
  readonly #backend: Backend;
  readonly #statuses = new Joined<QueueStatus[]>();
  readonly #tasks = new Joined<Task>();

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** As {@link Backend.statuses}. */
  statuses(selection: QueueSelection): Promise<QueueStatus[]> {
    return this.#statuses.call(JSON.stringify(selection), () => this.#backend.statuses(selection));
  }

  /** As {@link Backend.task}. */
  task(id: TaskId): Promise<Task> {
    return this.#tasks.call(id, () => this.#backend.task(id));
  }

  /** As {@link Backend.mark}. */
  mark: Backend["mark"] = (selection) => this.#backend.mark(selection);
  /** As {@link Backend.reached}. */
  reached: Backend["reached"] = (mark) => this.#backend.reached(mark);
  /** As {@link Backend.statistics}. */
  statistics: Backend["statistics"] = (queue) => this.#backend.statistics(queue);
  /** As {@link Backend.nextDue}. */
  nextDue: Backend["nextDue"] = (queue) => this.#backend.nextDue(queue);
  /** As {@link Backend.subscribe}. */
  subscribe: Backend["subscribe"] = (listener) => this.#backend.subscribe(listener);
}
