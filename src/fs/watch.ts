/** Hints of changes, merged while nobody takes them. */

import type { Backend } from "../backend/contract.ts";
import { MAX_PAGE_ITEMS } from "../core/limits.ts";
import { isWithin, type QueueName } from "../core/names.ts";
import type { FileChange } from "./port.ts";

interface Waiting {
  readonly resolve: (result: IteratorResult<FileChange>) => void;
  readonly reject: (reason: unknown) => void;
}

/** What is watched: the queues at and under a path, or tasks. Of those the store tells no more than that something changed. */
export type Watched = { readonly under: QueueName | "" } | "tasks";

/** One watch of queues or tasks. It holds one merged hint at most, however many changes there are. */
export class Watch implements AsyncIterableIterator<FileChange> {
  readonly #watched: Watched;
  readonly #signal: AbortSignal | undefined;
  readonly #onEnd: (watch: Watch) => void;
  readonly #unsubscribe: () => void;
  /** Whether the path is known to exist; nothing is told before. */
  #started = false;
  #failure: { readonly error: unknown } | undefined;
  #hint: Set<string> | "any" | undefined;
  #waiting: Waiting[] = [];
  #ended = false;

  /**
   * @param exists resolves when the path is known to exist, rejects when it does not: then the next `next` rejects with that
   * @param onEnd called once, when the watch ends
   */
  constructor(
    backend: Backend,
    watched: Watched,
    exists: Promise<unknown>,
    signal: AbortSignal | undefined,
    onEnd: (watch: Watch) => void,
  ) {
    this.#watched = watched;
    this.#signal = signal;
    this.#onEnd = onEnd;
    this.#unsubscribe = backend.subscribe((queues) => this.#onChange(queues));
    exists.then(
      () => {
        this.#started = true;
        this.#deliver();
      },
      (error: unknown) => this.#fail(error),
    );
    signal?.addEventListener("abort", this.end);
    if (signal?.aborted) this.end();
  }

  /** Whether the watch has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The next hint, once there is one. */
  async next(): Promise<IteratorResult<FileChange>> {
    if (this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      throw error;
    }
    if (this.#ended) return { done: true, value: undefined };
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#deliver();
    });
  }

  /** Ends the watch. */
  async return(): Promise<IteratorResult<FileChange>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Ends the watch; calling it twice is harmless. */
  readonly end = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#hint = undefined;
    this.#unsubscribe();
    this.#signal?.removeEventListener("abort", this.end);
    for (const { resolve } of this.#waiting) resolve({ done: true, value: undefined });
    this.#waiting = [];
    this.#onEnd(this);
  };

  #fail(error: unknown): void {
    if (this.#ended) return;
    const first = this.#waiting.shift();
    if (first === undefined) this.#failure = { error };
    else first.reject(error);
    this.end();
  }

  #onChange(queues: ReadonlySet<QueueName> | undefined): void {
    if (!this.#ended && this.#merge(queues)) this.#deliver();
  }

  #deliver(): void {
    if (!this.#started || this.#hint === undefined) return;
    const first = this.#waiting.shift();
    // Whoever comes next gets the hint, merged with those that come until then.
    if (first !== undefined) first.resolve({ done: false, value: this.#take() });
  }

  /** Whether anything in `queues` concerns the watch. */
  #merge(queues: ReadonlySet<QueueName> | undefined): boolean {
    if (queues === undefined || this.#watched === "tasks") {
      this.#hint = "any";
      return true;
    }
    const { under } = this.#watched;
    // No queue, hence a task: those are under the root.
    let concerned = under === "" && queues.size === 0;
    if (concerned) this.#hint ??= new Set();
    for (const queue of queues) {
      if (under !== "" && !isWithin(queue, under)) continue;
      concerned = true;
      if (this.#hint === "any") break;
      this.#hint ??= new Set();
      this.#hint.add(queue);
      if (this.#hint.size > MAX_PAGE_ITEMS) this.#hint = "any";
    }
    return concerned;
  }

  #take(): FileChange {
    const hint = this.#hint;
    this.#hint = undefined;
    return hint === undefined || hint === "any" ? {} : { queues: [...hint] };
  }
}
