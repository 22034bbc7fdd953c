/** Reading without changing: each function is one statement, or runs in one read transaction, and so sees one moment. */

import { QueueFSError, queueNotFound, quote } from "../../core/errors.ts";
import type {
  ListedMessage,
  Mark,
  MarkAnswer,
  Message,
  Page,
  PageOptions,
  QueueSelection,
  QueueStatus,
  Statistics,
  Status,
} from "../../core/message.ts";
import type { QueueName, TaskId } from "../../core/names.ts";
import { checkPage } from "../../core/request.ts";
import { numberCursor, pageOf } from "./page.ts";
import { idOf, PROCESSING } from "./place.ts";
import { type QueueRow, queueRow, type StoreContext } from "./step.ts";

/** The row of a queue. @throws QueueFSError `queue-not-found` */
export function findRow({ sql }: StoreContext, name: QueueName): QueueRow {
  const columns = sql.queueByName.get(name);
  if (columns === undefined) throw queueNotFound(name);
  return queueRow(columns);
}

/** Both numbers of one queue, from one row. */
export function readStatus({ sql }: StoreContext, name: QueueName): Status {
  const row = sql.statusByName.get(name) as [number, number] | undefined;
  if (row === undefined) throw queueNotFound(name);
  return { pending: row[0], processing: row[1] };
}

/** Both numbers of several queues. */
export function readStatuses(context: StoreContext, selection: QueueSelection): QueueStatus[] {
  if ("queues" in selection) return selection.queues.map((queue) => ({ queue, ...readStatus(context, queue) }));
  const rows =
    selection.under === "" ? context.sql.allQueues.all() : context.sql.queuesWithin.all(selection.under, selection.under, selection.under);
  return (rows as [number, QueueName, number, number][]).map(([, queue, pending, processing]) => ({ queue, pending, processing }));
}

/** This moment of several queues. A place is life, slot and last sequence. */
export function readMark(context: StoreContext, selection: QueueSelection): Mark {
  const names = "queues" in selection ? selection.queues : readStatuses(context, selection).map(({ queue }) => queue);
  return {
    queues: names.map((queue) => {
      const { life, slot, tail } = findRow(context, queue);
      return { queue, place: `${life}.${slot}.${tail}` };
    }),
  };
}

/** Whether all that was enqueued before the mark is settled. */
export function readReached(context: StoreContext, mark: Mark): MarkAnswer {
  let reached = true;
  const statuses = mark.queues.map(({ queue, place }) => {
    const numbers = /^(\d+)\.(\d+)\.(\d+)$/.exec(place)?.slice(1).map(Number);
    if (numbers === undefined) throw new QueueFSError("invalid-argument", `a mark must come from this store, got ${quote(place)}`);
    const row = findRow(context, queue);
    if (row.life !== numbers[0]) throw queueNotFound(queue);
    const [first] = context.sql.firstSequence.get(row.slot, row.slot) as [number | null];
    // Another slot: the queue was cleared since, and with it all that was there.
    if (row.slot === numbers[1] && first !== null && first <= (numbers[2] as number)) reached = false;
    return { queue, pending: row.pending, processing: row.processing };
  });
  return { reached, statuses };
}

/** The message that a dequeue would take now. */
export function readPeek(context: StoreContext, name: QueueName): Message | undefined {
  const queue = findRow(context, name);
  const { sql } = context;
  const sequences: number[] = [];
  if (queue.processing + queue.delayed > 0) {
    const [due] = sql.peekDue.get(queue.slot, context.clock.monotonicMs(), queue.maxDeliveries, queue.maxDeliveries) as [number | null];
    if (due !== null) sequences.push(due);
  }
  for (const [ready] of sql.peekReady.all(queue.slot, queue.slot) as [number][]) sequences.push(ready);
  for (const [untouched] of sql.peekUntouched.all(queue.slot, queue.head, queue.slot) as [number][]) sequences.push(untouched);
  if (sequences.length === 0) return undefined;
  const sequence = Math.min(...sequences);
  const row = sql.messageAt.get(queue.slot, sequence) as [number, string | null, Buffer, number | null] | undefined;
  if (row === undefined)
    throw new QueueFSError(
      "store-corrupt",
      `queue ${quote(name)}: the record of its first message is missing; a dequeue moves it to the dead letters`,
    );
  const [count] = (sql.deliveryCountAt.get(queue.slot, sequence) ?? [0]) as [number];
  const [task] = (row[3] === null ? [] : (sql.taskIdByNumber.get(row[3]) ?? [])) as [TaskId?];
  return {
    id: idOf({ context }, queue.slot, sequence, row[1]),
    data: row[2],
    enqueuedAtMs: row[0],
    deliveryCount: count,
    ...(task === undefined ? {} : { task }),
  };
}

/** How long until time alone makes something available, in milliseconds. */
export function readNextDue(context: StoreContext, name: QueueName): number | undefined {
  const queue = findRow(context, name);
  if (queue.pending > queue.delayed) return 0;
  if (queue.processing + queue.delayed === 0) return undefined;
  const row = context.sql.firstDue.get(queue.slot) as [number] | undefined;
  return row === undefined ? undefined : Math.max(0, row[0] - context.clock.monotonicMs());
}

type ListedColumns = [
  sequence: number,
  enqueuedAt: number,
  id: string | null,
  data: Buffer,
  state: number,
  deliveryCount: number,
  task: TaskId | null,
];

/** One page of the unacked messages of a queue. */
export function readMessages(context: StoreContext, name: QueueName, options: PageOptions | undefined): Page<ListedMessage> {
  const { after, limit } = checkPage(options);
  const start = numberCursor(after);
  const queue = findRow(context, name);
  const rows = context.sql.messagesPage.iterate(queue.slot, start, queue.slot, limit + 1) as IterableIterator<ListedColumns>;
  return pageOf(rows, limit, ([sequence, enqueuedAtMs, id, data, state, deliveryCount, task]) => ({
    cursor: String(sequence),
    bytes: data.byteLength,
    item: {
      id: idOf({ context }, queue.slot, sequence, id),
      data,
      enqueuedAtMs,
      deliveryCount,
      ...(task === null ? {} : { task }),
      state: state === PROCESSING ? "processing" : "pending",
    },
  }));
}

/** Counts, ages and settings of a queue. */
export function readStatistics(context: StoreContext, name: QueueName): Statistics {
  const queue = findRow(context, name);
  const { sql, clock } = context;
  const wallMs = clock.wallMs();
  const age = (row: unknown): number | undefined =>
    row === undefined ? undefined : Math.max(0, Math.floor(wallMs - (row as [number])[0]));
  const oldestPendingMs = queue.pending > 0 ? age(sql.oldestPending.get(queue.slot, queue.slot)) : undefined;
  const oldestProcessingMs = queue.processing > 0 ? age(sql.oldestProcessing.get(queue.slot, queue.slot)) : undefined;
  const [delayed] = queue.delayed > 0 ? (sql.waitingDelays.get(queue.slot, clock.monotonicMs()) as [number]) : [0];
  return {
    pending: queue.pending,
    processing: queue.processing,
    delayed,
    dead: queue.dead,
    enqueued: queue.enqueued,
    delivered: queue.delivered,
    acked: queue.acked,
    returned: queue.returned,
    deadLettered: queue.deadLettered,
    cleared: queue.cleared,
    ...(oldestPendingMs === undefined ? {} : { oldestPendingMs }),
    ...(oldestProcessingMs === undefined ? {} : { oldestProcessingMs }),
    createdAtMs: queue.createdAt,
    settings: { maxDeliveries: queue.maxDeliveries },
  };
}
