/** Noticing that queues somebody waits for do not move, and saying what holds them. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { QueueStatus, Statistics } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";

/**
 * What holds a queue that does not move. `unattended`: messages are available and nobody takes them. `held`: consumers hold messages and
 * their leases are alive, so a handler takes long or hangs; the age tells which. `orphaned`: a lease has ended, its consumer is gone or hangs,
 * and no process has recovered the message. `delayed`: messages wait for their time, a retry for instance, and nothing else.
 */
export type StallCause = "unattended" | "held" | "orphaned" | "delayed";

/** A queue that does not move. */
export interface StalledQueue extends QueueStatus {
  readonly cause: StallCause;
  /** Of the pending messages, those whose time has not come. */
  readonly delayed: number;
  /** Age of the oldest pending message since it was enqueued, in milliseconds; absent when none is. */
  readonly oldestPendingMs?: number;
  /** Age of the oldest message in processing since it was enqueued, in milliseconds; absent when none is. */
  readonly oldestProcessingMs?: number;
}

/** Nothing has moved in any of the queues waited for. */
export interface Stall {
  /** For how long at least nothing was enqueued, delivered, acked, given back or removed, in milliseconds. */
  readonly unmovedMs: number;
  /** The queues that are not complete, 100 at most. */
  readonly queues: readonly StalledQueue[];
}

/** What noticing stalls needs of a backend. */
export type WatchedBackend = Pick<Backend, "statistics" | "nextDue">;

const MAX_QUEUES = 100;

/** Looks from time to time whether queues move. */
export class StallWatch {
  readonly #backend: WatchedBackend;
  readonly #clock: Clock;
  readonly #stallMs: number;
  readonly #incomplete: () => readonly QueueName[];
  readonly #onStall: (stall: Stall) => void;
  #timer: Timer | undefined;
  #stopped = false;
  #print = "";
  #movedMs: number;
  #toldMs = Number.NEGATIVE_INFINITY;

  /**
   * @param stallMs how long nothing must move, in milliseconds; also the time between two reports
   * @param incomplete the queues to look at
   */
  constructor(
    backend: WatchedBackend,
    clock: Clock,
    stallMs: number,
    incomplete: () => readonly QueueName[],
    onStall: (stall: Stall) => void,
  ) {
    this.#backend = backend;
    this.#clock = clock;
    this.#stallMs = stallMs;
    this.#incomplete = incomplete;
    this.#onStall = onStall;
    this.#movedMs = clock.monotonicMs();
  }

  /** Begins to look. */
  start(): void {
    this.#timer = this.#clock.setTimer(() => void this.#look(), this.#stallMs / 2);
  }

  async #look(): Promise<void> {
    try {
      const found = await Promise.all(
        this.#incomplete()
          .slice(0, MAX_QUEUES)
          .map((queue) => this.#read(queue)),
      );
      if (this.#stopped) return;
      this.#compare(
        found.map(({ statistics }) => statistics),
        found.map(({ stalled }) => stalled),
      );
    } catch {
      // A store that does not answer, or a queue that is gone: the wait itself tells of that.
    }
    if (!this.#stopped) this.start();
  }

  async #read(queue: QueueName): Promise<{ statistics: Statistics; stalled: StalledQueue }> {
    const [statistics, dueMs] = await Promise.all([this.#backend.statistics(queue), this.#backend.nextDue(queue)]);
    const { pending, processing, delayed, oldestPendingMs, oldestProcessingMs } = statistics;
    const stalled: StalledQueue = {
      queue,
      pending,
      processing,
      delayed,
      cause: causeOf(statistics, dueMs),
      ...(oldestPendingMs === undefined ? {} : { oldestPendingMs }),
      ...(oldestProcessingMs === undefined ? {} : { oldestProcessingMs }),
    };
    return { statistics, stalled };
  }

  #compare(statistics: readonly Statistics[], queues: readonly StalledQueue[]): void {
    const nowMs = this.#clock.monotonicMs();
    const print = JSON.stringify(
      statistics.map((one) => [one.enqueued, one.delivered, one.acked, one.returned, one.deadLettered, one.cleared]),
    );
    if (print !== this.#print || queues.length === 0) {
      this.#print = print;
      this.#movedMs = nowMs;
      return;
    }
    const unmovedMs = nowMs - this.#movedMs;
    if (unmovedMs < this.#stallMs || nowMs - this.#toldMs < this.#stallMs) return;
    this.#toldMs = nowMs;
    this.#onStall({ unmovedMs, queues });
  }

  /** Ends looking. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}

function causeOf({ pending, processing, delayed }: Statistics, dueMs: number | undefined): StallCause {
  const available = pending - delayed;
  // Due now although nothing is available: it is a lease that is over.
  if (processing > 0) return available === 0 && dueMs === 0 ? "orphaned" : "held";
  return available > 0 ? "unattended" : "delayed";
}
