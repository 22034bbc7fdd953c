/**
 * When the log is moved into the file. SQLite would try at every commit once the log is long, each time with two waits for the disk, and where
 * several processes write it would go on trying in vain: the log is never all moved while others add to it. So it is looked at now and then,
 * moved in large steps, on a second thread once the store has been at work for a while, and begun anew in one short step that others wait for.
 */

import { QueueFSError } from "../../core/errors.ts";
import { type CheckpointData, CheckpointThread } from "./checkpoint-thread.ts";
import type { Database } from "./connection.ts";
import { LogMover } from "./move-log.ts";
import { isFull } from "./sqlite-error.ts";

/** Pages in the log and not in the file from which on they are moved: what SQLite does by itself unless told otherwise. */
const PAGES = 1_000;
/** Pages in the log from which on it is begun anew. */
const LONG_PAGES = 2 * PAGES;
/** Pages that the log seldom gets beyond: those that are written before it is looked at, and moved. */
export const MOST_PAGES = 3 * PAGES;
/** Pages from which on it is not left to the thread: some 8 MiB. */
const TOO_LONG_PAGES = 2 * LONG_PAGES;
/** How often it is tried then to begin the log anew: each try waits a millisecond for others who write, which slows all of them down. */
const TRIES = 5;
/** Pages from which on SQLite moves them at a commit all the same, should nobody else have come to it. */
const LAST_RESORT_PAGES = 4 * MOST_PAGES;
/** Commits between two looks: a look costs as much as a small statement. */
const COMMITS_PER_LOOK = 8;
/** Bytes of payload that count as much as a commit: then some hundred pages lie between two looks. */
const BYTES_PER_COMMIT = 16 * 1024;
/** Commits before the thread is started: starting it takes as long as some hundred checkpoints. */
const COMMITS_BEFORE = 2_000;

/** Has the log of one database moved into its file. */
export class Checkpoints {
  readonly #database: Database;
  readonly #log: LogMover;
  readonly #thread: CheckpointThread;
  readonly #path: string;
  #commits = 0;
  #looks = 0;
  /** Whether the file could not take the log in, since the disk is full. */
  #isStuck = false;

  constructor(database: Database, data: CheckpointData, onError: (error: unknown) => void) {
    this.#database = database;
    this.#path = data.path;
    this.#log = new LogMover(database);
    this.#thread = new CheckpointThread(data, onError);
  }

  /**
   * Called after each commit of the writer.
   *
   * @param bytes payload that it stored
   * @throws what the driver raises when the log cannot be read or moved, unless the disk is full
   */
  afterCommit(bytes: number): void {
    this.#commits += 1 + bytes / BYTES_PER_COMMIT;
    if (this.#commits < COMMITS_PER_LOOK) return;
    this.#commits = 0;
    // Until here, which many a process never reaches, SQLite's own way was right.
    if (this.#looks === 0) this.#database.pragma(`wal_autocheckpoint = ${LAST_RESORT_PAGES}`);
    this.#looks += 1;
    const { pages, moved } = this.#log.look();
    const isLong = pages >= LONG_PAGES;
    if (pages - moved < PAGES && !isLong) return;
    // A thread that gets no processor does not keep up: then the writer waits for it, or does it itself.
    if (pages < TOO_LONG_PAGES && this.#thread.isBusy) return;
    if (pages < TOO_LONG_PAGES && this.#looks * COMMITS_PER_LOOK >= COMMITS_BEFORE && this.#thread.ask(isLong)) return;
    this.#move(isLong ? (pages < TOO_LONG_PAGES ? 1 : TRIES) : 0);
  }

  /**
   * Refuses to store more while the file cannot take in what is in the log: with more of it, what is kept free for acks would not be enough.
   *
   * @throws QueueFSError `store-full`
   */
  admit(): void {
    if (!this.#isStuck && !this.#thread.isStuck) return;
    this.#thread.isStuck = false;
    this.#move(0);
    if (!this.#isStuck) return;
    throw new QueueFSError(
      "store-full",
      `${this.#path}: the disk is full, and the file cannot take in the log beside it; free space, then try again. Acks still work`,
    );
  }

  #move(tries: number): void {
    try {
      this.#log.move();
      for (let attempt = 1; attempt <= tries && !this.#log.beginAnew(); attempt += 1);
      this.#isStuck = false;
    } catch (error) {
      if (!isFull(error)) throw error;
      this.#isStuck = true;
    }
  }

  /** Ends the thread. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
