/** The shapes of messages, deliveries, statuses and answers, the same on every backend and surface. */

import type { MessageId, QueueName, Receipt, TaskId } from "./names.ts";

/** The state of an unacknowledged message. */
export type UnackedState = "pending" | "processing";

/** The one truth about a queue: both numbers read together in one step of the store. Complete means both are zero. */
export interface Status {
  /** Messages in nobody's hands, those whose not-before time lies ahead included. */
  readonly pending: number;
  /** Messages handed to a consumer and not yet acked, nacked, released, recovered or removed. */
  readonly processing: number;
}

/** The status of one queue among several of the same snapshot. */
export interface QueueStatus extends Status {
  readonly queue: QueueName;
}

/** Whether nothing is unacknowledged. It does not say that everything succeeded, nor that no work can arrive. */
export function isComplete(statuses: readonly Status[]): boolean {
  return statuses.every((status) => status.pending === 0 && status.processing === 0);
}

/** A message to be stored. */
export interface NewMessage {
  /** The bytes, kept exactly. Default bound 64 MiB. The store copies them; the caller may reuse the array. */
  readonly data: Uint8Array;
  /**
   * An id chosen by the caller, which makes a repeat safe: the same id again within the store's `rememberMs` (ten minutes),
   * or while the message is unacked or a dead letter, stores nothing and gets the first answer. The store makes one if absent.
   */
  readonly id?: MessageId;
  /** Not to be delivered before so many milliseconds have passed by the store's clock. 0 to 366 days, default 0. */
  readonly delayMs?: number;
  /** The task that is to own it; it must exist, and neither have ended nor be cancelling. A `repeated` message stays whose it was. */
  readonly task?: TaskId;
}

/** What became of one message of an enqueue. */
export interface EnqueueAnswer {
  /** `enqueued`: stored now. `repeated`: stored by an earlier call with this id. `conflict`: the id was used with other bytes; nothing stored. */
  readonly outcome: "enqueued" | "repeated" | "conflict";
  readonly id: MessageId;
}

/** What is known of a stored message. */
export interface Message {
  readonly id: MessageId;
  readonly data: Uint8Array;
  /** When it was enqueued, by the store's wall clock, in milliseconds since 1970-01-01 UTC. */
  readonly enqueuedAtMs: number;
  /** How many deliveries were begun and not released, the current one included. 0 before the first. */
  readonly deliveryCount: number;
  /** The task that owns it; absent when none does. */
  readonly task?: TaskId;
}

/** A message as a listing shows it. */
export interface ListedMessage extends Message {
  readonly state: UnackedState;
}

/** A message in a consumer's hands. */
export interface DeliveredMessage extends Message {
  /** The name of this delivery, for ack, nack, release and extend. */
  readonly receipt: Receipt;
  /** How long the delivery may be held, in milliseconds, counted from the step that handed it out. */
  readonly leaseMs: number;
}

/** Who holds a delivery: decides when it counts as abandoned before its lease has ended. */
export type DeliveryOwner =
  /** The calling process: recovered at once when that process is provably gone (same host, SQLite), and by lease. */
  | "process"
  /** Whoever knows the receipt: recovered by lease only, since the process that asked may be gone by design (`cat`, command line). */
  | "receipt";

/** Options of one dequeue. */
export interface DequeueOptions {
  /** How many messages at most. 1 to 1,000, default 1. Fewer come when there are fewer, or when an answer would exceed about 64 MiB. */
  readonly limit?: number;
  /** How long each delivery may be held, in milliseconds. 10 ms to 7 days, default 30,000. */
  readonly leaseMs?: number;
  /** Who holds the deliveries. Default `process`. */
  readonly owner?: DeliveryOwner;
  /**
   * Makes a repeat after a lost reply safe: within the store's `rememberMs` the same request id on the same queue gets the first
   * answer, the same deliveries with the same receipts and bytes. An empty answer is not remembered: the repeat tries again.
   */
  readonly requestId?: string;
}

/** Messages to be stored in another queue (or the same) in the very step that acks. */
export interface Forward {
  readonly queue: QueueName;
  readonly messages: readonly NewMessage[];
}

/** One delivery to be acked. */
export interface AckItem {
  readonly receipt: Receipt;
  /** Stored in the same step if, and only if, the receipt is current. */
  readonly forward?: readonly Forward[];
}

/** What became of one ack. */
export type AckAnswer =
  /** The message is removed, and what it forwarded is stored. */
  | { readonly outcome: "acked"; readonly forwarded: readonly (readonly EnqueueAnswer[])[] }
  /** The receipt is not the current one of a message in processing; nothing changed. */
  | { readonly outcome: "stale" };

/** One delivery that failed. */
export interface NackItem {
  readonly receipt: Receipt;
  /** Not to be delivered again before so many milliseconds have passed. 0 to 366 days, default 0. */
  readonly delayMs?: number;
  /** Why, kept with the message. Cut at 4,096 characters. Absent or empty keeps the reason of an earlier nack. */
  readonly reason?: string;
  /** Whether to give the message up: it moves to the dead letters whatever its delivery count. Default false. */
  readonly giveUp?: boolean;
}

/**
 * What became of one nack: pending again, moved to the dead letters, removed because its task is being cancelled, or the receipt was stale
 * and nothing changed.
 */
export type NackAnswer = "pending" | "dead" | "cancelled" | "stale";

/** What became of one release: pending again, removed because its task is being cancelled, or the receipt was stale and nothing changed. */
export type ReleaseAnswer = "released" | "cancelled" | "stale";

/** One lease to be renewed. */
export interface ExtendItem {
  readonly receipt: Receipt;
  /** The lease from now, in milliseconds, which may also be shorter than what is left. 10 ms to 7 days. */
  readonly leaseMs: number;
}

/** What removed messages at once. */
export interface Cleared {
  readonly pending: number;
  readonly processing: number;
}

/** A message that was given up on. */
export interface DeadLetter extends Message {
  /** Why: the last reason of a nack, or QueueFS's own words (deliveries used up, record unreadable). */
  readonly reason: string;
  /** When it was moved, by the store's wall clock, in milliseconds since 1970-01-01 UTC. */
  readonly diedAtMs: number;
}

/** One page of a listing; `next` asks for the page after it, and is absent on the last. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

/** Which page of a listing. */
export interface PageOptions {
  /** `next` of the page before; from the start if absent. */
  readonly after?: string;
  /** Entries at most, 1 to 1,000, default 100. A page may hold fewer where entries are large, and still have a next one. */
  readonly limit?: number;
}

/** Settings of one queue, kept by the store. */
export interface QueueSettings {
  /** Deliveries after which a message becomes a dead letter: 1 to 1,000,000, or 0 for never. Default 20. */
  readonly maxDeliveries: number;
}

/** What the store knows of a queue beside its status. Counts are since the queue was made, and survive `clear`. */
export interface Statistics extends Status {
  /** Of the pending ones: those whose not-before time lies ahead. */
  readonly delayed: number;
  /** Dead letters now. */
  readonly dead: number;
  /** Messages ever stored: tells "never had work" from "finished". */
  readonly enqueued: number;
  /** Deliveries ever begun. */
  readonly delivered: number;
  /** Messages ever acked. */
  readonly acked: number;
  /** Deliveries that ended with the message pending again: nacks, releases, recoveries. */
  readonly returned: number;
  /** Messages ever moved to the dead letters. */
  readonly deadLettered: number;
  /** Messages ever removed by `clear` or because their task was cancelled: tells a queue that was worked off from one that was emptied. */
  readonly cleared: number;
  /** Age of the oldest unacked message that is pending, in milliseconds by the wall clock; absent when none is. */
  readonly oldestPendingMs?: number;
  /** Age of the oldest unacked message that is in processing, since it was enqueued, in milliseconds; absent when none is. */
  readonly oldestProcessingMs?: number;
  /** When the queue was made, in milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  readonly settings: QueueSettings;
}

/** A moment in the life of some queues: all that was enqueued before it. Opaque; valid for the store that gave it. */
export interface Mark {
  readonly queues: readonly { readonly queue: QueueName; readonly place: string }[];
}

/** Whether all that was enqueued before a mark is settled, with the snapshot in which that was judged. */
export interface MarkAnswer {
  readonly reached: boolean;
  readonly statuses: readonly QueueStatus[];
}

/** What one recovery step did. */
export interface Recovered {
  /** Deliveries ended because their lease had ended or their owner was gone. */
  readonly recovered: number;
  /** Of these: messages that moved to the dead letters because their deliveries were used up. */
  readonly dead: number;
  /** Whether the step stopped at its bound and more is to be done. */
  readonly more: boolean;
}

/** One finding about the health of a store, for `queuefs doctor`. */
export interface Finding {
  /** `ok`: checked and good. `warning`: promises hold, with a caveat. `error`: promises may be broken. */
  readonly severity: "ok" | "warning" | "error";
  /** What was checked, a short stable word with hyphens, such as `integrity` or `eviction-policy`. */
  readonly check: string;
  /** What was found, and where something is to be done, what. */
  readonly message: string;
}

/** Which queues: named ones, or all at and under a path (`""` for all). A named queue that is missing is an error. */
export type QueueSelection = { readonly queues: readonly QueueName[] } | { readonly under: QueueName | "" };
