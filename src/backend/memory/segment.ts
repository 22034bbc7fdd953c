/** A block of messages packed one after the other, so that a deep backlog is a few arrays instead of millions of objects. */

import { Entry, NO_BYTES, WITHDRAWN } from "./entry.ts";
import type { Ownerships } from "./ownership.ts";

/** Bytes of a segment of a busy queue. */
export const FULL_SEGMENT_BYTES = 64 * 1024;
/** Bytes of the first segment of a queue, so that a hundred thousand small queues stay small. */
export const FIRST_SEGMENT_BYTES = 1024;
/** The longest message that is packed; longer ones have an array of their own. */
export const LARGEST_PACKED_BYTES = 8 * 1024;

// A record is: when it was enqueued (8 bytes), the payload's length (4), what it is (4), the payload, padding to 8.
const HEADER_BYTES = 16;
/** What a record is: a plain message, one for which an entry stands, one that was withdrawn, or from the next number on one that a task owns. */
const PLAIN = 0;
const ASIDE = 1;
const GONE = 2;
const OWNED = 3;

/** Segments that are kept for reuse by the whole store: allocating and zeroing one costs more than filling it. */
const POOL_ITEMS = 32;

/**
 * One segment: records are appended at its end and passed at its cursor. Most records are plain, or name the task that owns them; a message
 * with an id chosen by its caller, a delay or a large payload has an entry from the start, which stands aside and has its turn by its record.
 */
export class Segment {
  readonly bytes: Uint8Array;
  /** What {@link bytes} is a view of; asking that for it is a call into the runtime. */
  readonly buffer: ArrayBuffer;
  /** The same bytes as words. */
  readonly words: Int32Array;
  readonly #times: Float64Array;
  /** The place of the first record. */
  firstPlace = 0;
  /** Records appended. */
  records = 0;
  /** Records that the cursor has passed. */
  passed = 0;
  /** Payload bytes of passed records whose messages are still unacknowledged. */
  heldBytes = 0;
  /** Whether it has left the backlog: nothing will be appended, and it lives only for the bytes it holds. */
  retired = false;
  /** Whether it is in the list of those that hold less than half of themselves, and its neighbours there. */
  isSparse = false;
  previousSparse: Segment | undefined = undefined;
  nextSparse: Segment | undefined = undefined;
  /** Entries whose bytes moved here out of other segments, those that are gone since among them. */
  adopted: Entry[] = [];
  #end = 0;
  #cursor = 0;
  #asides: Entry[] = [];
  #passedAsides = 0;

  constructor(capacity: number) {
    const buffer = new ArrayBuffer(capacity);
    this.buffer = buffer;
    this.bytes = new Uint8Array(buffer);
    this.words = new Int32Array(buffer);
    this.#times = new Float64Array(buffer);
  }

  /** The bytes that a record for a payload of so many bytes takes. */
  static recordBytes(length: number): number {
    return HEADER_BYTES + ((length + 7) & ~7);
  }

  /** Whether a payload of so many bytes can be appended. */
  fits(length: number): boolean {
    return this.#end + Segment.recordBytes(length) <= this.bytes.length;
  }

  /** Appends a record without an entry; it must fit. @param owner the index of its ownership, -1 when no task owns it */
  append(data: Uint8Array, enqueuedAtMs: number, owner: number): void {
    this.#record(data, enqueuedAtMs, owner < 0 ? PLAIN : OWNED + owner);
  }

  /** Appends a record for which `entry` stands. Its payload must fit, unless it has bytes of its own. */
  appendAside(entry: Entry, data: Uint8Array | undefined): void {
    if (data !== undefined && data.length > 0) {
      entry.segment = this;
      entry.bytes = this.bytes;
      entry.start = this.#end + HEADER_BYTES;
    }
    this.#asides.push(entry);
    this.#record(data ?? NO_BYTES, entry.enqueuedAtMs, ASIDE);
  }

  #record(data: Uint8Array, enqueuedAtMs: number, kind: number): void {
    const end = this.#end;
    this.#times[end >> 3] = enqueuedAtMs;
    this.words[(end >> 2) + 2] = data.length;
    this.words[(end >> 2) + 3] = kind;
    this.bytes.set(data, end + HEADER_BYTES);
    this.#end = end + Segment.recordBytes(data.length);
    this.records += 1;
  }

  /** Whether it can take over so many bytes of an entry. */
  canAdopt(length: number): boolean {
    return this.#end + length <= this.bytes.length;
  }

  /** Takes over the bytes of an entry that lives elsewhere. They must fit, and the segment must have no records. */
  adopt(entry: Entry): void {
    this.bytes.set(entry.bytes.subarray(entry.start, entry.start + entry.length), this.#end);
    entry.bytes = this.bytes;
    entry.start = this.#end;
    entry.segment = this;
    this.adopted.push(entry);
    this.heldBytes += entry.length;
    // Without padding: what takes over is full of what it holds.
    this.#end += entry.length;
  }

  /** The entry that stands for the record at the cursor, or `undefined` for a plain one. There must be a record. */
  aside(): Entry | undefined {
    return this.words[(this.#cursor >> 2) + 3] === ASIDE ? this.#asides[this.#passedAsides] : undefined;
  }

  /** Whether the message of the record at the cursor was withdrawn. There must be a record. */
  isWithdrawn(): boolean {
    const kind = this.words[(this.#cursor >> 2) + 3];
    return kind === GONE || (kind === ASIDE && this.#asides[this.#passedAsides]?.state === WITHDRAWN);
  }

  /** Withdraws a message that this segment showed and the cursor has not passed. */
  withdraw(entry: Entry): void {
    const word = ((entry.start - HEADER_BYTES) >> 2) + 3;
    // The record of an aside stays, since asides are told by their order.
    if (this.#asides.length === 0 || !this.#asides.includes(entry)) this.words[word] = GONE;
    entry.state = WITHDRAWN;
  }

  /** Passes the record at the cursor, which must be there, and returns its entry. */
  pass(owners: Ownerships): Entry {
    const aside = this.aside();
    if (aside !== undefined) this.#passedAsides += 1;
    const entry = aside ?? this.#unpack(this.#cursor, this.firstPlace + this.passed, owners);
    if (entry.segment === this) this.heldBytes += entry.length;
    this.#cursor = this.#after(this.#cursor);
    this.passed += 1;
    return entry;
  }

  /** Shows the messages that the cursor has not passed, in order, until `visitor` answers false. Entries of packed ones are made for it. */
  visit(place: number, owners: Ownerships, visitor: (entry: Entry) => boolean): boolean {
    let offset = this.#cursor;
    let asides = this.#passedAsides;
    for (let index = this.passed; index < this.records; index += 1) {
      const kind = this.words[(offset >> 2) + 3];
      const isAside = kind === ASIDE;
      if (this.firstPlace + index >= place && kind !== GONE) {
        const entry = isAside ? (this.#asides[asides] as Entry) : this.#unpack(offset, this.firstPlace + index, owners);
        if (entry.state !== WITHDRAWN && !visitor(entry)) return false;
      }
      if (isAside) asides += 1;
      offset = this.#after(offset);
    }
    return true;
  }

  /** Forgets all records, for new ones. */
  reset(): void {
    this.records = 0;
    this.passed = 0;
    this.heldBytes = 0;
    this.retired = false;
    this.#end = 0;
    this.#cursor = 0;
    this.#passedAsides = 0;
    if (this.#asides.length > 0) this.#asides = [];
    if (this.adopted.length > 0) this.adopted = [];
  }

  #unpack(offset: number, place: number, owners: Ownerships): Entry {
    const length = this.words[(offset >> 2) + 2] as number;
    const kind = this.words[(offset >> 2) + 3] as number;
    // An empty message refers to no segment, so that a segment without held bytes is one without references.
    return new Entry(
      place,
      undefined,
      this.#times[offset >> 3] as number,
      this.bytes,
      offset + HEADER_BYTES,
      length,
      length === 0 ? undefined : this,
      kind < OWNED ? undefined : owners.at(kind - OWNED),
    );
  }

  #after(offset: number): number {
    return offset + Segment.recordBytes(this.words[(offset >> 2) + 2] as number);
  }
}

/** Full segments that wait for reuse by any queue of one store. */
export class SegmentPool {
  readonly #free: Segment[] = [];

  /** A segment that is empty and has `capacity` bytes. */
  take(capacity: number): Segment {
    const segment = capacity === FULL_SEGMENT_BYTES ? this.#free.pop() : undefined;
    return segment ?? new Segment(capacity);
  }

  /** Takes back a segment that nothing refers to any more. */
  give(segment: Segment): void {
    if (segment.bytes.length !== FULL_SEGMENT_BYTES || this.#free.length >= POOL_ITEMS) return;
    segment.reset();
    this.#free.push(segment);
  }
}
