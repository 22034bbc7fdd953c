/** Reading a queue without changing it: pages of messages and dead letters, statistics, moments to wait for. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { TASK_LISTING_STEP_ITEMS } from "../../core/limits.ts";
import type { DeadLetter, ListedMessage, Message, Page, PageOptions, QueueSettings, Statistics } from "../../core/message.ts";
import { checkPage } from "../../core/request.ts";
import type { Task, TaskFailure } from "../../core/task.ts";
import { isListed, type TaskListRequest } from "../../core/task-request.ts";
import type { DeadRecord } from "./dead-letters.ts";
import { type Entry, PROCESSING } from "./entry.ts";
import type { QueueState } from "./queue-state.ts";
import type { TaskBook } from "./task-book.ts";
import type { Failure, TaskState } from "./task-state.ts";

/** Payload bytes after which a page ends: the copies of one page must fit into memory. */
const PAGE_BYTES = 8 * 1024 * 1024;

/** An unacked message as a caller sees it. */
export function toMessage(queue: QueueState, entry: Entry): Message {
  return {
    id: queue.idOf(entry),
    data: queue.resources.copies.copy(entry),
    enqueuedAtMs: entry.enqueuedAtMs,
    deliveryCount: entry.deliveryCount,
    ...(entry.owner === undefined ? {} : { task: entry.owner.task.id }),
  };
}

/** A page of unacked messages in queue order. @throws QueueFSError `invalid-argument` */
export function pageOfMessages(queue: QueueState, options: PageOptions | undefined): Page<ListedMessage> {
  return page<Entry, ListedMessage>(options, {
    visit: (place, visitor) => queue.visit(place, visitor),
    bytes: (entry) => entry.length,
    show: (entry) => ({ ...toMessage(queue, entry), state: entry.state === PROCESSING ? "processing" : "pending" }),
  });
}

/** A page of dead letters in the order they came. @throws QueueFSError `invalid-argument` */
export function pageOfDeadLetters(queue: QueueState, options: PageOptions | undefined): Page<DeadLetter> {
  return page<DeadRecord, DeadLetter>(options, {
    visit: (place, visitor) => queue.dead.visit(place, visitor),
    bytes: (record) => record.data.length,
    show: (record) => showDeadLetter(queue, record),
  });
}

/** A page of the dead letters of a task, over all queues. @throws QueueFSError `invalid-argument` */
export function pageOfFailures(task: TaskState, options: PageOptions | undefined): Page<TaskFailure> {
  return page<Failure, TaskFailure>(options, {
    visit: (place, visitor) => task.failures.visit(place, visitor),
    bytes: ({ record }) => record.data.length,
    show: ({ queue, record }) => ({ ...showDeadLetter(queue, record), queue: queue.name }),
  });
}

function showDeadLetter(queue: QueueState, record: DeadRecord): DeadLetter {
  const { id, data, enqueuedAtMs, deliveryCount, reason, diedAtMs, task } = record;
  const owner = task === undefined || task.removed ? {} : { task: task.id };
  return { id, data: queue.resources.copies.copyBytes(data, 0, data.length), enqueuedAtMs, deliveryCount, reason, diedAtMs, ...owner };
}

/** A page of tasks, newest first. Looks through a bounded number. @throws QueueFSError `invalid-argument` */
export function pageOfTasks(book: TaskBook, request: TaskListRequest): Page<Task> {
  const items: Task[] = [];
  let looked = 0;
  let last = request.after === undefined ? Number.POSITIVE_INFINITY : parseCursor(request.after);
  const isWhole = book.log.visitBack(last, (task) => {
    if (items.length === request.limit || looked === TASK_LISTING_STEP_ITEMS) return false;
    looked += 1;
    last = task.place;
    const { status, createdAtMs } = task;
    const { type, resource } = task.request;
    const listed = { type, status, createdAtMs, ...(resource === undefined ? {} : { resource }) };
    if (isListed(listed, request)) items.push(task.show());
    return true;
  });
  return isWhole ? { items } : { items, next: String(last) };
}

interface Listed<Source, Item> {
  visit(place: number, visitor: (source: Source) => boolean): void;
  bytes(source: Source): number;
  show(source: Source): Item;
}

/** A page after a cursor, which is the place of the last item of the page before. */
function page<Source extends { readonly place: number }, Item>(options: PageOptions | undefined, listed: Listed<Source, Item>): Page<Item> {
  const { after, limit } = checkPage(options);
  const items: Item[] = [];
  let bytes = 0;
  let last = after === undefined ? 0 : parseCursor(after);
  let next: string | undefined;
  listed.visit(last + 1, (source) => {
    bytes += listed.bytes(source);
    if (items.length === limit || (items.length > 0 && bytes > PAGE_BYTES)) {
      next = String(last);
      return false;
    }
    items.push(listed.show(source));
    last = source.place;
    return true;
  });
  return next === undefined ? { items } : { items, next };
}

function parseCursor(after: string): number {
  const place = /^(0|[1-9][0-9]{0,15})$/.test(after) ? Number(after) : Number.NaN;
  if (Number.isSafeInteger(place)) return place;
  throw new QueueFSError(
    "invalid-argument",
    `after ${quote(after)} is not the next of a page of this listing; pass what the page before gave`,
  );
}

/** Counts, ages and settings of a queue. Walks over what was handed out, not over the backlog. */
export function statisticsOf(queue: QueueState, nowMs: number, wallMs: number): Statistics {
  queue.mature(nowMs);
  let pendingSince: number | undefined;
  let processingSince: number | undefined;
  queue.visit(0, (entry) => {
    if (entry.state === PROCESSING) processingSince ??= entry.enqueuedAtMs;
    else pendingSince ??= entry.enqueuedAtMs;
    // All that is in processing has been passed, so the first of the backlog ends the search.
    const isPassed = entry.place < queue.backlog.firstPlace();
    return isPassed && (pendingSince === undefined || processingSince === undefined);
  });
  const settings: QueueSettings = queue.settings;
  return {
    ...queue.status,
    ...queue.counts,
    delayed: queue.delays.size,
    dead: queue.dead.size,
    ...(pendingSince === undefined ? {} : { oldestPendingMs: Math.max(0, wallMs - pendingSince) }),
    ...(processingSince === undefined ? {} : { oldestProcessingMs: Math.max(0, wallMs - processingSince) }),
    createdAtMs: queue.createdAtMs,
    settings,
  };
}

/** The place of a mark: all that was enqueued so far, in this life of the queue. */
export function markPlace(queue: QueueState): string {
  return `${queue.slot}.${queue.lastPlace}`;
}

/**
 * Whether all that was enqueued before a mark is settled, or `undefined` when the marked queue was removed since.
 *
 * @throws QueueFSError `invalid-argument` when the place is not one that {@link markPlace} gives
 */
export function isSettled(queue: QueueState, place: string): boolean | undefined {
  const match = /^([0-9]{1,16})\.([0-9]{1,16})$/.exec(place);
  if (match === null)
    throw new QueueFSError(
      "invalid-argument",
      `mark of queue ${quote(queue.name)} has the malformed place ${quote(place)}; pass a mark that this store gave`,
    );
  const slot = Number(match[1]);
  if (slot < queue.firstSlot || slot > queue.slot) return undefined;
  return slot < queue.slot || queue.firstUnackedPlace() > Number(match[2]);
}
