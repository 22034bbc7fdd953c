/** Reads what the worker processes have written down, as it grows. */

import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";

/** The files of one folder, one for each process. */
export class Records {
  readonly #folder: string;
  readonly #read = new Map<string, { offset: number; rest: string }>();
  /** By queue: how often each piece of work was done. */
  readonly done: readonly [Map<number, number>, Map<number, number>] = [new Map(), new Map()];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Takes in all that has been written by now. */
  refresh(): void {
    for (const name of readdirSync(this.#folder)) if (name.endsWith(".record")) this.#refreshOne(name);
  }

  #refreshOne(name: string): void {
    const state = this.#read.get(name) ?? { offset: 0, rest: "" };
    this.#read.set(name, state);
    const file = openSync(join(this.#folder, name), "r");
    const chunk = Buffer.alloc(64 * 1024);
    for (;;) {
      const length = readSync(file, chunk, 0, chunk.length, state.offset);
      if (length === 0) break;
      state.offset += length;
      const lines = (state.rest + chunk.toString("latin1", 0, length)).split("\n");
      state.rest = lines.pop() ?? "";
      for (const line of lines) {
        const [queue, number] = line.split(" ").map(Number) as [0 | 1, number];
        this.done[queue].set(number, (this.done[queue].get(number) ?? 0) + 1);
      }
    }
    closeSync(file);
  }
}
