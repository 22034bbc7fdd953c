/** Telling listeners of changes: of this process at once, of other processes by watching the write-ahead log. */

import { type FSWatcher, watch } from "node:fs";
import type { Clock, Timer } from "../../core/clock.ts";
import type { QueueName } from "../../core/names.ts";
import type { ChangeListener } from "../contract.ts";
import type { Database } from "./connection.ts";
import type { Prepared } from "./statements.ts";

/** How often the data version is read while somebody listens and the log cannot be watched, in milliseconds. */
const POLL_MS = 100;
/** How often it is read although the log is watched, in case something was missed: waking up costs an idle process more than the read. */
const WATCHED_POLL_MS = 1_000;
/** Changes in a row that the watch did not tell of, after which it is not relied upon: not every file system tells. */
const MOST_MISSED = 2;
/**
 * When to look again after a watch event, in milliseconds: the log is written first, then synced to the disk, and only then can the commit be
 * seen, of which no event tells. Doubled each time, up to the other.
 */
const FIRST_LOOK_AGAIN_MS = 2;
const LAST_LOOK_AGAIN_MS = 256;

/** The listeners of one store. */
export class WakeUp {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<ChangeListener>();
  readonly #dataVersion: Prepared;
  readonly #isSwept: boolean;
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #again: Timer | undefined;
  #version: unknown;
  /** Changes that only the poll has found, since the watch last told of anything. */
  #missed = 0;

  /** @param sweepIntervalMs how often {@link sweep} is going to be called */
  constructor(database: Database, path: string, clock: Clock, sweepIntervalMs: number, onError: (error: unknown) => void) {
    this.#isSwept = sweepIntervalMs <= WATCHED_POLL_MS;
    this.#dataVersion = database.prepare("PRAGMA data_version").pluck();
    this.#path = path;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** Adds a listener. @returns a function that takes it away */
  subscribe(listener: ChangeListener): () => void {
    // An entry of its own, so that the same function can listen twice.
    const entry: ChangeListener = (queues) => listener(queues);
    if (this.#listeners.size === 0) this.#start();
    this.#listeners.add(entry);
    return () => {
      if (this.#listeners.delete(entry) && this.#listeners.size === 0) this.stop();
    };
  }

  /** Says that this process changed queues (`undefined`: any). */
  notify(queues: ReadonlySet<QueueName> | undefined): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(queues);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  #start(): void {
    this.#version = this.#readVersion();
    try {
      this.#watcher = watch(`${this.#path}-wal`, { persistent: false }, () => this.#onWritten());
      this.#watcher.on("error", this.#onError);
    } catch (error) {
      // No watches left, or no log yet: the poll below sees changes a little later.
      this.#onError(error);
    }
    this.#poll();
  }

  #poll(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const isWatched = this.#watcher !== undefined && this.#missed < MOST_MISSED;
    // The sweep looks as well: one more timer would wake an idle process twice as often.
    if (isWatched && this.#isSwept) return;
    this.#timer = this.#clock.setTimer(
      () => {
        if (this.#look()) this.#missed += 1;
        if (this.#listeners.size > 0) this.#poll();
      },
      isWatched ? WATCHED_POLL_MS : POLL_MS,
    );
  }

  /** Looks for commits that the watch did not tell of. */
  sweep(): void {
    if (this.#listeners.size === 0 || !this.#look()) return;
    this.#missed += 1;
    this.#poll();
  }

  /** Tells the listeners if another connection has committed. Answers whether it had. */
  #look(): boolean {
    const version = this.#readVersion();
    if (this.#listeners.size === 0 || version === this.#version) return false;
    this.#version = version;
    this.notify(undefined);
    return true;
  }

  #onWritten(): void {
    this.#missed = 0;
    this.#look();
    this.#lookAgain(FIRST_LOOK_AGAIN_MS);
  }

  #lookAgain(afterMs: number): void {
    this.#again?.cancel();
    this.#again = undefined;
    if (this.#listeners.size === 0 || afterMs > LAST_LOOK_AGAIN_MS) return;
    this.#again = this.#clock.setTimer(() => {
      if (!this.#look()) this.#lookAgain(afterMs * 2);
    }, afterMs);
  }

  // Changes by this connection do not move it, those of all others do.
  #readVersion(): unknown {
    try {
      return this.#dataVersion.get();
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
  }

  /** Stops watching; listeners stay known but are told of this process's changes only. */
  stop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#timer?.cancel();
    this.#again?.cancel();
    this.#again = undefined;
  }

  /** Ends all. */
  close(): void {
    this.#listeners.clear();
    this.stop();
  }
}
