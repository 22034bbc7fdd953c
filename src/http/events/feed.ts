/** What readers of one selection are told. All readers of a selection share one feed, so that each look at the store is made once. */

import type { Backend } from "../../backend/contract.ts";
import { isQueueFSError, QueueFSError, quote } from "../../core/errors.ts";
import type { QueueStatus } from "../../core/message.ts";
import type { QueueName, TaskId } from "../../core/names.ts";
import { taskToWire } from "../../core/wire.ts";
import type { Caller } from "../auth.ts";
import type { Change, Journal } from "./journal.ts";

/** One event, without its id. */
export interface FeedEvent {
  readonly event: "change" | "snapshot" | "status" | "task" | "removed";
  readonly data: unknown;
}

/** What readers of one selection are told. */
export interface Feed {
  /** Whether a change may be one of its selection. */
  concerns(change: Change): boolean;
  /** Looks again, after the change of this number. @throws QueueFSError when the store cannot be read */
  look(number: number): Promise<void>;
  /** What a reader hears who knows nothing. */
  whole(): readonly FeedEvent[];
  /** What a reader hears who knows all up to the change of a number, which the journal knows. */
  since(number: number): readonly FeedEvent[];
}

/** Queues of one selection: each look reads all of them, in one snapshot, and each reader may get all of them at once. */
export const MAX_QUEUES_OF_FEED = 10_000;

/** Hints: which queues changed, of those that a caller may know of. */
export class HintFeed implements Feed {
  readonly #journal: Journal;
  readonly #caller: Caller;

  constructor(journal: Journal, caller: Caller) {
    this.#journal = journal;
    this.#caller = caller;
  }

  concerns(): boolean {
    return false;
  }

  async look(): Promise<void> {}

  whole(): readonly FeedEvent[] {
    return [{ event: "change", data: { queues: null, tasks: true } }];
  }

  since(number: number): readonly FeedEvent[] {
    const { queues, tasks } = this.#journal.since(number);
    const heard = queues === undefined ? null : [...queues].filter((queue) => this.#caller.isFor(queue));
    if (heard?.length === 0 && !tasks) return [];
    return [{ event: "change", data: { queues: heard, ...(tasks ? { tasks } : {}) } }];
  }
}

interface Seen {
  readonly status: QueueStatus;
  /** The number of the change after which it was seen first like this; 0 for what the first look found, of which nobody knows since when. */
  readonly number: number;
}

/**
 * Statuses of a queue, or of all at and under a path. Each look is one snapshot of the whole selection, and what differs from the one before
 * is told: so what a reader has heard is, after every event, one snapshot, by which it may judge whether all is complete.
 */
export class StatusFeed implements Feed {
  readonly #backend: Pick<Backend, "statuses">;
  readonly #journal: Journal;
  readonly #path: QueueName | "";
  readonly #isSubtree: boolean;
  readonly #seen = new Map<QueueName, Seen>();
  /** Queues that are gone, with the change after which that was seen. */
  readonly #removed = new Map<QueueName, number>();
  #first: number | undefined;

  /** @param isSubtree whether all at and under the path are told of, and not the queue alone */
  constructor(backend: Pick<Backend, "statuses">, journal: Journal, path: QueueName | "", isSubtree: boolean) {
    this.#backend = backend;
    this.#journal = journal;
    this.#path = path;
    this.#isSubtree = isSubtree;
  }

  concerns({ queues }: Change): boolean {
    if (queues === undefined || this.#path === "") return true;
    if (queues.has(this.#path)) return true;
    // An empty change may be one that a slow look is made for.
    return queues.size === 0 || (this.#isSubtree && [...queues].some((queue) => queue.startsWith(`${this.#path}/`)));
  }

  async look(number: number): Promise<void> {
    const statuses = await this.#read();
    if (statuses.length > MAX_QUEUES_OF_FEED)
      throw new QueueFSError(
        "invalid-argument",
        `there are ${statuses.length} queues under ${quote(this.#path)}; the limit of one stream is ${MAX_QUEUES_OF_FEED}, so ask for a part of them`,
      );
    const isFirst = this.#first === undefined;
    this.#first ??= number;
    const gone = new Set(this.#seen.keys());
    for (const status of statuses) {
      const { queue, pending, processing } = status;
      gone.delete(queue);
      this.#removed.delete(queue);
      const before = this.#seen.get(queue)?.status;
      if (before?.pending !== pending || before.processing !== processing) this.#seen.set(queue, { status, number: isFirst ? 0 : number });
    }
    for (const queue of gone) {
      this.#seen.delete(queue);
      this.#removed.set(queue, number);
    }
    for (const [queue, at] of this.#removed) if (!this.#journal.knows(at)) this.#removed.delete(queue);
  }

  async #read(): Promise<readonly QueueStatus[]> {
    if (this.#isSubtree) return this.#backend.statuses({ under: this.#path });
    try {
      return await this.#backend.statuses({ queues: [this.#path as QueueName] });
    } catch (error) {
      // A stream begins only for a queue that is there; one that was removed is told of.
      if (this.#first !== undefined && isQueueFSError(error, "queue-not-found")) return [];
      throw error;
    }
  }

  whole(): readonly FeedEvent[] {
    return [{ event: "snapshot", data: { statuses: [...this.#seen.values()].map(({ status }) => status) } }];
  }

  since(number: number): readonly FeedEvent[] {
    // It began to look only later: whatever changed before that is told anew.
    const changed = number < (this.#first ?? 0) ? this.#journal.since(number).queues : new Set<QueueName>();
    if (changed === undefined) return this.whole();
    const statuses: QueueStatus[] = [];
    for (const [queue, seen] of this.#seen) if (seen.number > number || changed.has(queue)) statuses.push(seen.status);
    const removed = [...this.#removed].filter(([, at]) => at > number).map(([queue]) => queue);
    for (const queue of changed) if (this.#isMissing(queue) && !removed.includes(queue)) removed.push(queue);
    const events: FeedEvent[] = [];
    // In one event, or there would be a moment between the two that never was.
    if (statuses.length > 0 || removed.length > 0)
      events.push({ event: "status", data: { statuses, ...(removed.length === 0 ? {} : { removed }) } });
    return events;
  }

  #isMissing(queue: QueueName): boolean {
    const isSelected = queue === this.#path || (this.#isSubtree && (this.#path === "" || queue.startsWith(`${this.#path}/`)));
    return isSelected && !this.#seen.has(queue);
  }
}

/** One task. */
export class TaskFeed implements Feed {
  readonly #backend: Pick<Backend, "task">;
  readonly #id: TaskId;
  #event: FeedEvent | undefined;
  #text = "";
  #changedAt = 0;

  constructor(backend: Pick<Backend, "task">, id: TaskId) {
    this.#backend = backend;
    this.#id = id;
  }

  /** Which queues a task has messages in is not known. */
  concerns(): boolean {
    return true;
  }

  async look(number: number): Promise<void> {
    const event = await this.#read();
    const text = JSON.stringify(event);
    if (text !== this.#text) {
      this.#text = text;
      this.#event = event;
      this.#changedAt = number;
    }
  }

  async #read(): Promise<FeedEvent> {
    try {
      return { event: "task", data: taskToWire(await this.#backend.task(this.#id)) };
    } catch (error) {
      if (this.#event !== undefined && isQueueFSError(error, "task-not-found")) return { event: "removed", data: { task: this.#id } };
      throw error;
    }
  }

  whole(): readonly FeedEvent[] {
    return this.#event === undefined ? [] : [this.#event];
  }

  since(number: number): readonly FeedEvent[] {
    // That it began to look only later makes the change newer than it is, which does no harm.
    return this.#changedAt > number ? this.whole() : [];
  }
}
