/** What one write transaction changes of tasks: counts added up in memory, written at its end, and then judged. */

import { assert, taskEnded, taskNotFound } from "../../core/errors.ts";
import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import type { TaskError, TerminalStatus } from "../../core/task.ts";
import { REMOVED_BY_CLEAR } from "../../core/task-request.ts";
import { SLOT_BOUND } from "./place.ts";
import type { Statements } from "./statements.ts";

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
interface Part {
  readonly task: number;
  readonly slot: number;
  unacked: number;
  done: number;
  failed: number;
  cancelled: number;
}

/** Whether a task takes more work. */
export function isOpen(task: TaskState): boolean {
  return task.status === null && !task.cancelling;
}

/** The tasks of one write transaction. */
export class TaskChanges {
  readonly #sql: Statements;
  readonly #wallMs: number;
  readonly #byNumber = new Map<number, TaskState>();
  readonly #byId = new Map<string, TaskState>();
  /** By task * SLOT_BOUND + slot, which is exact up to 2^36 tasks. */
  readonly #parts = new Map<number, Part>();
  /** Those that may have ended. */
  readonly #toJudge = new Set<number>();
  /** Those of which a dead letter was redriven, perhaps the last one. */
  readonly #revived = new Set<number>();
  /** Whether anything changed that somebody may wait for. */
  changed = false;

  constructor(sql: Statements, wallMs: number) {
    this.#sql = sql;
    this.#wallMs = wallMs;
  }

  /** The task of that id, if there is one. */
  find(id: TaskId): TaskState | undefined {
    return this.#byId.get(id) ?? this.#keep(this.#sql.taskById.get(id));
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
    return this.#byNumber.get(number) ?? this.#keep(this.#sql.taskByNumber.get(number));
  }

  #keep(columns: unknown): TaskState | undefined {
    if (columns === undefined) return undefined;
    const [number, id, status, sealed, started, cancelling, producerFailed] = columns as [
      number,
      TaskId,
      TerminalStatus | null,
      number,
      number,
      number,
      number,
    ];
    return this.add({
      number,
      id,
      status,
      sealed: sealed === 1,
      started: started === 1,
      cancelling: cancelling === 1,
      producerFailed: producerFailed === 1,
    });
  }

  /** Takes note of a task that is in the file. */
  add(task: TaskState): TaskState {
    this.#byNumber.set(task.number, task);
    this.#byId.set(task.id, task);
    return task;
  }

  /** Forgets a task whose record was removed. */
  remove(task: TaskState): void {
    this.#byNumber.delete(task.number);
    this.#byId.delete(task.id);
    this.changed = true;
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

  #part(task: number, slot: number): Part {
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
    this.save();
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
    for (const { task, slot, unacked, done, failed, cancelled } of this.#parts.values()) {
      const [left] = this.#sql.addToPart.get(task, slot, unacked, done, failed, cancelled, this.#wallMs) as [number];
      assert(left >= 0, `task ${task} has ${left} unacked messages in slot ${slot}`);
      if (left === 0) this.#toJudge.add(task);
    }
    this.#parts.clear();
  }

  /** Writes the counts, and judges one task at once, for operations that answer with it. */
  judge(task: TaskState): void {
    this.save();
    this.changed = true;
    this.#forgive(task.number);
    this.#judge(task.number);
  }

  /** Says that a task is to be judged at the end of the transaction. */
  judgeLater(task: TaskState): void {
    this.changed = true;
    this.#toJudge.add(task.number);
  }

  /** Writes the counts, and ends what has ended: after all operations, so that no half of one is judged. */
  finish(): void {
    this.save();
    for (const number of this.#revived) this.#forgive(number);
    for (const number of this.#toJudge) this.#judge(number);
  }

  /** Once no message of a task counts as failed, the failure of a message is no longer its error. */
  #forgive(number: number): void {
    if (!this.#revived.delete(number) || this.isCancelling(number)) return;
    const [, , failed] = this.#sql.sumOfParts.get(number) as [number, number, number];
    if (failed === 0) this.#sql.forgetError.run(number);
  }

  #judge(number: number): void {
    this.#toJudge.delete(number);
    const task = this.at(number);
    if (task === undefined || task.status !== null || !task.sealed) return;
    const [unacked, done, failed, cancelled] = this.#sql.sumOfParts.get(number) as [number, number, number, number];
    if (unacked > 0) return;
    assert(unacked === 0 && failed >= 0, `task ${task.id} counts unacked ${unacked}, failed ${failed}`);
    task.status = task.cancelling ? "cancelled" : failed > 0 || task.producerFailed ? "failed" : "completed";
    this.#sql.endTask.run(task.status, done, failed, cancelled, this.#wallMs, this.#wallMs, this.#wallMs, task.status, number);
    this.#sql.deleteParts.run(number);
  }
}
