/** What one write transaction changes of tasks: counts added up in memory, written at its end, and then judged. */

import { assert, taskEnded, taskNotFound } from "../../core/errors.ts";
import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import type { TaskError } from "../../core/task.ts";
import { REMOVED_BY_CLEAR } from "../../core/task-request.ts";
import { SLOT_BOUND } from "./place.ts";
import type { Statements } from "./statements.ts";
import type { CountChange, TaskMemory, TaskState } from "./task-memory.ts";

/** Whether a task takes more work. */
export function isOpen(task: TaskState): boolean {
  return task.status === null && !task.cancelling;
}

/** The tasks of one write transaction. */
export class TaskChanges {
  readonly #sql: Statements;
  readonly #memory: TaskMemory;
  readonly #wallMs: number;
  /** By task * SLOT_BOUND + slot, which is exact up to 2^36 tasks. */
  readonly #parts = new Map<number, CountChange>();
  /** Those that may have ended. */
  readonly #toJudge = new Set<number>();
  /** Those of which a dead letter was redriven, perhaps the last one. */
  readonly #revived = new Set<number>();
  /** Whether anything changed that somebody may wait for. */
  changed = false;

  constructor(sql: Statements, memory: TaskMemory, wallMs: number) {
    this.#sql = sql;
    this.#memory = memory;
    this.#wallMs = wallMs;
    memory.sync(sql);
  }

  /** The task of that id, if there is one. */
  find(id: TaskId): TaskState | undefined {
    return this.#memory.stateOf(this.#sql, id);
  }

  /** The task of that id. @throws QueueFSError `task-not-found` */
  get(id: TaskId): TaskState {
    const task = this.find(id);
    if (task === undefined) throw taskNotFound(id);
    return task;
  }

  /** The task of that id, which must take more work. @throws QueueFSError `task-not-found`, `task-ended` */
  open(id: TaskId): TaskState {
    const task = this.get(id);
    if (!isOpen(task)) throw taskEnded(id, task.status ?? "cancelling");
    return task;
  }

  /** The task of that number; there is none when its record was removed. */
  at(number: number): TaskState | undefined {
    return this.#memory.stateAt(this.#sql, number);
  }

  /** Whether messages of that task are no longer handed out. */
  isCancelling(number: number): boolean {
    return this.at(number)?.cancelling === true;
  }

  /** Takes note that a message of it is handed out. */
  start(number: number): TaskId | undefined {
    const task = this.at(number);
    if (task === undefined) return undefined;
    if (!task.started) {
      task.started = true;
      this.#sql.startTask.run(this.#wallMs, number);
      this.changed = true;
    }
    return task.id;
  }

  #part(task: number, slot: number): CountChange {
    this.changed = true;
    const key = task * SLOT_BOUND + slot;
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    const part = { task, slot, unacked: 0, done: 0, failed: 0, cancelled: 0 };
    this.#parts.set(key, part);
    return part;
  }

  /** Counts a message that was stored. */
  stored(task: number, slot: number): void {
    this.#part(task, slot).unacked += 1;
  }

  /** Counts an unacked message that was acked, or removed because its task is cancelled. */
  settled(task: number, slot: number, end: "done" | "cancelled"): void {
    const part = this.#part(task, slot);
    part.unacked -= 1;
    part[end] += 1;
  }

  /** Counts an unacked message that was given up on. */
  failed(task: number, slot: number, error: TaskError & { readonly queue: QueueName; readonly message: MessageId }): void {
    const part = this.#part(task, slot);
    part.unacked -= 1;
    part.failed += 1;
    this.keepError(task, error);
  }

  /** Counts a dead letter that is pending again. */
  revived(task: number, slot: number): void {
    const part = this.#part(task, slot);
    part.unacked += 1;
    part.failed -= 1;
    this.#revived.add(task);
  }

  /** Counts all unacked messages of a slot as failed: they were removed with or from their queue. */
  cleared(slot: number, queue: QueueName): void {
    this.fold();
    for (const [task, unacked] of this.#sql.partsOfSlot.all(slot) as [number, number][]) {
      const part = this.#part(task, slot);
      part.unacked -= unacked;
      part.failed += unacked;
      this.keepError(task, { reason: REMOVED_BY_CLEAR, queue });
    }
  }

  /** Keeps the first failure. */
  keepError(task: number, error: TaskError): void {
    this.#sql.keepError.run(error.reason, error.queue ?? null, error.message ?? null, task);
    this.changed = true;
  }

  /** Writes the counts, for operations that go on to look at them. */
  save(): void {
    for (const part of this.#parts.values()) {
      if (this.#memory.append(this.#sql, part, this.#wallMs) === 0) this.#toJudge.add(part.task);
    }
    this.#parts.clear();
  }

  /** Writes the counts so that statements find them all in `task_part`. */
  fold(): void {
    this.save();
    this.#memory.fold(this.#sql);
  }

  /** Writes the counts, and judges one task at once, for operations that answer with it. */
  judge(task: TaskState): void {
    this.save();
    this.changed = true;
    this.#forgive(task.number);
    this.#judge(task.number);
  }

  /** Says that a task was changed otherwise than in its counters, which may be what ends it. */
  altered(task: TaskState): void {
    this.changed = true;
    this.#toJudge.add(task.number);
    this.#memory.appendState(this.#sql, task.number, this.#wallMs);
  }

  /** Says that the record of a task was removed. */
  removed(task: TaskState): void {
    this.changed = true;
    this.#memory.appendState(this.#sql, task.number, this.#wallMs);
    this.#memory.end(this.#sql, task.number);
  }

  /** Writes the counts, and ends what has ended: after all operations, so that no half of one is judged. */
  finish(): void {
    this.save();
    for (const number of this.#revived) this.#forgive(number);
    for (const number of this.#toJudge) this.#judge(number);
    if (this.#memory.isFoldDue) this.#memory.fold(this.#sql);
  }

  /** Once no message of a task counts as failed, the failure of a message is no longer its error. */
  #forgive(number: number): void {
    if (!this.#revived.delete(number) || this.isCancelling(number)) return;
    if (this.#memory.sums(this.#sql, number).failed === 0) this.#sql.forgetError.run(number);
  }

  #judge(number: number): void {
    this.#toJudge.delete(number);
    const task = this.at(number);
    if (task === undefined || task.status !== null || !task.sealed) return;
    const { unacked, done, failed, cancelled } = this.#memory.sums(this.#sql, number);
    if (unacked > 0) return;
    assert(unacked === 0 && failed >= 0, `task ${task.id} counts unacked ${unacked}, failed ${failed}`);
    task.status = task.cancelling ? "cancelled" : failed > 0 || task.producerFailed ? "failed" : "completed";
    this.#sql.endTask.run(task.status, done, failed, cancelled, this.#wallMs, this.#wallMs, this.#wallMs, task.status, number);
    this.#memory.appendState(this.#sql, number, this.#wallMs);
    this.#memory.end(this.#sql, number);
  }
}
