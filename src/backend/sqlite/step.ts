/** One write transaction: the queues it touches, their counters written once at its end, and the time it happens at. */

import type { Clock, Random } from "../../core/clock.ts";
import { assert, queueNotFound } from "../../core/errors.ts";
import type { QueueName } from "../../core/names.ts";
import { RowBatch } from "./row-batch.ts";
import type { Statements } from "./statements.ts";
import { TaskChanges } from "./task-changes.ts";
import type { TaskMemory } from "./task-memory.ts";

/** A queue's row, changed in memory during a step and written at its end. Columns as in schema/001.sql. */
export interface QueueRow {
  slot: number;
  readonly name: QueueName;
  readonly life: number;
  readonly createdAt: number;
  maxDeliveries: number;
  head: number;
  tail: number;
  pending: number;
  processing: number;
  ready: number;
  delayed: number;
  dead: number;
  enqueued: number;
  delivered: number;
  acked: number;
  returned: number;
  deadLettered: number;
  cleared: number;
  /** Whether the row was changed and must be written. */
  changed: boolean;
}

type QueueColumns = [
  number,
  string,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

/** Makes a row of what queueByName and queueBySlot return. */
export function queueRow(columns: unknown): QueueRow {
  const [
    slot,
    name,
    life,
    createdAt,
    maxDeliveries,
    head,
    tail,
    pending,
    processing,
    ready,
    delayed,
    dead,
    enqueued,
    delivered,
    acked,
    returned,
    deadLettered,
    cleared,
  ] = columns as QueueColumns;
  return {
    slot,
    name: name as QueueName,
    life,
    createdAt,
    maxDeliveries,
    head,
    tail,
    pending,
    processing,
    ready,
    delayed,
    dead,
    enqueued,
    delivered,
    acked,
    returned,
    deadLettered,
    cleared,
    changed: false,
  };
}

/** What all operations of one store share. */
export interface StoreContext {
  readonly sql: Statements;
  readonly clock: Clock;
  readonly random: Random;
  /** Part of the ids made here. */
  readonly storeId: string;
  readonly rememberMs: number;
  /** What this connection knows of tasks. */
  readonly tasks: TaskMemory;
}

/** One write transaction in the making. Operations first check, then write: an error after the first write undoes the whole transaction. */
export class Step {
  readonly context: StoreContext;
  readonly sql: Statements;
  /** The monotonic clock at the begin of the transaction, in milliseconds. */
  readonly nowMs: number;
  /** The wall clock at the begin of the transaction, in whole milliseconds. */
  readonly wallMs: number;
  /** Queues in which something changed, for the wake-up after the commit. */
  readonly changedQueues = new Set<QueueName>();
  /** The session of this process, once this transaction has made sure of it. */
  session: number | undefined;
  /** New rows of `message`, without chosen ids; parameters as of `insertPlainMessage`. */
  readonly newMessages: RowBatch;
  /** New rows of `place` of messages that are handed out for the first time; parameters as of `insertNewPlace`. */
  readonly newPlaces: RowBatch;
  #tasks: TaskChanges | undefined;
  readonly #bySlot = new Map<number, QueueRow>();
  readonly #byName = new Map<string, QueueRow>();

  constructor(context: StoreContext) {
    this.context = context;
    this.sql = context.sql;
    this.nowMs = context.clock.monotonicMs();
    this.wallMs = Math.floor(context.clock.wallMs());
    this.newMessages = new RowBatch(context.sql.insertPlainMessage, context.sql.insertMessages, 6);
    this.newPlaces = new RowBatch(context.sql.insertNewPlace, context.sql.insertNewPlaces, 7);
  }

  /** Stores the new rows. The writer sees to it before any operation that may look at them. */
  flush(): void {
    this.newMessages.flush();
    this.newPlaces.flush();
  }

  /** What changes of tasks. Made when first asked for, so that plain messages do not pay for it. */
  get tasks(): TaskChanges {
    this.#tasks ??= new TaskChanges(this.sql, this.context.tasks, this.wallMs);
    return this.#tasks;
  }

  /** Whether anything changed that somebody may wait for. */
  get changed(): boolean {
    return this.changedQueues.size > 0 || this.#tasks?.changed === true;
  }

  /** The row of a queue. @throws QueueFSError `queue-not-found` */
  queue(name: QueueName): QueueRow {
    const row = this.findQueue(name);
    if (row === undefined) throw queueNotFound(name);
    return row;
  }

  /** The row of a queue, if there is one. */
  findQueue(name: QueueName): QueueRow | undefined {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const columns = this.sql.queueByName.get(name);
    return columns === undefined ? undefined : this.#keep(queueRow(columns));
  }

  /** The row of the queue that has a slot, if there is one. */
  queueAtSlot(slot: number): QueueRow | undefined {
    const known = this.#bySlot.get(slot);
    if (known !== undefined) return known;
    const columns = this.sql.queueBySlot.get(slot);
    return columns === undefined ? undefined : this.#keep(queueRow(columns));
  }

  #keep(row: QueueRow): QueueRow {
    this.#byName.set(row.name, row);
    this.#bySlot.set(row.slot, row);
    return row;
  }

  /** Says that a row was changed. */
  touch(row: QueueRow): void {
    row.changed = true;
    this.changedQueues.add(row.name);
  }

  /** Writes what was changed of a row and forgets it: for operations that go on to change the queue by statement. */
  settle(row: QueueRow): void {
    this.#write(row);
    this.#byName.delete(row.name);
    this.#bySlot.delete(row.slot);
    this.changedQueues.add(row.name);
  }

  /** Says that the transaction was undone. */
  undo(): void {
    if (this.#tasks !== undefined) this.context.tasks.forget();
  }

  /** Writes all changed rows, for operations that go on to read them by statement. */
  save(): void {
    this.flush();
    for (const row of this.#bySlot.values()) this.#write(row);
    this.#tasks?.save();
  }

  /** Writes all changed rows and ends the tasks that have ended; the last thing before the commit. */
  finish(): void {
    this.save();
    this.#tasks?.finish();
  }

  #write(row: QueueRow): void {
    if (!row.changed) return;
    assert(
      row.pending >= row.ready + row.delayed && row.processing >= 0 && row.ready >= 0 && row.delayed >= 0 && row.dead >= 0,
      `counters of ${row.name}: pending ${row.pending}, ready ${row.ready}, delayed ${row.delayed}, processing ${row.processing}, dead ${row.dead}`,
    );
    this.sql.saveQueue.run(
      row.head,
      row.tail,
      row.pending,
      row.processing,
      row.ready,
      row.delayed,
      row.dead,
      row.enqueued,
      row.delivered,
      row.acked,
      row.returned,
      row.deadLettered,
      row.cleared,
      row.slot,
    );
    row.changed = false;
  }
}
