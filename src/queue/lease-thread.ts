/** A second thread that renews leases while the event loop of this one is kept busy by a handler. */

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
  readonly untilMs: number;
}

/** What the thread is sent. */
export type ThreadMessage = { readonly hold: readonly ThreadLease[] } | { readonly drop: readonly Receipt[] } | "close";

/** What the thread is started with. */
export interface ThreadData {
  readonly reopening: Reopening;
  /** One number: the monotonic clock in milliseconds when the main thread last turned, as a double. */
  readonly beat: SharedArrayBuffer;
}

/** How often the main thread shows that its event loop turns, in milliseconds. */
const BEAT_MS = 50;

/** The thread, seen from the main thread. */
export class LeaseThread {
  readonly #worker: Worker;
  readonly #beat = new Float64Array(new SharedArrayBuffer(8));
  readonly #timer: ReturnType<typeof setInterval>;
  #dropped: Receipt[] = [];
  #ended = false;

  private constructor(reopening: Reopening, onError: (error: unknown) => void) {
    const data: ThreadData = { reopening, beat: this.#beat.buffer as SharedArrayBuffer };
    // Errors and warnings of the main thread's flags concern it alone.
    this.#worker = new Worker(new URL("./lease-thread-main.js", import.meta.url), { workerData: data, name: "queuefs-leases" });
    this.#worker.unref();
    this.#worker.on("error", onError);
    this.#worker.on("exit", () => {
      this.#ended = true;
    });
    this.#show();
    this.#timer = setInterval(() => this.#show(), BEAT_MS);
    this.#timer.unref();
  }

  /**
   * Starts the thread, or answers `undefined` where no other thread can open the store, or where QueueFS runs from its sources (a thread
   * cannot load TypeScript); leases are then renewed by this thread alone.
   */
  static start(reopening: Reopening | undefined, onError: (error: unknown) => void): LeaseThread | undefined {
    if (reopening === undefined || import.meta.url.endsWith(".ts")) return undefined;
    return new LeaseThread(reopening, onError);
  }

  #show(): void {
    this.#beat[0] = Number(process.hrtime.bigint()) / 1e6;
    if (this.#dropped.length === 0 || this.#ended) return;
    this.#send({ drop: this.#dropped });
    this.#dropped = [];
  }

  #send(message: ThreadMessage): void {
    if (!this.#ended) this.#worker.postMessage(message);
  }

  /** Tells of leases now, not later: the very next thing this thread does may keep it busy. */
  hold(leases: readonly HeldLease[], sinceMs: number): void {
    this.#send({ hold: leases.map(({ queue, receipt, leaseMs, untilMs }) => ({ queue, receipt, leaseMs, untilMs, sinceMs })) });
  }

  /** Forgets a lease, told with others at the next beat: renewing a settled delivery does nothing. */
  drop(receipt: Receipt): void {
    this.#dropped.push(receipt);
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#send("close");
    if (!this.#ended) await new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
  }
}
