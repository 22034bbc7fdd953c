/** Segments that have left a backlog and live only for messages that are still unacknowledged. */

import type { Entry } from "./entry.ts";
import type { OrderedLog } from "./ordered-log.ts";
import { FULL_SEGMENT_BYTES, type Segment, type SegmentPool } from "./segment.ts";

/** Bytes that retired segments may take beyond twice what they hold: what a quick consumer has under way must not be moved. */
const SLACK_BYTES = 3 * FULL_SEGMENT_BYTES;

/**
 * Without care one message that stays would keep all its neighbours' memory. When the retired segments take more than twice what they
 * hold, one of them holds less than half of itself: such sparse ones are listed, and what they hold moves together into fresh segments.
 * A byte that is moved has made room for at least one other, so that moving costs no more than storing did.
 */
export class RetiredSegments {
  readonly #pool: SegmentPool;
  readonly #passed: OrderedLog<Entry>;
  /** The segment that is being filled with what moves; it is never listed. */
  #target: Segment | undefined = undefined;
  #firstSparse: Segment | undefined = undefined;
  #capacityBytes = 0;
  #heldBytes = 0;

  constructor(pool: SegmentPool, passed: OrderedLog<Entry>) {
    this.#pool = pool;
    this.#passed = passed;
  }

  /** Adds a segment all of whose records were passed. */
  add(segment: Segment): void {
    this.#heldBytes += segment.heldBytes;
    this.#enter(segment);
    this.#judge(segment);
    this.#limitWaste();
  }

  /** Takes note that a retired segment holds `length` bytes less, which its own count says already. */
  released(segment: Segment, length: number): void {
    this.#heldBytes -= length;
    if (segment !== this.#target) this.#judge(segment);
    else if (this.#heldBytes === 0) this.#closeTarget();
    this.#limitWaste();
  }

  #enter(segment: Segment): void {
    segment.retired = true;
    this.#capacityBytes += segment.bytes.length;
  }

  /** Gives a segment back that holds nothing, and lists one that holds less than half of itself. */
  #judge(segment: Segment): void {
    if (segment.heldBytes === 0) {
      if (segment.isSparse) this.#unlist(segment);
      this.#capacityBytes -= segment.bytes.length;
      this.#pool.give(segment);
    } else if (!segment.isSparse && segment.heldBytes * 2 <= segment.bytes.length) {
      segment.isSparse = true;
      segment.nextSparse = this.#firstSparse;
      if (this.#firstSparse !== undefined) this.#firstSparse.previousSparse = segment;
      this.#firstSparse = segment;
    }
  }

  #unlist(segment: Segment): void {
    const { previousSparse, nextSparse } = segment;
    if (previousSparse === undefined) this.#firstSparse = nextSparse;
    else previousSparse.nextSparse = nextSparse;
    if (nextSparse !== undefined) nextSparse.previousSparse = previousSparse;
    segment.previousSparse = undefined;
    segment.nextSparse = undefined;
    segment.isSparse = false;
  }

  #limitWaste(): void {
    while (this.#firstSparse !== undefined && this.#capacityBytes > SLACK_BYTES + 2 * this.#heldBytes) {
      const segment = this.#firstSparse;
      this.#moveOut(segment);
      this.#judge(segment);
    }
  }

  #moveOut(segment: Segment): void {
    const move = (entry: Entry): void => {
      if (entry.segment !== segment) return;
      if (this.#target === undefined || !this.#target.canAdopt(entry.length)) this.#renewTarget();
      segment.heldBytes -= entry.length;
      (this.#target as Segment).adopt(entry);
    };
    for (const entry of segment.adopted) move(entry);
    const end = segment.firstPlace + segment.records;
    this.#passed.visit(segment.firstPlace, (entry) => {
      if (entry.place >= end) return false;
      move(entry);
      return true;
    });
  }

  #renewTarget(): void {
    this.#closeTarget();
    this.#target = this.#pool.take(FULL_SEGMENT_BYTES);
    this.#enter(this.#target);
  }

  #closeTarget(): void {
    const target = this.#target;
    this.#target = undefined;
    if (target !== undefined) this.#judge(target);
  }
}
