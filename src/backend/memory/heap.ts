/** A priority queue by number: lease ends, delays and expiries by time, returned messages by place. */

/** Arrays shorter than this are kept although they are mostly unused. */
const LARGEST_UNUSED = 256;

/**
 * A binary heap, smallest key first; items of equal keys leave in the order they came. Taking an item out of the middle is not
 * offered: an owner remembers the stamp of its latest push and lets earlier ones become garbage, which {@link Heap.compact} removes.
 */
export class Heap<Item> {
  // Three arrays instead of one of objects: keys stay unboxed, and a push allocates nothing.
  readonly #keys: number[] = [];
  readonly #stamps: number[] = [];
  readonly #items: (Item | undefined)[] = [];
  // The arrays are longer than the heap, since making them shorter and longer again would cost more than what is done between. What
  // lies beyond the heap is `undefined`, or a number without meaning.
  #size = 0;
  #lastStamp = 0;

  /** How many items it holds, garbage included. */
  get size(): number {
    return this.#size;
  }

  /** The smallest key, or `Infinity` when it is empty. */
  firstKey(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#keys[0] as number);
  }

  /** The item of the smallest key; there must be one. */
  first(): Item {
    return this.#items[0] as Item;
  }

  /** The stamp that the push of the first item answered; there must be one. */
  firstStamp(): number {
    return this.#stamps[0] as number;
  }

  /** Adds an item. @returns its stamp: positive, larger than all stamps of this heap before */
  push(key: number, item: Item): number {
    this.#lastStamp += 1;
    const stamp = this.#lastStamp;
    this.#size += 1;
    this.#rise(this.#size - 1, key, stamp, item);
    return stamp;
  }

  /** Removes the item of the smallest key and returns it, or `undefined` when there is none. */
  pop(): Item | undefined {
    if (this.#size === 0) return undefined;
    const first = this.#items[0];
    const last = this.#size - 1;
    const key = this.#keys[last] as number;
    const stamp = this.#stamps[last] as number;
    const item = this.#items[last] as Item;
    this.#cut(last);
    if (last > 0) this.#sink(0, key, stamp, item);
    return first;
  }

  /** Keeps only the items that `isCurrent` confirms. Costs the size of the heap. */
  compact(isCurrent: (item: Item, stamp: number) => boolean): void {
    let kept = 0;
    for (let index = 0; index < this.#size; index += 1) {
      const item = this.#items[index] as Item;
      const stamp = this.#stamps[index] as number;
      if (!isCurrent(item, stamp)) continue;
      this.#put(kept, this.#keys[index] as number, stamp, item);
      kept += 1;
    }
    this.#cut(kept);
    for (let index = (kept >> 1) - 1; index >= 0; index -= 1) {
      this.#sink(index, this.#keys[index] as number, this.#stamps[index] as number, this.#items[index] as Item);
    }
  }

  /** Makes the heap smaller, and the arrays when most of them is unused. */
  #cut(size: number): void {
    this.#items.fill(undefined, size, this.#size);
    this.#size = size;
    if (this.#keys.length < LARGEST_UNUSED || size * 4 > this.#keys.length) return;
    this.#keys.length = size;
    this.#stamps.length = size;
    this.#items.length = size;
  }

  #put(index: number, key: number, stamp: number, item: Item): void {
    this.#keys[index] = key;
    this.#stamps[index] = stamp;
    this.#items[index] = item;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#keys[from] as number, this.#stamps[from] as number, this.#items[from] as Item);
  }

  #before(left: number, key: number, stamp: number): boolean {
    const leftKey = this.#keys[left] as number;
    return leftKey < key || (leftKey === key && (this.#stamps[left] as number) < stamp);
  }

  /** Puts an item where it belongs, at `start`, which is free, or before. */
  #rise(start: number, key: number, stamp: number, item: Item): void {
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#before(parent, key, stamp)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#put(index, key, stamp, item);
  }

  /** Puts an item where it belongs, at `start`, which is free, or behind. */
  #sink(start: number, key: number, stamp: number, item: Item): void {
    const size = this.#size;
    let index = start;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#before(child + 1, this.#keys[child] as number, this.#stamps[child] as number)) child += 1;
      if (!this.#before(child, key, stamp)) break;
      this.#move(child, index);
      index = child;
    }
    this.#put(index, key, stamp, item);
  }
}
