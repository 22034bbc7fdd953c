/** The processing collection: what is in consumers' hands, by receipt. */

import type { Receipt } from "../../core/names.ts";
import type { Entry } from "./entry.ts";

/** Smallest capacity, a power of two. */
const SMALLEST_CAPACITY = 16;
const HYPHEN = 45;
const NINE = 57;
/** 2^32 divided by the golden ratio, odd: neighbouring places land far apart, and so do those at equal distances. */
const SPREAD = 0x9e3779b1;

/**
 * A hash table with open addressing, at most half full, keyed by the place that stands in the receipt. A Map keyed by receipts would do,
 * but hashes each text and takes several times as long, in the middle of the busiest path.
 */
export class DeliveryTable {
  #entries: (Entry | undefined)[] = new Array(SMALLEST_CAPACITY).fill(undefined);
  #size = 0;
  #shift = 28;

  /** How many deliveries there are. */
  get size(): number {
    return this.#size;
  }

  /** Adds a message that has its receipt and is not in the table. */
  add(entry: Entry): void {
    if ((this.#size + 1) * 2 > this.#entries.length) this.#resize(this.#entries.length * 2);
    this.#put(entry);
    this.#size += 1;
  }

  /** The message of which this is the current delivery, or `undefined`. */
  find(receipt: Receipt): Entry | undefined {
    const place = placeIn(receipt);
    const last = this.#entries.length - 1;
    for (let index = this.#home(place); ; index = (index + 1) & last) {
      const entry = this.#entries[index];
      if (entry === undefined) return undefined;
      if (entry.place === place) return entry.receipt === receipt ? entry : undefined;
    }
  }

  /** Removes a message that is in the table. */
  delete(removed: Entry): void {
    const last = this.#entries.length - 1;
    let hole = this.#home(removed.place);
    while (this.#entries[hole] !== removed) hole = (hole + 1) & last;
    // Those behind the hole whose way from their home leads over it move up, so that no search ends too early.
    for (let index = (hole + 1) & last; ; index = (index + 1) & last) {
      const entry = this.#entries[index];
      if (entry === undefined) break;
      const home = this.#home(entry.place);
      if (((index - home) & last) < ((index - hole) & last)) continue;
      this.#entries[hole] = entry;
      hole = index;
    }
    this.#entries[hole] = undefined;
    this.#size -= 1;
    if (this.#entries.length > SMALLEST_CAPACITY && this.#size * 8 < this.#entries.length) this.#resize(this.#entries.length / 2);
  }

  #home(place: number): number {
    return Math.imul(place, SPREAD) >>> this.#shift;
  }

  #put(entry: Entry): void {
    const last = this.#entries.length - 1;
    let index = this.#home(entry.place);
    while (this.#entries[index] !== undefined) index = (index + 1) & last;
    this.#entries[index] = entry;
  }

  #resize(capacity: number): void {
    const entries = this.#entries;
    this.#entries = new Array(capacity).fill(undefined);
    this.#shift = 32 - Math.log2(capacity);
    for (const entry of entries) {
      if (entry !== undefined) this.#put(entry);
    }
  }
}

/** The number that stands where a receipt of this store has its place; any number for a text that is not one, which then finds nothing. */
function placeIn(receipt: string): number {
  const { length } = receipt;
  let index = 2;
  while (index < length && receipt.charCodeAt(index) !== HYPHEN) index += 1;
  let place = 0;
  for (index += 1; index < length; index += 1) {
    const code = receipt.charCodeAt(index);
    if (code === HYPHEN) break;
    place = place * 36 + (code - (code <= NINE ? 48 : 87));
  }
  return place;
}
