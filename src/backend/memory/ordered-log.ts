/** Items in the order of their places, from which any item can leave and which can be read from any place on. */

import { assert } from "../../core/errors.ts";
import { Ring } from "./ring.ts";

/** An item that has a place. `removed` belongs to the log. */
export interface Placed {
  /** Unique among the items of one log that are not removed. */
  readonly place: number;
  /** Whether it has left the log. */
  removed: boolean;
}

/** Garbage below this count is not worth a pass. */
const SMALL_GARBAGE = 64;

/**
 * A ring in which removed items stay as garbage until they reach the front, or until they outnumber the others: each removal then
 * pays for a constant part of one pass, and one item that stays for long does not hold on to all that left after it.
 */
export class OrderedLog<Item extends Placed> {
  readonly #ring = new Ring<Item>();
  #garbage = 0;

  /** How many items it holds, without garbage. */
  get length(): number {
    return this.#ring.length - this.#garbage;
  }

  /** The item of the lowest place, or `undefined` when there is none. */
  first(): Item | undefined {
    return this.#ring.first();
  }

  /** Appends an item; its place must lie above all others. */
  push(item: Item): void {
    const last = this.#ring.last();
    assert(last === undefined || last.place < item.place, "messages are appended in the order of their places");
    this.#ring.push(item);
  }

  /** Inserts items of any places, in ascending order. Costs the number of items above the lowest of them. */
  insert(items: readonly Item[]): void {
    const ring = this.#ring;
    let source = ring.length - 1;
    for (const item of items) ring.push(item);
    let target = ring.length - 1;
    for (let index = items.length - 1; index >= 0; target -= 1) {
      const item = items[index] as Item;
      if (source >= 0 && ring.at(source).place > item.place) {
        ring.set(target, ring.at(source));
        source -= 1;
      } else {
        ring.set(target, item);
        index -= 1;
      }
    }
  }

  /** Removes an item that is in the log. */
  remove(item: Item): void {
    item.removed = true;
    this.#garbage += 1;
    while (this.#garbage > 0 && (this.#ring.first() as Item).removed) {
      this.#ring.shift();
      this.#garbage -= 1;
    }
    if (this.#garbage > SMALL_GARBAGE && this.#garbage * 2 > this.#ring.length) this.#compact();
  }

  /** The item at exactly this place, or `undefined`. */
  find(place: number): Item | undefined {
    for (let index = this.#indexFrom(place); index < this.#ring.length; index += 1) {
      const item = this.#ring.at(index);
      if (item.place !== place) return undefined;
      if (!item.removed) return item;
    }
    return undefined;
  }

  /** Shows the items from `place` on, in order, until `visitor` answers false. The log must not change meanwhile. */
  visit(place: number, visitor: (item: Item) => boolean): boolean {
    for (let index = this.#indexFrom(place); index < this.#ring.length; index += 1) {
      const item = this.#ring.at(index);
      if (!item.removed && !visitor(item)) return false;
    }
    return true;
  }

  /** Shows the items below `place`, the last one first, until `visitor` answers false. The log must not change meanwhile. */
  visitBack(place: number, visitor: (item: Item) => boolean): boolean {
    for (let index = this.#indexFrom(place) - 1; index >= 0; index -= 1) {
      const item = this.#ring.at(index);
      if (!item.removed && !visitor(item)) return false;
    }
    return true;
  }

  /** The index of the first item, garbage included, whose place is not below `place`. */
  #indexFrom(place: number): number {
    const ring = this.#ring;
    let low = 0;
    let high = ring.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ring.at(middle).place < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Moves the items together at the end and drops the front. */
  #compact(): void {
    const ring = this.#ring;
    let target = ring.length;
    for (let index = ring.length - 1; index >= 0; index -= 1) {
      const item = ring.at(index);
      if (item.removed) continue;
      target -= 1;
      ring.set(target, item);
    }
    ring.dropFirst(target);
    this.#garbage = 0;
  }
}
