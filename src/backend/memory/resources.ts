/** What all queues of one store share. */

import type { Random } from "../../core/clock.ts";
import { CopyOut } from "./copy-out.ts";
import { SegmentPool } from "./segment.ts";
import { TaskBook } from "./task-book.ts";
import { Totals } from "./totals.ts";

/** The identity, the sums and the spare memory of a store. */
export class Resources {
  /** Differs from other stores, so that no id of one is taken for another's. */
  readonly id: string;
  readonly totals = new Totals();
  readonly tasks = new TaskBook();
  readonly segments = new SegmentPool();
  readonly copies = new CopyOut();
  #lastSlot = 0;

  constructor(random: Random) {
    this.id = random.token().toString(36);
  }

  /** The number of a new life of some queue; never used before in this store. */
  nextSlot(): number {
    this.#lastSlot += 1;
    return this.#lastSlot;
  }
}
