/** Segments that have left a backlog and live only for messages that are still unacknowledged. */

import type { Entry } from "./entry.ts";
import type { OrderedLog } from "./ordered-log.ts";
import { FULL_SEGMENT_BYTES, type Segment, type SegmentPool } from "./segment.ts";

/** Bytes that retired segments may take beyond twice what they hold: what a quick consumer has under way must not be moved. */
const SLACK_BYTES = 2 * FULL_SEGMENT_BYTES;

/**
 * A list, oldest first. Without care one message that stays would keep all its neighbours' memory: when the list takes more than
 * twice what it holds, the oldest segments are given up and what they still hold is copied out.
 */
export class RetiredSegments {
  readonly #pool: SegmentPool;
  readonly #passed: OrderedLog<Entry>;
  #oldest: Segment | undefined = undefined;
  #youngest: Segment | undefined = undefined;
  #capacityBytes = 0;
  #heldBytes = 0;

  constructor(pool: SegmentPool, passed: OrderedLog<Entry>) {
    this.#pool = pool;
    this.#passed = passed;
  }

  /** Adds a segment all of whose records were passed. */
  add(segment: Segment): void {
    if (segment.heldBytes === 0) {
      this.#pool.give(segment);
      return;
    }
    segment.retired = true;
    segment.older = this.#youngest;
    if (this.#youngest === undefined) this.#oldest = segment;
    else this.#youngest.younger = segment;
    this.#youngest = segment;
    this.#capacityBytes += segment.bytes.length;
    this.#heldBytes += segment.heldBytes;
    this.#limitWaste();
  }

  /** Takes note that a segment of the list holds `length` bytes less, which its own count says already. */
  released(segment: Segment, length: number): void {
    this.#heldBytes -= length;
    if (segment.heldBytes === 0) this.#remove(segment);
    this.#limitWaste();
  }

  #limitWaste(): void {
    while (this.#oldest !== undefined && this.#capacityBytes > SLACK_BYTES + 2 * this.#heldBytes) {
      const segment = this.#oldest;
      this.#moveOut(segment);
      this.#heldBytes -= segment.heldBytes;
      this.#remove(segment);
    }
  }

  /** Gives the entries that live in a segment bytes of their own. */
  #moveOut(segment: Segment): void {
    const end = segment.firstPlace + segment.records;
    this.#passed.visit(segment.firstPlace, (entry) => {
      if (entry.place >= end) return false;
      if (entry.segment === segment) {
        entry.bytes = entry.bytes.slice(entry.start, entry.start + entry.length);
        entry.start = 0;
        entry.segment = undefined;
      }
      return true;
    });
  }

  #remove(segment: Segment): void {
    if (segment.older === undefined) this.#oldest = segment.younger;
    else segment.older.younger = segment.younger;
    if (segment.younger === undefined) this.#youngest = segment.older;
    else segment.younger.older = segment.older;
    segment.older = undefined;
    segment.younger = undefined;
    this.#capacityBytes -= segment.bytes.length;
    this.#pool.give(segment);
  }
}
