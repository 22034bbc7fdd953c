/** The options of one enqueue of a program. */

import { QueueFSError, quote } from "../core/errors.ts";

/** How a value is enqueued. */
export interface EnqueueOptions {
  /** An id that makes a repeat safe: the same id within ten minutes, or while the message exists, stores nothing anew. */
  readonly id?: string;
  /** Not to be delivered before so many milliseconds have passed. 0 to 366 days. */
  readonly delayMs?: number;
  /** Not to be delivered before this instant of the wall clock; one in the past means now. */
  readonly at?: Date;
  /**
   * The task that is to own the message. Absent: the task of the handler, or of the `tasks.run`, that encloses the call, if it is of this
   * store; else none. `null`: none in any case.
   */
  readonly task?: string | null;
}

const ENQUEUE_KEYS: ReadonlySet<string> = new Set(["id", "delayMs", "at", "task"] satisfies (keyof EnqueueOptions)[]);

/**
 * Refuses what is no object of options, and misspelt options: a delay that is none would be ignored in silence. The other values are checked
 * where they are used.
 *
 * @throws QueueFSError `invalid-argument`
 */
export function checkEnqueueOptions(options: EnqueueOptions): EnqueueOptions {
  if (typeof options !== "object" || options === null)
    throw new QueueFSError("invalid-argument", `options of an enqueue must be an object, got ${quote(options)}`);
  for (const name in options) {
    if (!ENQUEUE_KEYS.has(name))
      throw new QueueFSError("invalid-argument", `an enqueue has no option ${quote(name)}; it has ${[...ENQUEUE_KEYS].join(", ")}`);
  }
  const { at } = options;
  if (at !== undefined && !(at instanceof Date)) throw new QueueFSError("invalid-argument", `at must be a Date, got ${quote(at)}`);
  return options;
}

/** Options of an enqueue for a task, whatever task they name themselves. @throws QueueFSError `invalid-argument` for what is no object of options */
export function enqueueOptionsFor(task: string | null, options: EnqueueOptions = {}): EnqueueOptions {
  return { ...checkEnqueueOptions(options), task };
}
