/** The state of one task, and the counting of its messages. */

import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import { isTerminal, type Task, type TaskError, type TaskStatus, type TerminalStatus } from "../../core/task.ts";
import { jsonValue, PRODUCER_GONE, REMOVED_BY_CLEAR, type TaskRequest } from "../../core/task-request.ts";
import type { DeadRecord } from "./dead-letters.ts";
import { OrderedLog, type Placed } from "./ordered-log.ts";
import type { QueueState } from "./queue-state.ts";

/** A dead letter of a task, in the order they came over all queues. */
export interface Failure extends Placed {
  readonly queue: QueueState;
  readonly record: DeadRecord;
}

/** Who adds messages to a task. */
export interface Producer {
  readonly token: string;
  untilMs: number;
}

/** One task. Its counts change together with its messages; {@link TaskBook} judges afterwards whether it has ended. */
export class TaskState implements Placed {
  /** Its number, by which tasks are listed. */
  readonly place: number;
  removed = false;
  /** Whether it was changed in the present step. Belongs to the book. */
  isTouched = false;
  readonly id: TaskId;
  readonly request: TaskRequest;
  readonly createdAtMs: number;
  updatedAtMs: number;
  stage: string | undefined;
  /** JSON text. */
  meta: string | undefined;
  /** JSON text. */
  result: string | undefined;
  error: TaskError | undefined = undefined;
  producer: Producer | undefined;
  producerFailed = false;
  sealed: boolean;
  started = false;
  cancelling = false;
  ended: { readonly status: TerminalStatus; readonly atMs: number } | undefined = undefined;
  total = 0;
  done = 0;
  failed = 0;
  cancelled = 0;
  #failures: OrderedLog<Failure> | undefined = undefined;
  #lastFailure = 0;
  /** Where the search for pending messages goes on, by queue, while it is cancelling. */
  searched: Map<QueueState, number> | undefined = undefined;

  constructor(place: number, id: TaskId, request: TaskRequest, producer: Producer | undefined, wallMs: number) {
    this.place = place;
    this.id = id;
    this.request = request;
    this.producer = producer;
    this.sealed = producer === undefined;
    this.stage = request.stage;
    this.meta = request.meta;
    this.createdAtMs = wallMs;
    this.updatedAtMs = wallMs;
  }

  /** Its dead letters. Most tasks have none, ever. */
  get failures(): OrderedLog<Failure> {
    this.#failures ??= new OrderedLog();
    return this.#failures;
  }

  /** Pending or in processing. */
  get unacked(): number {
    return this.total - this.done - this.failed - this.cancelled;
  }

  /** Where it is. */
  get status(): TaskStatus {
    if (this.ended !== undefined) return this.ended.status;
    if (this.cancelling) return "cancelling";
    return this.started && this.unacked > 0 ? "running" : "pending";
  }

  /** Whether it takes more work. */
  get isOpen(): boolean {
    return this.ended === undefined && !this.cancelling;
  }

  /** Counts a message that was given up on, or removed without being done. */
  fail(error: TaskError): void {
    this.failed += 1;
    this.error ??= error;
  }

  /** Counts messages that were removed with or from their queue. */
  failAll(queue: QueueName, count: number): void {
    this.failed += count;
    this.error ??= { reason: REMOVED_BY_CLEAR, queue };
  }

  /** Takes note of a dead letter. */
  bury(queue: QueueState, record: DeadRecord): void {
    this.#lastFailure += 1;
    const failure: Failure = { place: this.#lastFailure, removed: false, queue, record };
    this.failures.push(failure);
    record.failure = failure;
    this.fail({ reason: record.reason, queue: queue.name, message: record.id as MessageId });
  }

  /** Counts a dead letter that became pending again. */
  revive(): void {
    this.failed -= 1;
    if (this.failed === 0 && !this.producerFailed) this.error = undefined;
  }

  /** Seals it. @param reason that its producer failed, and why */
  seal(reason: string | undefined): void {
    this.sealed = true;
    this.producer = undefined;
    if (reason === undefined) return;
    this.producerFailed = true;
    this.error ??= { reason };
  }

  /** Seals it for a producer that is gone. */
  orphan(): void {
    this.seal(PRODUCER_GONE);
  }

  /** What it would end as now, or `undefined` while it goes on. */
  verdict(): TerminalStatus | undefined {
    if (this.ended !== undefined || !this.sealed || this.unacked > 0) return undefined;
    if (this.cancelling) return "cancelled";
    return this.failed > 0 || this.producerFailed ? "failed" : "completed";
  }

  /** It as a caller sees it. */
  show(): Task {
    const { id, status, stage, meta, result, error, sealed, createdAtMs, updatedAtMs, ended, request } = this;
    const { total, done, failed, cancelled, unacked } = this;
    return {
      id,
      type: request.type,
      ...(request.resource === undefined ? {} : { resource: request.resource }),
      status,
      ...(stage === undefined ? {} : { stage }),
      progress: { total, done, failed, cancelled, unacked },
      sealed,
      ...(meta === undefined ? {} : { meta: jsonValue(meta) }),
      ...(result === undefined ? {} : { result: jsonValue(result) }),
      ...(error === undefined ? {} : { error }),
      ...(request.retryOf === undefined ? {} : { retryOf: request.retryOf }),
      createdAtMs,
      updatedAtMs,
      ...(ended === undefined ? {} : { finishedAtMs: ended.atMs }),
    };
  }

  /** Until when its record is kept, by the wall clock in milliseconds; for ever while it goes on. */
  get keptUntilMs(): number {
    return this.ended === undefined ? Number.POSITIVE_INFINITY : this.ended.atMs + this.request.keepMs[this.ended.status];
  }

  /** Whether it has ended. */
  get isEnded(): boolean {
    return isTerminal(this.status);
  }
}
