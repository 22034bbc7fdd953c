/** The names of the queues of a store, in the order of listings. */

import { compareNames, type QueueName } from "../../core/names.ts";

/** A sorted array: making and removing a queue are rare, and listing a part of a tree is a binary search. */
export class NameIndex {
  readonly #names: QueueName[] = [];

  /** Adds a name that is not there yet. */
  add(name: QueueName): void {
    this.#names.splice(this.#indexFrom(name), 0, name);
  }

  /** Removes a name that is there. */
  delete(name: QueueName): void {
    this.#names.splice(this.#indexFrom(name), 1);
  }

  /** The names at and under a path (`""` for all) that come after the text `after`, at most so many. */
  within(path: string, after = "", atMost = Number.POSITIVE_INFINITY): QueueName[] {
    const found: QueueName[] = [];
    if (path === "") return this.#range("", undefined, after, atMost, found);
    if (atMost > 0 && compareNames(after, path) < 0 && this.#names[this.#indexFrom(path)] === path) found.push(path as QueueName);
    // What lies under a path is one range, but the path itself does not stand next to it: `a`, `a-b`, `a/b`, `a0`.
    return this.#range(`${path}/`, `${path}0`, after, atMost, found);
  }

  #range(from: string, before: string | undefined, after: string, atMost: number, found: QueueName[]): QueueName[] {
    let index = this.#indexFrom(compareNames(after, from) > 0 ? after : from);
    if (this.#names[index] === after) index += 1;
    for (; index < this.#names.length && found.length < atMost; index += 1) {
      const name = this.#names[index] as QueueName;
      if (before !== undefined && compareNames(name, before) >= 0) break;
      found.push(name);
    }
    return found;
  }

  #indexFrom(text: string): number {
    let low = 0;
    let high = this.#names.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareNames(this.#names[middle] as string, text) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
