/**
 * The second thread that moves the log into the file: that takes milliseconds, which the writer then need not spend between two commits. It is
 * started when it is asked for the first time, so short-lived processes never have it.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

/** What the thread is started with. */
export interface CheckpointData {
  readonly path: string;
  readonly durability: "full" | "normal";
}

/** What it is asked: to move the log, to begin it anew as well, or to end. */
export type CheckpointMessage = "move" | "begin-anew" | "close";

/** What it answers: that it is done, or that the disk is full. */
export type CheckpointAnswer = "done" | "full";

/** How long the thread may take to close, in milliseconds; then it is ended. */
const CLOSE_MS = 500;
/** The program of the thread, beside this module. A name apart, so that bundlers do not look for the file. */
const PROGRAM = "checkpoint-thread-main.js";

/** The thread of one database. */
export class CheckpointThread {
  readonly #data: CheckpointData;
  readonly #onError: (error: unknown) => void;
  readonly #program: URL;
  #worker: Worker | undefined;
  /** Whether no thread can be used: QueueFS run from its sources, or bundled; or it failed. */
  #isOff: boolean;
  #isReady = false;
  #isAsked = false;
  /** Whether it found the disk full. Whoever sees to that sets it back. */
  isStuck = false;

  constructor(data: CheckpointData, onError: (error: unknown) => void) {
    this.#data = data;
    this.#onError = onError;
    this.#program = new URL(`./${PROGRAM}`, import.meta.url);
    this.#isOff = this.#program.protocol !== "file:" || !existsSync(fileURLToPath(this.#program));
  }

  /** Whether it has not yet done what it was asked last. One that is still starting is not waited for. */
  get isBusy(): boolean {
    return this.#isAsked && this.#isReady;
  }

  /** Asks it to move the log, and to begin it anew where that is long. Answers whether it will: not while it starts, nor where there can be none. */
  ask(isLong: boolean): boolean {
    if (this.#isOff) return false;
    const wasReady = this.#isReady;
    if (this.#isAsked) return wasReady;
    this.#isAsked = true;
    this.#started().postMessage((isLong ? "begin-anew" : "move") satisfies CheckpointMessage);
    return wasReady;
  }

  #started(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    // Of what the process was started with, some is refused by threads (--input-type).
    const worker = new Worker(this.#program, { workerData: this.#data, name: "queuefs-checkpoints", execArgv: [] });
    worker.unref();
    worker.on("message", (answer: CheckpointAnswer) => {
      this.isStuck = answer === "full";
      this.#isAsked = false;
      this.#isReady = true;
    });
    worker.on("error", (error) => {
      // One that is still starting when the store is closed may find it gone.
      if (!this.#isOff) this.#onError(error);
    });
    worker.on("exit", () => this.#turnOff());
    this.#worker = worker;
    return worker;
  }

  #turnOff(): void {
    this.#isOff = true;
    this.#isReady = false;
    this.#worker = undefined;
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#isOff = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    if (this.#isReady) worker.postMessage("close" satisfies CheckpointMessage);
    else void worker.terminate();
    const timer = setTimeout(() => void worker.terminate(), CLOSE_MS);
    await exited;
    clearTimeout(timer);
  }
}
