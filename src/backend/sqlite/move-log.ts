/** Moving the write-ahead log into the file, on any connection. */

import type { Database } from "./connection.ts";

/** What became of it: what SQLite tells of a checkpoint. */
export interface LogState {
  /** Pages in the log. */
  readonly pages: number;
  /** Of these, those that are in the file too. */
  readonly moved: number;
}

type Columns = [busy: number, pages: number, moved: number];

/** The log of one connection. */
export class LogMover {
  readonly #look;
  readonly #move;
  readonly #begin;

  constructor(database: Database) {
    const prepare = (mode: string) => database.prepare<unknown[], unknown>(`PRAGMA wal_checkpoint(${mode})`).raw(true);
    this.#look = prepare("NOOP");
    this.#move = prepare("PASSIVE");
    this.#begin = prepare("RESTART");
  }

  /** Says how much there is, and moves nothing. */
  look(): LogState {
    const [, pages, moved] = this.#look.get() as Columns;
    return { pages, moved };
  }

  /** Moves what can be moved without anybody having to wait. Where another process does it right now, nothing. */
  move(): void {
    this.#move.get();
  }

  /**
   * Moves what is left, and sees to it that the next commit begins the log anew, which SQLite does by itself only where all is moved at an
   * instant at which nobody writes. Writers wait meanwhile. Answers whether it came to that: another process may have been writing.
   */
  beginAnew(): boolean {
    const [busy] = this.#begin.get() as Columns;
    return busy === 0;
  }
}
