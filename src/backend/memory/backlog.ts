/** The messages of one queue that were never handed out, in the order of their enqueue. */

import { Entry, NO_BYTES, WAITING } from "./entry.ts";
import type { OrderedLog } from "./ordered-log.ts";
import type { Ownership, Ownerships } from "./ownership.ts";
import { RetiredSegments } from "./retired-segments.ts";
import { Ring } from "./ring.ts";
import { FIRST_SEGMENT_BYTES, FULL_SEGMENT_BYTES, LARGEST_PACKED_BYTES, Segment, type SegmentPool } from "./segment.ts";

/** Each segment of a growing queue is so many times larger than the one before, up to the full size. */
const GROWTH = 4;

/** A line of segments with one cursor. What the cursor has passed is kept, as entries, by the queue. */
export class Backlog {
  readonly #pool: SegmentPool;
  readonly #passed: OrderedLog<Entry>;
  readonly #owners: Ownerships;
  readonly #retired: RetiredSegments;
  readonly #segments = new Ring<Segment>();
  #nextCapacity = FIRST_SEGMENT_BYTES;
  #waiting = 0;
  /** Places of withdrawn messages that the cursor has not come to yet. It never rests on one. */
  readonly #withdrawn = new Set<number>();

  /**
   * @param passed where the queue keeps the entries that the cursor has passed
   * @param owners whose the messages of the queue are
   */
  constructor(pool: SegmentPool, passed: OrderedLog<Entry>, owners: Ownerships) {
    this.#pool = pool;
    this.#passed = passed;
    this.#owners = owners;
    this.#retired = new RetiredSegments(pool, passed);
  }

  /** How many messages wait for their turn; delayed ones and those that are due again are not among them. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Appends a message without id and delay. Places must be consecutive over both ways of appending. */
  append(place: number, data: Uint8Array, enqueuedAtMs: number, owner: Ownership | undefined): void {
    if (data.length > LARGEST_PACKED_BYTES) {
      this.appendAside(new Entry(place, undefined, enqueuedAtMs, NO_BYTES, 0, data.length, undefined, owner), data);
      return;
    }
    this.#segmentFor(place, data.length).append(data, enqueuedAtMs, owner === undefined ? -1 : owner.index);
    this.#waiting += 1;
  }

  /** Appends a message whose entry is made already, and gives the entry its bytes: a copy of `data`. */
  appendAside(entry: Entry, data: Uint8Array): void {
    const packed = data.length <= LARGEST_PACKED_BYTES;
    if (!packed) entry.bytes = new Uint8Array(data);
    this.#segmentFor(entry.place, packed ? data.length : 0).appendAside(entry, packed ? data : undefined);
    if (entry.state === WAITING) this.#waiting += 1;
  }

  /** The place of the message at the cursor, whatever its state, or `Infinity` when there is none. */
  firstPlace(): number {
    const segment = this.#current();
    return segment === undefined ? Number.POSITIVE_INFINITY : segment.firstPlace + segment.passed;
  }

  /** The message at the cursor, to be looked at only, or `undefined` when there is none. */
  first(): Entry | undefined {
    let first: Entry | undefined;
    this.visit(0, (entry) => {
      first = entry;
      return false;
    });
    return first;
  }

  /**
   * Moves the cursor to the first message that waits for its turn; those on the way, delayed ones, are passed.
   *
   * @returns its place, or `Infinity` when none waits
   */
  settle(): number {
    for (let segment = this.#current(); segment !== undefined; segment = this.#current()) {
      const aside = segment.aside();
      if (aside === undefined || aside.state === WAITING) return segment.firstPlace + segment.passed;
      this.#passed.push(segment.pass(this.#owners));
      if (this.#withdrawn.size > 0) this.#skipWithdrawn();
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Passes the message at the cursor and returns it. Only right after {@link settle} has found one. */
  take(): Entry {
    const entry = (this.#segments.first() as Segment).pass(this.#owners);
    this.#waiting -= 1;
    this.#passed.push(entry);
    if (this.#withdrawn.size > 0) this.#skipWithdrawn();
    return entry;
  }

  /** Takes a message that {@link visit} showed out of the middle of the line; its record is passed over later. */
  withdraw(entry: Entry): void {
    if (entry.state === WAITING) this.#waiting -= 1;
    this.#segments.at(this.#segmentIndex(entry.place)).withdraw(entry);
    this.#withdrawn.add(entry.place);
    this.#skipWithdrawn();
  }

  /** Whether the message of a place beyond the cursor was withdrawn. */
  isWithdrawn(place: number): boolean {
    return this.#withdrawn.has(place);
  }

  #skipWithdrawn(): void {
    for (let segment = this.#current(); segment?.isWithdrawn() === true; segment = this.#current()) {
      const entry = segment.pass(this.#owners);
      this.#withdrawn.delete(entry.place);
      this.letGo(entry);
    }
  }

  /** Shows the messages from `place` on that the cursor has not passed, in order, until `visitor` answers false. */
  visit(place: number, visitor: (entry: Entry) => boolean): boolean {
    for (let index = this.#segmentIndex(place); index < this.#segments.length; index += 1) {
      if (!this.#segments.at(index).visit(place, this.#owners, visitor)) return false;
    }
    return true;
  }

  /** Takes note that a message which the cursor has passed needs its bytes no more. */
  letGo(entry: Entry): void {
    const segment = entry.segment;
    entry.segment = undefined;
    entry.bytes = NO_BYTES;
    if (segment === undefined) return;
    segment.heldBytes -= entry.length;
    if (segment.retired) this.#retired.released(segment, entry.length);
    // An idle queue keeps no more than a small segment.
    else if (segment.heldBytes === 0 && segment.passed === segment.records && segment.bytes.length > FIRST_SEGMENT_BYTES) this.#current();
  }

  /** The segment of the cursor, after those that have nothing before it are retired; `undefined` when the line is empty. */
  #current(): Segment | undefined {
    for (;;) {
      const segment = this.#segments.first();
      if (segment === undefined || segment.passed < segment.records) return segment;
      if (this.#segments.length === 1 && (segment.heldBytes > 0 || segment.bytes.length === FIRST_SEGMENT_BYTES)) return undefined;
      this.#segments.shift();
      this.#retired.add(segment);
      if (this.#segments.length === 0) this.#nextCapacity = FIRST_SEGMENT_BYTES;
    }
  }

  /** The last segment, with room for so many bytes. */
  #segmentFor(place: number, length: number): Segment {
    const last = this.#segments.last();
    if (last !== undefined) {
      if (last.heldBytes === 0 && last.passed === last.records) {
        last.reset();
        last.firstPlace = place;
      }
      if (last.fits(length)) return last;
    }
    let capacity = this.#nextCapacity;
    while (capacity < Segment.recordBytes(length)) capacity *= GROWTH;
    this.#nextCapacity = Math.min(capacity * GROWTH, FULL_SEGMENT_BYTES);
    const segment = this.#pool.take(capacity);
    segment.firstPlace = place;
    this.#segments.push(segment);
    return segment;
  }

  /** The index of the last segment that begins at or before `place`, or 0. */
  #segmentIndex(place: number): number {
    let low = 0;
    let high = this.#segments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#segments.at(middle).firstPlace <= place) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}
