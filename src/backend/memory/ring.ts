/** A first-in first-out sequence in a circular array: both ends and any index in constant time, whatever the length. */

/** Smallest capacity; below it neither growing nor shrinking is worth its copy. Must be a power of two. */
const SMALLEST_CAPACITY = 16;

/** A growable ring. It doubles when full and halves when three quarters are unused, so that a drained queue gives its memory back. */
export class Ring<Item> {
  #slots: (Item | undefined)[] = new Array(SMALLEST_CAPACITY).fill(undefined);
  #head = 0;
  #length = 0;

  /** How many items it holds. */
  get length(): number {
    return this.#length;
  }

  /** Appends an item. */
  push(item: Item): void {
    if (this.#length === this.#slots.length) this.#resize(this.#length * 2);
    this.#slots[(this.#head + this.#length) & (this.#slots.length - 1)] = item;
    this.#length += 1;
  }

  /** The item at `index`, counted from the first; the index must be below the length. */
  at(index: number): Item {
    return this.#slots[(this.#head + index) & (this.#slots.length - 1)] as Item;
  }

  /** The first item, or `undefined` when there is none. */
  first(): Item | undefined {
    return this.#slots[this.#head];
  }

  /** The last item, or `undefined` when there is none. */
  last(): Item | undefined {
    return this.#length === 0 ? undefined : this.at(this.#length - 1);
  }

  /** Replaces the item at `index`, which must be below the length. */
  set(index: number, item: Item): void {
    this.#slots[(this.#head + index) & (this.#slots.length - 1)] = item;
  }

  /** Removes the first item and returns it, or `undefined` when there is none. */
  shift(): Item | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#length -= 1;
    this.#shrink();
    return item;
  }

  /** Removes the first `count` items, which must not be more than there are. */
  dropFirst(count: number): void {
    for (let index = 0; index < count; index += 1) this.#slots[(this.#head + index) & (this.#slots.length - 1)] = undefined;
    this.#head = (this.#head + count) & (this.#slots.length - 1);
    this.#length -= count;
    this.#shrink();
  }

  #shrink(): void {
    let capacity = this.#slots.length;
    while (capacity > SMALLEST_CAPACITY && this.#length * 4 <= capacity) capacity /= 2;
    if (capacity < this.#slots.length) this.#resize(capacity);
  }

  #resize(capacity: number): void {
    const slots: (Item | undefined)[] = new Array(capacity).fill(undefined);
    for (let index = 0; index < this.#length; index += 1) slots[index] = this.at(index);
    this.#slots = slots;
    this.#head = 0;
  }
}
