/** Waiting for the end of a task: woken by the store, with a slow poll as safety net. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock, type Timer } from "../core/clock.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { DEFAULT_WAIT_POLL_MS, WAIT_GAP_MS } from "../core/limits.ts";
import type { TaskId } from "../core/names.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import { isTerminal, type Task } from "../core/task.ts";

/** How a wait for a task behaves. */
export interface TaskWaitOptions {
  /** The wait ends with {@link TaskTimeoutError} after so many milliseconds by the monotonic clock. 0 looks once; absent or Infinity waits for ever. */
  readonly timeoutMs?: number;
  /** Ends the wait, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Gets the task at every look, the last one included. What it throws ends the wait. */
  readonly onProgress?: (task: Task) => void;
  /** Gets every failure to look that the wait rides out (store busy, store away). What it throws ends the wait. */
  readonly onError?: (error: QueueFSError) => void;
  /** The clock of deadline and poll. Default: the host's. */
  readonly clock?: Clock;
  /** How often to look although nothing woke the wait, in milliseconds. 1 to 3,600,000, default 1,000. */
  readonly pollIntervalMs?: number;
}

/** Options of a wait for a task, as a table. */
export const TASK_WAIT_OPTIONS = {
  signal: { type: "object", meaning: "ends the wait" },
  onProgress: { type: "object", meaning: "gets the task at every look" },
  onError: { type: "object", meaning: "gets every failure that is ridden out" },
  clock: { type: "object", meaning: "the clock of deadline and poll" },
  pollIntervalMs: {
    type: "integer",
    minimum: 1,
    maximum: 3_600_000,
    default: DEFAULT_WAIT_POLL_MS,
    meaning: "how often to look unwoken, in milliseconds",
  },
} as const satisfies OptionTable;

/** The wait ended before the task did. */
export class TaskTimeoutError extends QueueFSError {
  override readonly name = "TaskTimeoutError";
  /** The task as it was last seen; absent when the store gave it not once. */
  readonly task?: Task;

  /** @param options `cause`: why the last look failed, if it did */
  constructor(id: string, timeoutMs: number, task: Task | undefined, options?: { readonly cause?: unknown }) {
    const state = task === undefined ? "the store did not give it" : `it is ${task.status}, ${task.progress.unacked} messages unacked`;
    super(
      "timed-out",
      `task ${quote(id)} has not ended after ${timeoutMs} ms: ${state}; allow more time, or see what holds its messages`,
      options,
    );
    if (task !== undefined) this.task = task;
  }
}

/** What waiting for a task needs of a backend. */
export type TaskWaitBackend = Pick<Backend, "task" | "subscribe">;

/** Looks that need not keep their distance, after a time without any. */
const LOOKS_AT_ONCE = 5;

/**
 * Waits until a task has ended and resolves with it, however it ended: its status tells. It keeps the process alive. A store that is busy or
 * away is never taken for an end: the wait goes on, and `onError` is told.
 *
 * @param clock the clock unless the options have one; the host's unless given
 * @throws TaskTimeoutError when `timeoutMs` has passed
 * @throws QueueFSError `task-not-found` as soon as there is no such task, also when it is removed meanwhile; `invalid-argument`
 * @throws the reason of `signal` when it is aborted
 */
export async function waitTask(
  backend: TaskWaitBackend,
  id: TaskId,
  options: TaskWaitOptions = {},
  clock: Clock = systemClock,
): Promise<Task> {
  // A number in place of the options would be taken for none, and the wait would never end.
  const isObject = typeof options === "object" && options !== null;
  const { timeoutMs = Number.POSITIVE_INFINITY, ...others } = isObject ? options : {};
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0)) {
    const given = typeof timeoutMs === "number" ? String(timeoutMs) : quote(timeoutMs);
    throw new QueueFSError(
      "invalid-argument",
      `timeoutMs must be a number of milliseconds, 0 or more, got ${given}; leave it out to wait for ever`,
    );
  }
  const { pollIntervalMs } = readOptions("a wait for a task", TASK_WAIT_OPTIONS, isObject ? others : options);
  options.signal?.throwIfAborted();
  return new TaskWait(backend, id, { clock, ...options, timeoutMs, pollIntervalMs }).run();
}

type Settings = TaskWaitOptions & Required<Pick<TaskWaitOptions, "timeoutMs" | "clock" | "pollIntervalMs">>;

class TaskWait {
  readonly #backend: TaskWaitBackend;
  readonly #id: TaskId;
  readonly #settings: Settings;
  #isChanged = false;
  #wake: (() => void) | undefined;
  #last: Task | undefined;
  #failure: QueueFSError | undefined;
  /** Until when the looks so far are paid for, at one in {@link WAIT_GAP_MS}. */
  #paidMs = Number.NEGATIVE_INFINITY;

  constructor(backend: TaskWaitBackend, id: TaskId, settings: Settings) {
    this.#backend = backend;
    this.#id = id;
    this.#settings = settings;
  }

  async run(): Promise<Task> {
    const { clock, signal, timeoutMs } = this.#settings;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    // Timers and subscriptions of a backend let the process end; someone who awaits must not find it ended under the wait.
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    // Before the first look, so that no change falls between the two.
    const unsubscribe = this.#backend.subscribe(() => {
      this.#isChanged = true;
      this.#wake?.();
    });
    try {
      for (;;) {
        const task = await this.#look(deadlineMs);
        signal?.throwIfAborted();
        if (task !== undefined) {
          this.#settings.onProgress?.(task);
          if (isTerminal(task.status)) return task;
        }
        const leftMs = deadlineMs - clock.monotonicMs();
        if (leftMs <= 0) throw new TaskTimeoutError(this.#id, timeoutMs, this.#last, this.#failure && { cause: this.#failure });
        await this.#rest(leftMs);
      }
    } finally {
      clearInterval(keepAlive);
      unsubscribe();
    }
  }

  /** The task, or nothing while the store does not answer; a look that takes too long is left behind at the deadline. */
  async #look(deadlineMs: number): Promise<Task | undefined> {
    this.#isChanged = false;
    this.#paidMs = Math.max(this.#paidMs, this.#settings.clock.monotonicMs()) + WAIT_GAP_MS;
    const looking = this.#backend.task(this.#id);
    looking.catch(() => {});
    try {
      const task = this.#settings.timeoutMs === 0 ? await looking : await this.#untilEnd(looking, deadlineMs);
      if (task === undefined) return undefined;
      this.#last = task;
      this.#failure = undefined;
      return task;
    } catch (error) {
      // Looking changes nothing, so a look whose outcome is unknown may simply be repeated.
      if (!isQueueFSError(error) || !(error.retryable || error.code === "outcome-unknown")) throw error;
      this.#failure = error;
      this.#settings.onError?.(error);
      return undefined;
    }
  }

  #untilEnd(looking: Promise<Task>, deadlineMs: number): Promise<Task | undefined> {
    const { clock, signal } = this.#settings;
    return new Promise((resolve, reject) => {
      const leftMs = deadlineMs - clock.monotonicMs();
      const timer =
        leftMs === Number.POSITIVE_INFINITY ? undefined : clock.setTimer(() => end(() => resolve(undefined)), Math.max(0, leftMs));
      const onAbort = (): void => end(() => resolve(undefined));
      const end = (settle: () => void): void => {
        timer?.cancel();
        signal?.removeEventListener("abort", onAbort);
        settle();
      };
      signal?.addEventListener("abort", onAbort);
      looking.then(
        (task) => end(() => resolve(task)),
        (error: unknown) => end(() => reject(error)),
      );
    });
  }

  /** Until something changed, but no sooner than looks are due; until the poll, the deadline or the abort at the latest. */
  #rest(leftMs: number): Promise<void> {
    const { clock, signal, pollIntervalMs } = this.#settings;
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const gapMs = (): number => Math.max(0, this.#paidMs - LOOKS_AT_ONCE * WAIT_GAP_MS - clock.monotonicMs());
      const end = (): void => {
        timer?.cancel();
        this.#wake = undefined;
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const endAfter = (delayMs: number): void => {
        timer?.cancel();
        timer = clock.setTimer(end, delayMs);
      };
      const onChange = (): void => {
        this.#wake = undefined;
        const waitMs = gapMs();
        if (waitMs === 0) end();
        else endAfter(Math.min(waitMs, leftMs));
      };
      signal?.addEventListener("abort", end);
      if (signal?.aborted) end();
      else if (this.#isChanged) onChange();
      else {
        this.#wake = onChange;
        endAfter(Math.min(pollIntervalMs, leftMs));
      }
    });
  }
}
