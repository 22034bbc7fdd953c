/** The workers of many queues under one roof: started, paused and stopped together, and answering for all of them in one snapshot. */

import type { Backend } from "../backend/contract.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import type { QueueStatus } from "../core/message.ts";
import { parseQueueName, type QueueName } from "../core/names.ts";
import type { WaitedStatus } from "./clear-watch.ts";
import type { Handler } from "./handler.ts";
import { NamedQueue, type NamedQueueOptions } from "./named-queue.ts";
import type { TelemetryCounts } from "./telemetry.ts";
import { isAllComplete, type WaitOptions, waitComplete } from "./wait.ts";
import { type StopReport, Worker, type WorkerHealth, type WorkerOptions } from "./worker.ts";

/** The status of one queue of a manager: the store's numbers, of one snapshot with the other queues, and this process's telemetry. */
export interface ManagedStatus extends QueueStatus {
  readonly telemetry: TelemetryCounts;
}

/** Runs the workers of several queues, each with its own handler and concurrency. */
export class QueueManager implements AsyncDisposable {
  readonly #backend: Backend;
  readonly #queues = new Map<QueueName, NamedQueue<never>>();
  readonly #workers: Worker<never>[] = [];
  #started = false;
  #stopped: Promise<StopReport> | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /**
   * One of the manager's queues; the options count at the first call for a name.
   *
   * @throws QueueFSError `invalid-argument` when a queue is asked for again with other options
   */
  queue<Value = unknown>(name: string, options?: NamedQueueOptions<Value>): NamedQueue<Value> {
    const parsed = parseQueueName(name);
    const known = this.#queues.get(parsed);
    if (known !== undefined) {
      if (options !== undefined)
        throw new QueueFSError("invalid-argument", `queue ${quote(name)} has its options already; give them at the first call only`);
      return known as unknown as NamedQueue<Value>;
    }
    const queue = new NamedQueue<Value>(this.#backend, parsed, options);
    this.#queues.set(parsed, queue as unknown as NamedQueue<never>);
    return queue;
  }

  /**
   * Adds a worker for a queue; it starts with the manager, or now if that has started.
   *
   * @throws QueueFSError `closed` after `stop`, `invalid-argument` for a queue of another store
   */
  work<Value>(queue: string | NamedQueue<Value>, handler: Handler<Value>, options?: WorkerOptions): Worker<Value> {
    if (this.#stopped !== undefined) throw new QueueFSError("closed", "the manager is stopped; make a new one");
    const named = typeof queue === "string" ? this.queue<Value>(queue) : queue;
    if (named.backend !== this.#backend) {
      throw new QueueFSError(
        "invalid-argument",
        `queue ${quote(named.name)} lies in another store than this manager's; give it a manager of its own`,
      );
    }
    this.#queues.set(named.name, named as unknown as NamedQueue<never>);
    const worker = new Worker(named, handler, options);
    this.#workers.push(worker as unknown as Worker<never>);
    if (this.#started) worker.start();
    return worker;
  }

  /** Starts all workers. */
  start(): this {
    this.#started = true;
    for (const worker of this.#workers) worker.start();
    return this;
  }

  /** Has all workers take no more messages until resumed. */
  pause(): void {
    for (const worker of this.#workers) worker.pause();
  }

  /** Has all workers take messages again. */
  resume(): void {
    for (const worker of this.#workers) worker.resume();
  }

  /** How each worker is, by queue. */
  get health(): readonly (WorkerHealth & { readonly queue: QueueName })[] {
    return this.#workers.map((worker) => ({ queue: worker.queue.name, ...worker.health }));
  }

  get #selection(): { readonly queues: readonly QueueName[] } {
    return { queues: [...this.#queues.keys()] };
  }

  async #ensureAll(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.ensure()));
  }

  /** The status of all queues of the manager, in one snapshot of the store. */
  async getStatus(): Promise<ManagedStatus[]> {
    await this.#ensureAll();
    const statuses = await this.#backend.statuses(this.#selection);
    return statuses.map((status) => ({ ...status, telemetry: (this.#queues.get(status.queue) as NamedQueue<never>).telemetry.read() }));
  }

  /** Whether nothing is unacknowledged in any of the queues, by one snapshot of all. */
  async isAllComplete(): Promise<boolean> {
    await this.#ensureAll();
    return isAllComplete(this.#backend, this.#selection);
  }

  /** Waits until all queues are complete in one snapshot; see {@link waitComplete} for options and errors. */
  async waitComplete(options?: WaitOptions): Promise<readonly WaitedStatus[]> {
    await this.#ensureAll();
    return waitComplete(this.#backend, this.#selection, options);
  }

  /** Stops all workers at once, each with its grace. The store stays open. Calling it again answers the same. */
  stop(options?: { readonly graceMs?: number }): Promise<StopReport> {
    this.#stopped ??= this.#stop(options);
    return this.#stopped;
  }

  async #stop(options?: { readonly graceMs?: number }): Promise<StopReport> {
    const reports = await Promise.all(this.#workers.map((worker) => worker.stop(options)));
    return {
      finished: reports.reduce((total, report) => total + report.finished, 0),
      released: reports.reduce((total, report) => total + report.released, 0),
    };
  }

  /** Stops, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
