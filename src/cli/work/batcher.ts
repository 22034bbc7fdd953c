/** Gathers single messages into groups, for programs that take several at a time. */

/** One item that waits for its group's end. */
interface Waiting<Item> {
  readonly item: Item;
  readonly signal: AbortSignal;
  readonly resolve: (end: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** How long an incomplete group waits for more, in milliseconds: messages claimed together come within one turn. */
const GATHER_MS = 20;

/** Runs `work` on groups of at most `size` items, at most `parallel` groups at once. */
export class Batcher<Item, End> {
  readonly #size: number;
  readonly #parallel: number;
  readonly #work: (items: readonly Item[], signal: AbortSignal) => Promise<End>;
  #waiting: Waiting<Item>[] = [];
  #running = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(size: number, parallel: number, work: (items: readonly Item[], signal: AbortSignal) => Promise<End>) {
    this.#size = size;
    this.#parallel = parallel;
    this.#work = work;
  }

  /** Adds an item; resolves or rejects as its group's work does. */
  add(item: Item, signal: AbortSignal): Promise<End> {
    return new Promise<End>((resolve, reject) => {
      this.#waiting.push({ item, signal, resolve: resolve as (end: unknown) => void, reject });
      this.#next(false);
    });
  }

  #next(gathered: boolean): void {
    while (this.#running < this.#parallel && this.#waiting.length > 0) {
      if (this.#waiting.length < this.#size && !gathered) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.#next(true);
        }, GATHER_MS);
        return;
      }
      void this.#run(this.#waiting.splice(0, this.#size));
    }
  }

  async #run(group: readonly Waiting<Item>[]): Promise<void> {
    this.#running += 1;
    try {
      // The group ends early when any of its messages is lost or the worker stops: its program cannot unlearn one of them.
      const end = await this.#work(
        group.map(({ item }) => item),
        AbortSignal.any(group.map(({ signal }) => signal)),
      );
      for (const { resolve } of group) resolve(end);
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      this.#running -= 1;
      this.#next(false);
    }
  }
}
