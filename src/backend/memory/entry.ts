/** What the store keeps of one unacknowledged message, once it is more than bytes in a line. */

import type { MessageId, Receipt } from "../../core/names.ts";
import type { Placed } from "./ordered-log.ts";
import type { Ownership } from "./ownership.ts";
import type { Segment } from "./segment.ts";

/** Not delivered yet and deliverable in its turn: it stands in the backlog. */
export const WAITING = 0;
/** Pending, but its not-before time lies ahead: it is among the delays. */
export const DELAYED = 1;
/** Pending again (returned, or its delay has passed): it is among the due, by its place. */
export const DUE = 2;
/** In a consumer's hands. */
export const PROCESSING = 3;

/** Removed with its task while it stood in the backlog, where its record stays until the cursor comes by. */
export const WITHDRAWN = 4;

/** Where a message is. */
export type EntryState = typeof WAITING | typeof DELAYED | typeof DUE | typeof PROCESSING | typeof WITHDRAWN;

/** Bytes of nothing. */
export const NO_BYTES = new Uint8Array(0);

/**
 * One message. The plain ones of the backlog have no entry: it is made when they leave the line. What finding and settling a delivery
 * touches stands first, and so together in memory: with many in processing each further line of the cache costs as much as the rest.
 */
export class Entry implements Placed {
  /** The number of its enqueue, counted from 1 through all the life of the queue: its old place, to which it returns. */
  readonly place: number;
  /** The receipt of the delivery, while in processing. */
  receipt: Receipt | undefined = undefined;
  /** The stamp of its latest push to the leases, 0 while not in processing. */
  leaseStamp = 0;
  /** Whose it is, if a task owns it. */
  owner: Ownership | undefined;
  /** The last reason of a nack, `""` before one. */
  reason = "";
  state: EntryState = WAITING;
  deliveryCount = 0;
  readonly length: number;
  /** The segment that {@link bytes} belongs to, if it does not have bytes of its own. */
  segment: Segment | undefined;
  /** The array that holds the message, from {@link start} on. */
  bytes: Uint8Array;
  /** Whether it has left the queue. */
  removed = false;
  start: number;
  /** The id, unless it follows from the place (made by the store, in this slot of the queue). */
  readonly id: MessageId | undefined;
  readonly enqueuedAtMs: number;

  constructor(
    place: number,
    id: MessageId | undefined,
    enqueuedAtMs: number,
    bytes: Uint8Array,
    start: number,
    length: number,
    segment: Segment | undefined,
    owner: Ownership | undefined = undefined,
  ) {
    this.place = place;
    this.id = id;
    this.segment = segment;
    this.bytes = bytes;
    this.start = start;
    this.length = length;
    this.enqueuedAtMs = enqueuedAtMs;
    this.owner = owner;
  }

  /** What it counts against the bytes of the store: its payload and the text of its last failure (two bytes a character). */
  get weight(): number {
    return this.length + this.reason.length * 2;
  }
}
