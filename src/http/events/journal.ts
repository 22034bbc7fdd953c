/** The last changes of a store, numbered, so that a reader who was away hears what it missed, or that this is not known any more. */

import type { QueueName } from "../../core/names.ts";

/** What changed. */
export interface Change {
  /** The queues; `undefined` for any. */
  readonly queues: ReadonlySet<QueueName> | undefined;
  /** Whether some task changed, beside those whose messages did. */
  readonly tasks: boolean;
}

/** Names beyond which a change is told as one of any queue: a longer list is dearer than looking. */
export const MAX_NAMES_OF_CHANGE = 1_000;
/** Names in all that are kept, which bounds the memory of the whole journal to some megabytes. */
const MAX_NAMES = 100_000;

/** Changes that were heard together. */
export class Heard {
  #queues: Set<QueueName> | undefined = new Set();
  #tasks = false;
  /** Whether anything was heard. */
  isEmpty = true;

  /** Adds what a listener of a store is told. */
  add(queues: ReadonlySet<QueueName> | undefined): void {
    this.isEmpty = false;
    if (queues?.size === 0) this.#tasks = true;
    this.#merge(queues);
  }

  /** Adds a change. */
  merge({ queues, tasks }: Change): void {
    this.isEmpty = false;
    this.#tasks ||= tasks;
    this.#merge(queues);
  }

  #merge(queues: ReadonlySet<QueueName> | undefined): void {
    if (this.#queues === undefined) return;
    if (queues === undefined) {
      this.#queues = undefined;
      return;
    }
    for (const queue of queues) this.#queues.add(queue);
    if (this.#queues.size > MAX_NAMES_OF_CHANGE) this.#queues = undefined;
  }

  /** All of it as one change. */
  get change(): Change {
    return { queues: this.#queues, tasks: this.#tasks };
  }
}

/** The last changes. */
export class Journal {
  readonly #maximum: number;
  /** Those of the numbers `#last - length + 1` to `#last`. */
  #changes: Change[] = [];
  #names = 0;
  #last = 0;

  /** @param maximum changes that are kept */
  constructor(maximum: number) {
    this.#maximum = maximum;
  }

  /** The number of the last change. */
  get last(): number {
    return this.#last;
  }

  /** Keeps a change and gives its number. */
  add(change: Change): number {
    this.#changes.push(change);
    this.#names += change.queues?.size ?? 0;
    // The newest stays whatever its size.
    while (this.#changes.length > 1 && (this.#changes.length > this.#maximum || this.#names > MAX_NAMES)) {
      this.#names -= this.#changes.shift()?.queues?.size ?? 0;
    }
    this.#last += 1;
    return this.#last;
  }

  /** Whether all is known that changed after a number. */
  knows(number: number): boolean {
    return number <= this.#last && number >= this.#last - this.#changes.length;
  }

  /** What changed after a number that is known, as one change. */
  since(number: number): Change {
    const heard = new Heard();
    for (const change of this.#changes.slice(this.#changes.length - (this.#last - number))) heard.merge(change);
    return heard.change;
  }

  /** Says that something may have changed that nobody heard: nothing before now is known any more. */
  lose(): void {
    this.#changes = [];
    this.#names = 0;
    this.#last += 1;
  }
}
