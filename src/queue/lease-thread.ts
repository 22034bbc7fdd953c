/** A second thread that renews leases while the event loop of this one is kept busy by a handler. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Reopening } from "../backend/contract.ts";
import type { QueueName, Receipt } from "../core/names.ts";
import type { HeldLease } from "./lease-keeper.ts";

/** What the thread is told of a lease. Times are of the monotonic clock, which all threads share. */
export interface ThreadLease {
  readonly queue: QueueName;
  readonly receipt: Receipt;
  readonly leaseMs: number;
  readonly sinceMs: number;
  readonly longestBusyMs: number;
}

/** What the thread is sent. */
export type ThreadMessage = { readonly hold: readonly ThreadLease[] } | { readonly drop: readonly Receipt[] } | "close";

/** What the thread is started with. */
export interface ThreadData {
  readonly reopening: Reopening;
  /** One number: the monotonic clock in milliseconds when the main thread last turned, as a double. */
  readonly beat: SharedArrayBuffer;
}

/** The program of the thread, beside this module. A name apart, so that bundlers do not look for the file. */
const PROGRAM = "lease-thread-main.js";
/** How often the main thread shows that its event loop turns, while leases are held, in milliseconds. */
const BEAT_MS = 50;
/** How long the thread may take to close its store, in milliseconds; then it is ended. */
const CLOSE_MS = 300;

/** The thread, seen from the main thread. */
export class LeaseThread {
  readonly #worker: Worker;
  readonly #beat = new Float64Array(new SharedArrayBuffer(8));
  #timer: ReturnType<typeof setInterval> | undefined;
  #held = 0;
  #dropped: Receipt[] = [];
  #ended = false;
  /** Resolves when the thread can renew at need, or has ended. */
  readonly ready: Promise<void>;

  private constructor(program: URL, reopening: Reopening, onError: (error: unknown) => void) {
    const data: ThreadData = { reopening, beat: this.#beat.buffer as SharedArrayBuffer };
    // Of what the process was started with, some is refused by threads (--input-type).
    this.#worker = new Worker(program, { workerData: data, name: "queuefs-leases", execArgv: [] });
    this.#worker.unref();
    this.#worker.on("error", onError);
    this.ready = new Promise((resolve) => {
      this.#worker.once("message", () => resolve());
      this.#worker.once("exit", () => {
        this.#ended = true;
        this.#stopBeating();
        resolve();
      });
    });
  }

  /**
   * Starts the thread, or answers `undefined` where no other thread can open the store, or where the thread's program does not lie beside
   * this module (QueueFS run from its sources, or bundled into another program); leases are then renewed by this thread alone.
   */
  static start(reopening: Reopening | undefined, onError: (error: unknown) => void): LeaseThread | undefined {
    const program = new URL(`./${PROGRAM}`, import.meta.url);
    if (reopening === undefined || program.protocol !== "file:" || !existsSync(fileURLToPath(program))) return undefined;
    return new LeaseThread(program, reopening, onError);
  }

  #show(): void {
    this.#beat[0] = Number(process.hrtime.bigint()) / 1e6;
    if (this.#dropped.length > 0) this.#send({ drop: this.#dropped });
    this.#dropped = [];
    if (this.#held === 0) this.#stopBeating();
  }

  #stopBeating(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #send(message: ThreadMessage): void {
    if (!this.#ended) this.#worker.postMessage(message);
  }

  /** Tells of leases now, not later: the very next thing this thread does may keep it busy. */
  hold(leases: readonly HeldLease[], sinceMs: number): void {
    if (this.#ended) return;
    this.#held += leases.length;
    this.#beat[0] = Number(process.hrtime.bigint()) / 1e6;
    this.#send({
      hold: leases.map(({ queue, receipt, leaseMs, longestBusyMs }) => ({ queue, receipt, leaseMs, longestBusyMs, sinceMs })),
    });
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#show(), BEAT_MS);
      this.#timer.unref();
    }
  }

  /** Forgets a lease, told with others at the next beat: renewing a settled delivery does nothing. */
  drop(receipt: Receipt): void {
    if (this.#ended) return;
    this.#held -= 1;
    this.#dropped.push(receipt);
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#stopBeating();
    if (this.#ended) return;
    const exited = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    this.#send("close");
    // Its store may not answer, and whoever ends must not wait for that.
    const timer = setTimeout(() => void this.#worker.terminate(), CLOSE_MS);
    await exited;
    clearTimeout(timer);
  }
}
