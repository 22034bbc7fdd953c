/**
 * What a connection knows of the tasks that go on, from one transaction to the next: so that a message of a task costs little more than one
 * without.
 *
 * A row per task that every ack changes would write a page per ack, since the tasks of a batch lie apart. So changes of counters are
 * appended to `task_change`, many to a page, and added up here; when there are many, one transaction folds them into `task_part`. A counter
 * is what stands there and what was appended since. Every other change that concerns the treatment of messages is appended too, as a row
 * with slot 0, which no queue has: so what others did is learned by reading what they appended.
 */

import { assert } from "../../core/errors.ts";
import type { TaskId } from "../../core/names.ts";
import type { TerminalStatus } from "../../core/task.ts";
import type { Statements } from "./statements.ts";

/** Appended changes after which they are folded: some 40 milliseconds of work at most, once in so many acks. */
const MOST_CHANGES = 16_384;
/** Tasks, and counters of tasks, that are remembered at most; with more of them at work the memory begins anew. Some 10 MB. */
const MOST_REMEMBERED = 50_000;

/** What decides how a message of a task is treated. Columns as in schema/002.sql. */
export interface TaskState {
  readonly number: number;
  readonly id: TaskId;
  status: TerminalStatus | null;
  sealed: boolean;
  started: boolean;
  cancelling: boolean;
  producerFailed: boolean;
}

/** What is added to the counters of one task in one slot. */
export interface CountChange {
  readonly task: number;
  readonly slot: number;
  unacked: number;
  done: number;
  failed: number;
  cancelled: number;
}

/** The counters of one task, added up. */
export interface TaskSums {
  unacked: number;
  done: number;
  failed: number;
  cancelled: number;
  updatedAt: number;
}

/** What was appended for one task in one slot since the last fold. */
interface Appended extends TaskSums {
  readonly task: number;
  readonly slot: number;
  /** What `task_part` says of unacked ones, once somebody asked. */
  base: number | undefined;
  /** Whether anything was appended since the last fold. */
  changed: boolean;
  /** The same task in another slot. */
  readonly next: Appended | undefined;
}

type ChangeColumns = [
  number: number,
  task: number,
  slot: number,
  unacked: number,
  done: number,
  failed: number,
  cancelled: number,
  changedAt: number,
];

/** All functions run in a transaction, those that write in a writing one, and after {@link TaskMemory.sync}. */
export class TaskMemory {
  readonly #byNumber = new Map<number, TaskState>();
  readonly #byId = new Map<string, TaskState>();
  readonly #appended = new Map<number, Appended>();
  /** Those of them that the next fold concerns. */
  #changed: Appended[] = [];
  /** The last change that was folded, and the last one that is known here. -1: nothing is known. */
  #folded = -1;
  #seen = -1;

  /** Takes in what others did: first of all in each transaction. */
  sync(sql: Statements): void {
    const [folded] = sql.setting.get("folded") as [number];
    if (folded !== this.#folded) this.#begin(folded);
    for (const [number, task, slot, unacked, done, failed, cancelled, at] of sql.changesAfter.all(this.#seen) as ChangeColumns[]) {
      if (slot === 0) this.#forgetState(task);
      else this.#add({ task, slot, unacked, done, failed, cancelled }, at);
      this.#seen = number;
    }
  }

  #begin(folded: number): void {
    this.#byNumber.clear();
    this.#byId.clear();
    this.#appended.clear();
    this.#changed = [];
    this.#folded = folded;
    this.#seen = folded;
  }

  /** Says that a transaction was undone, and with it what it appended. */
  forget(): void {
    this.#folded = -1;
  }

  #forgetState(number: number): void {
    const state = this.#byNumber.get(number);
    if (state === undefined) return;
    this.#byNumber.delete(number);
    this.#byId.delete(state.id);
  }

  /** The task of that id, if there is one. */
  stateOf(sql: Statements, id: TaskId): TaskState | undefined {
    return this.#byId.get(id) ?? this.#read(sql.taskById.get(id));
  }

  /** The task of that number; there is none when its record was removed. */
  stateAt(sql: Statements, number: number): TaskState | undefined {
    return this.#byNumber.get(number) ?? this.#read(sql.taskByNumber.get(number));
  }

  #read(columns: unknown): TaskState | undefined {
    if (columns === undefined) return undefined;
    const [number, id, status, ...flags] = columns as [number, TaskId, TerminalStatus | null, number, number, number, number];
    const [sealed, started, cancelling, producerFailed] = flags.map((flag) => flag === 1) as [boolean, boolean, boolean, boolean];
    const state = { number, id, status, sealed, started, cancelling, producerFailed };
    if (this.#byNumber.size >= MOST_REMEMBERED) {
      this.#byNumber.clear();
      this.#byId.clear();
    }
    this.#byNumber.set(number, state);
    this.#byId.set(id, state);
    return state;
  }

  /** Appends that a task was changed otherwise than in its counters. The caller has written that, and changed the state it holds. */
  appendState(sql: Statements, task: number, atMs: number): void {
    this.#seen += 1;
    sql.insertChange.run(this.#seen, task, 0, 0, 0, 0, 0, atMs);
  }

  /** Forgets a task that has ended or was removed. What was appended for it is left out of the next fold. */
  end(sql: Statements, task: number): void {
    sql.deleteParts.run(task);
    this.#appended.delete(task);
    this.#forgetState(task);
  }

  #add(change: CountChange, atMs: number): Appended {
    const first = this.#appended.get(change.task);
    let counts = first;
    while (counts !== undefined && counts.slot !== change.slot) counts = counts.next;
    if (counts === undefined) {
      const { task, slot } = change;
      counts = { task, slot, unacked: 0, done: 0, failed: 0, cancelled: 0, updatedAt: 0, base: undefined, changed: false, next: first };
      this.#appended.set(task, counts);
    }
    if (!counts.changed) {
      counts.changed = true;
      this.#changed.push(counts);
    }
    counts.unacked += change.unacked;
    counts.done += change.done;
    counts.failed += change.failed;
    counts.cancelled += change.cancelled;
    counts.updatedAt = Math.max(counts.updatedAt, atMs);
    return counts;
  }

  /** Appends a change of counters. @returns how many messages of the task are unacked in that slot */
  append(sql: Statements, change: CountChange, atMs: number): number {
    const { task, slot, unacked, done, failed, cancelled } = change;
    this.#seen += 1;
    sql.insertChange.run(this.#seen, task, slot, unacked, done, failed, cancelled, atMs);
    const counts = this.#add(change, atMs);
    counts.base ??= ((sql.unackedPart.get(task, slot) as [number] | undefined) ?? [0])[0];
    const left = counts.base + counts.unacked;
    assert(left >= 0, `task ${task} counts ${left} unacked messages in slot ${slot}`);
    return left;
  }

  /** The counters of a task that goes on, over all slots. */
  sums(sql: Statements, task: number): TaskSums {
    const [unacked, done, failed, cancelled, updatedAt] = sql.sumOfParts.get(task) as [number, number, number, number, number];
    const sums = { unacked, done, failed, cancelled, updatedAt };
    for (let counts = this.#appended.get(task); counts !== undefined; counts = counts.next) {
      sums.unacked += counts.unacked;
      sums.done += counts.done;
      sums.failed += counts.failed;
      sums.cancelled += counts.cancelled;
      sums.updatedAt = Math.max(sums.updatedAt, counts.updatedAt);
    }
    return sums;
  }

  /** Whether so much was appended that it should be folded. */
  get isFoldDue(): boolean {
    return this.#seen - this.#folded >= MOST_CHANGES;
  }

  /** Moves all that was appended into `task_part`, in the order of its keys. */
  fold(sql: Statements): void {
    if (this.#seen === this.#folded) return;
    this.#changed.sort((left, right) => left.task - right.task || left.slot - right.slot);
    for (const counts of this.#changed) {
      const { task, slot, unacked, done, failed, cancelled, updatedAt } = counts;
      // Nothing is added when the task has ended.
      sql.addToPart.run(slot, unacked, done, failed, cancelled, updatedAt, task);
      if (counts.base !== undefined) counts.base += unacked;
      counts.unacked = 0;
      counts.done = 0;
      counts.failed = 0;
      counts.cancelled = 0;
      counts.changed = false;
    }
    sql.deleteChanges.run();
    sql.saveSetting.run("folded", this.#seen);
    this.#changed = [];
    this.#folded = this.#seen;
    if (this.#appended.size > MOST_REMEMBERED) this.#begin(this.#folded);
  }
}
