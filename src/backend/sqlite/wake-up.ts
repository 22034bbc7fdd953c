/** Telling listeners of changes: of this process at once, of other processes by watching the write-ahead log. */

import { type FSWatcher, watch } from "node:fs";
import type { Clock, Timer } from "../../core/clock.ts";
import type { QueueName } from "../../core/names.ts";
import type { ChangeListener } from "../contract.ts";
import type { Database } from "./connection.ts";

/** How often the data version is read while somebody listens, in case the file watch missed something: 2 microseconds each. */
const POLL_MS = 100;
/** When to look again after a watch event: the log is written a moment before the commit can be seen. In milliseconds. */
const LOOK_AGAIN_MS = 2;

/** The listeners of one store. */
export class WakeUp {
  readonly #database: Database;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<ChangeListener>();
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #again: Timer | undefined;
  #version: unknown;

  constructor(database: Database, path: string, clock: Clock, onError: (error: unknown) => void) {
    this.#database = database;
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
      this.#watcher = watch(`${this.#path}-wal`, { persistent: false }, () => this.#look(true));
      this.#watcher.on("error", this.#onError);
    } catch (error) {
      // No watches left, or no log yet: the poll below sees changes a little later.
      this.#onError(error);
    }
    this.#poll();
  }

  #poll(): void {
    this.#timer = this.#clock.setTimer(() => {
      this.#look(false);
      if (this.#listeners.size > 0) this.#poll();
    }, POLL_MS);
  }

  #look(again: boolean): void {
    if (this.#listeners.size === 0) return;
    const version = this.#readVersion();
    if (version !== this.#version) {
      this.#version = version;
      this.notify(undefined);
    } else if (again && this.#again === undefined) {
      this.#again = this.#clock.setTimer(() => {
        this.#again = undefined;
        this.#look(false);
      }, LOOK_AGAIN_MS);
    }
  }

  // Changes by this connection do not move it, those of all others do.
  #readVersion(): unknown {
    try {
      return this.#database.pragma("data_version", { simple: true });
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
