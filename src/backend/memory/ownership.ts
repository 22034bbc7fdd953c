/** Which tasks own the unacked messages of one queue, and how many each. */

import type { TaskState } from "./task-state.ts";

/** One task in one queue. */
export class Ownership {
  readonly task: TaskState;
  /** Stands for the task in the records of packed messages. */
  readonly index: number;
  /** Unacked messages. */
  count = 0;

  constructor(task: TaskState, index: number) {
    this.task = task;
    this.index = index;
  }
}

/**
 * All of one queue. Entries refer to them, so that counting a message looks nothing up. One that counts nothing is gone, and its index is used
 * again.
 */
export class Ownerships {
  readonly #byTask = new Map<TaskState, Ownership>();
  readonly #byIndex: (Ownership | undefined)[] = [];
  readonly #free: number[] = [];
  /** Neighbouring messages often belong to the same task. */
  #last: Ownership | undefined = undefined;

  /** How many tasks have messages here. */
  get size(): number {
    return this.#byTask.size;
  }

  /** Whether a task has messages here. */
  has(task: TaskState): boolean {
    return this.#byTask.has(task);
  }

  /** How many messages a task has here. */
  count(task: TaskState): number {
    return this.#byTask.get(task)?.count ?? 0;
  }

  /** The ownership of a record. */
  at(index: number): Ownership {
    return this.#byIndex[index] as Ownership;
  }

  /** Counts a message that is a task's from now on. */
  add(task: TaskState): Ownership {
    const ownership = this.#last?.task === task ? this.#last : this.#of(task);
    ownership.count += 1;
    return ownership;
  }

  #of(task: TaskState): Ownership {
    let ownership = this.#byTask.get(task);
    if (ownership === undefined) {
      ownership = new Ownership(task, this.#free.pop() ?? this.#byIndex.length);
      this.#byTask.set(task, ownership);
      this.#byIndex[ownership.index] = ownership;
    }
    this.#last = ownership;
    return ownership;
  }

  /** Counts a message that is its task's no more. */
  remove(ownership: Ownership): void {
    ownership.count -= 1;
    if (ownership.count > 0) return;
    this.#byTask.delete(ownership.task);
    this.#byIndex[ownership.index] = undefined;
    this.#free.push(ownership.index);
    if (this.#last === ownership) this.#last = undefined;
  }

  /** All of them. */
  [Symbol.iterator](): IterableIterator<Ownership> {
    return this.#byTask.values();
  }

  /** Forgets all of them. */
  clear(): void {
    this.#byTask.clear();
    this.#byIndex.length = 0;
    this.#free.length = 0;
    this.#last = undefined;
  }
}
