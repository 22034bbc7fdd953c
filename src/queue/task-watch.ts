/** Telling running handlers that their task was cancelled. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { isQueueFSError, type QueueFSError, taskEnded } from "../core/errors.ts";
import type { TaskId } from "../core/names.ts";
import { isTerminal } from "../core/task.ts";
import { warn } from "./callback.ts";

/** How often at most, in milliseconds, the tasks of running handlers are looked at. Handlers that are done before never are. */
const LOOK_INTERVAL_MS = 100;
/** How many such intervals may pass without a look although no change was told of. */
const UNTOLD_INTERVALS = 20;

interface Watched {
  readonly abort: (reason: QueueFSError) => void;
  readonly sinceMs: number;
}

/** The handlers of one open store that run on behalf of tasks. */
export class CancellationWatch {
  readonly #backend: Backend;
  readonly #clock: Clock;
  readonly #watched = new Map<TaskId, Set<Watched>>();
  #unsubscribe: (() => void) | undefined;
  #timer: Timer | undefined;
  #isLooking = false;
  #isChanged = false;
  #untold = 0;

  constructor(backend: Backend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /** Calls `abort` once when the task is cancelled. @returns a function that ends the watch */
  add(task: TaskId, abort: (reason: QueueFSError) => void): () => void {
    const watched: Watched = { abort, sinceMs: this.#clock.monotonicMs() };
    const others = this.#watched.get(task);
    if (others === undefined) this.#watched.set(task, new Set([watched]));
    else others.add(watched);
    this.#arm();
    return () => this.#remove(task, watched);
  }

  #remove(task: TaskId, watched: Watched): void {
    const all = this.#watched.get(task);
    if (all?.delete(watched) !== true || all.size > 0) return;
    this.#watched.delete(task);
    if (this.#watched.size === 0) this.#rest();
  }

  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#isLooking) return;
    this.#timer = this.#clock.setTimer(() => {
      this.#timer = undefined;
      void this.#turn();
    }, LOOK_INTERVAL_MS);
  }

  async #turn(): Promise<void> {
    this.#isLooking = true;
    try {
      if (this.#unsubscribe === undefined) {
        this.#unsubscribe = this.#backend.subscribe(() => {
          this.#isChanged = true;
        });
        this.#isChanged = true;
      }
      this.#untold += 1;
      if (this.#isChanged || this.#untold >= UNTOLD_INTERVALS) await this.#look();
    } catch (error) {
      // A closed store has nothing left to tell; of one that is away the next look will hear.
      if (!isQueueFSError(error)) warn(error);
    } finally {
      this.#isLooking = false;
    }
    if (this.#watched.size === 0) this.#rest();
    else this.#arm();
  }

  async #look(): Promise<void> {
    this.#isChanged = false;
    this.#untold = 0;
    const longSinceMs = this.#clock.monotonicMs() - LOOK_INTERVAL_MS;
    const ids = [...this.#watched].filter(([, all]) => [...all].some(({ sinceMs }) => sinceMs <= longSinceMs)).map(([id]) => id);
    if (ids.length < this.#watched.size) this.#isChanged = true;
    await Promise.all(ids.map((id) => this.#lookAt(id)));
  }

  async #lookAt(id: TaskId): Promise<void> {
    let status: string;
    try {
      const task = await this.#backend.task(id);
      if (task.status !== "cancelling" && !isTerminal(task.status)) return;
      status = task.status;
    } catch (error) {
      if (!isQueueFSError(error, "task-not-found")) throw error;
      status = "gone";
    }
    const all = this.#watched.get(id);
    this.#watched.delete(id);
    for (const { abort } of all ?? []) abort(taskEnded(id, status));
  }
}

const watches = new WeakMap<Backend, CancellationWatch>();

/** The watch of an open store, made at first use. */
export function cancellationsOf(backend: Backend, clock: Clock): CancellationWatch {
  let watch = watches.get(backend);
  if (watch === undefined) {
    watch = new CancellationWatch(backend, clock);
    watches.set(backend, watch);
  }
  return watch;
}
