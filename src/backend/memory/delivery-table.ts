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
  // Key and entry in turns: a search touches no entry but the one that it finds, and with many deliveries each touch of memory takes as
  // long as all the rest.
  #slots: (number | Entry | undefined)[] = new Array(SMALLEST_CAPACITY * 2).fill(undefined);
  #size = 0;
  #shift = 28;

  /** How many deliveries there are. */
  get size(): number {
    return this.#size;
  }

  /** Adds a message that has its receipt and is not in the table. */
  add(entry: Entry): void {
    const capacity = this.#slots.length / 2;
    if ((this.#size + 1) * 2 > capacity) this.#resize(capacity * 2);
    this.#put(keyOf(entry.place), entry);
    this.#size += 1;
  }

  /** The message of which this is the current delivery, or `undefined`. */
  find(receipt: Receipt): Entry | undefined {
    const key = keyOf(placeIn(receipt));
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = this.#home(key); slots[slot] !== undefined; slot = (slot + 2) & mask) {
      if (slots[slot] !== key) continue;
      const entry = slots[slot + 1] as Entry;
      if (entry.receipt === receipt) return entry;
    }
    return undefined;
  }

  /** Removes a message that is in the table. */
  delete(removed: Entry): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let hole = this.#home(keyOf(removed.place));
    while (slots[hole + 1] !== removed) hole = (hole + 2) & mask;
    // Those behind the hole whose way from their home leads over it move up, so that no search ends too early.
    for (let slot = (hole + 2) & mask; slots[slot] !== undefined; slot = (slot + 2) & mask) {
      const key = slots[slot] as number;
      if (((slot - this.#home(key)) & mask) < ((slot - hole) & mask)) continue;
      slots[hole] = key;
      slots[hole + 1] = slots[slot + 1] as Entry;
      hole = slot;
    }
    slots[hole] = undefined;
    slots[hole + 1] = undefined;
    this.#size -= 1;
    const capacity = slots.length / 2;
    if (capacity > SMALLEST_CAPACITY && this.#size * 8 < capacity) this.#resize(capacity / 2);
  }

  #home(key: number): number {
    return (Math.imul(key, SPREAD) >>> this.#shift) << 1;
  }

  #put(key: number, entry: Entry): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = this.#home(key);
    while (slots[slot] !== undefined) slot = (slot + 2) & mask;
    slots[slot] = key;
    slots[slot + 1] = entry;
  }

  #resize(capacity: number): void {
    const slots = this.#slots;
    this.#slots = new Array(capacity * 2).fill(undefined);
    this.#shift = 32 - Math.log2(capacity);
    for (let slot = 0; slot < slots.length; slot += 2) {
      if (slots[slot] !== undefined) this.#put(slots[slot] as number, slots[slot + 1] as Entry);
    }
  }
}

/** What a place is found by: 32 bits of it. Different places may share one. */
function keyOf(place: number): number {
  return place | 0;
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
