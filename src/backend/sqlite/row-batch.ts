/** Rows that one transaction adds to one table, some at a time. */

import type { Prepared } from "./statements.ts";

/** Rows of one run. */
const ROWS = 16;

/** Rows on their way into a table. Whoever reads the table first flushes them. */
export class RowBatch {
  readonly #one: Prepared;
  readonly #many: Prepared;
  readonly #length: number;
  #values: unknown[] = [];

  /**
   * @param one stores one row
   * @param many stores so many rows as {@link ROWS} says
   * @param parameters those of one row
   */
  constructor(one: Prepared, many: Prepared, parameters: number) {
    this.#one = one;
    this.#many = many;
    this.#length = parameters;
  }

  /** Adds a row: its parameters, in their order. */
  add(...parameters: readonly unknown[]): void {
    const values = this.#values;
    for (const parameter of parameters) values.push(parameter);
    if (values.length < ROWS * this.#length) return;
    this.#values = [];
    // Given one by one: of an array each would be looked up.
    this.#many.run(...values);
  }

  /** Stores what was added. */
  flush(): void {
    const values = this.#values;
    if (values.length === 0) return;
    this.#values = [];
    if (values.length === this.#length) this.#one.run(...values);
    else for (let start = 0; start < values.length; start += this.#length) this.#one.run(...values.slice(start, start + this.#length));
  }
}
