/**
 * Checkpoints on a second thread: moving the log into the file takes milliseconds, which the writer then need not spend between two commits.
 * The thread is started once the store has been at work for a while, so short-lived processes never have it.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Database } from "./connection.ts";
import type { Prepared } from "./statements.ts";

/** What the thread is started with. */
export interface CheckpointData {
  readonly path: string;
  readonly durability: "full" | "normal";
}

/** Pages in the log and not in the file from which on the thread is asked to move them: what SQLite does by itself unless told otherwise. */
const PAGES = 1_000;
/**
 * Pages from which on the writer moves them itself, since the thread does not keep up. The log begins anew only when all is moved, which under
 * load the thread alone may never reach; then this bounds it, to some 8 MiB.
 */
const MOST_PAGES = 4_000;
/** Commits between two looks: a look costs as much as a small statement. */
const COMMITS_PER_LOOK = 8;
/** Commits before the thread is started: starting it takes as long as some hundred checkpoints. */
const COMMITS_BEFORE = 2_000;
/** How long the thread may take to close, in milliseconds; then it is ended. */
const CLOSE_MS = 500;
/** The program of the thread, beside this module. A name apart, so that bundlers do not look for the file. */
const PROGRAM = "checkpoint-thread-main.js";

/** Has the log of one database moved into its file. */
export class CheckpointThread {
  readonly #database: Database;
  readonly #data: CheckpointData;
  readonly #onError: (error: unknown) => void;
  readonly #program: URL;
  readonly #look: Prepared;
  #worker: Worker | undefined;
  /** Whether no thread can be used: QueueFS run from its sources, or bundled; or it failed. */
  #isOff: boolean;
  #isReady = false;
  #isAsked = false;
  #commits = COMMITS_PER_LOOK - COMMITS_BEFORE;

  constructor(database: Database, data: CheckpointData, onError: (error: unknown) => void) {
    this.#database = database;
    this.#data = data;
    this.#onError = onError;
    this.#program = new URL(`./${PROGRAM}`, import.meta.url);
    this.#isOff = this.#program.protocol !== "file:" || !existsSync(fileURLToPath(this.#program));
    // Says how much there is to move, and moves nothing.
    this.#look = database.prepare<unknown[], unknown>("PRAGMA wal_checkpoint(NOOP)").raw(true);
  }

  /** Called after each commit of the writer. */
  afterCommit(): void {
    this.#commits += 1;
    if (this.#isOff || this.#isAsked || this.#commits < COMMITS_PER_LOOK) return;
    this.#commits = 0;
    const [, pages, moved] = this.#look.get() as [busy: number, pages: number, moved: number];
    // While the writer still does it itself, there is never as much.
    if (pages - moved < (this.#isReady ? PAGES : PAGES / 2)) return;
    this.#isAsked = true;
    this.#started().postMessage("checkpoint");
  }

  #started(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    // Of what the process was started with, some is refused by threads (--input-type).
    const worker = new Worker(this.#program, { workerData: this.#data, name: "queuefs-checkpoints", execArgv: [] });
    worker.unref();
    worker.on("message", () => {
      this.#isAsked = false;
      if (this.#isReady || this.#isOff) return;
      this.#isReady = true;
      this.#database.pragma(`wal_autocheckpoint = ${MOST_PAGES}`);
    });
    worker.on("error", (error) => {
      // One that is still starting when the store is closed may find it gone.
      if (!this.#isOff) this.#onError(error);
    });
    worker.on("exit", () => this.#turnOff());
    this.#worker = worker;
    return worker;
  }

  /** Without the thread the writer goes back to what SQLite does by itself. */
  #turnOff(): void {
    this.#isOff = true;
    this.#worker = undefined;
    if (this.#database.open) this.#database.pragma(`wal_autocheckpoint = ${PAGES}`);
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#isOff = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    if (this.#isReady) worker.postMessage("close");
    else void worker.terminate();
    const timer = setTimeout(() => void worker.terminate(), CLOSE_MS);
    await exited;
    clearTimeout(timer);
  }
}
