/** The first messages of a task. */

import { QueueFSError } from "../core/errors.ts";
import type { Forward } from "../core/message.ts";
import { type EnqueueOptions, enqueueOptionsFor, type ForwardTarget } from "../queue/index.ts";

/** Values for one queue; made by {@link batch}. */
export interface Batch {
  /** The messages. @internal */
  encode(): Promise<Forward>;
}

/**
 * Values to be stored in a queue together with the task that owns them.
 *
 * @throws QueueFSError `invalid-argument`
 * @param options of each value; a `task` among them is not needed and not looked at
 */
export function batch<Value>(
  queue: ForwardTarget<Value>,
  values: readonly Value[],
  options: (value: Value, index: number) => EnqueueOptions = () => ({}),
): Batch {
  if (!Array.isArray(values) || typeof options !== "function")
    throw new QueueFSError("invalid-argument", "batch takes a queue, an array of values, and a function that gives the options of each");
  return {
    async encode() {
      const [messages] = await Promise.all([
        Promise.all(values.map((value, index) => queue.encode(value, enqueueOptionsFor(null, options(value, index))))),
        queue.ensure(),
      ]);
      return { queue: queue.name, messages };
    },
  };
}
