/** Deliveries as an async iterable, taken ahead of need and no further. */

import type { Clock } from "../core/clock.ts";
import { MAX_DEQUEUE_LIMIT } from "../core/limits.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import { Availability } from "./availability.ts";
import type { Delivery } from "./delivery.ts";
import type { NamedQueue } from "./named-queue.ts";

/** Options of `consume`, as a table. */
export const CONSUME_OPTIONS = {
  prefetch: { type: "integer", minimum: 1, maximum: MAX_DEQUEUE_LIMIT, default: 1, meaning: "messages taken at a time" },
  pollIntervalMs: {
    type: "integer",
    minimum: 10,
    maximum: 3_600_000,
    default: 5_000,
    meaning: "how often to look although nothing woke the consumer, in milliseconds",
  },
  signal: { type: "object", meaning: "ends the iteration" },
} as const satisfies OptionTable;

/** Options of `consume`. */
export interface ConsumeOptions {
  /** Messages taken at a time, and so at most ahead of need. 1 to 1,000, default 1. */
  readonly prefetch?: number;
  /** How often to look although nothing woke the consumer, in milliseconds. 10 to 3,600,000, default 5,000. */
  readonly pollIntervalMs?: number;
  /** Ends the iteration when aborted; what was taken ahead is released. */
  readonly signal?: AbortSignal;
}

/** Lets go of the leases of deliveries that nobody can settle any more. */
const forgotten = new FinalizationRegistry((letGo: () => void) => letGo());

/**
 * Deliveries of a queue as they come. Their leases are renewed until they are settled. The next batch is taken only when the one before
 * is used up, so a slow consumer holds no more than `prefetch` messages. Leaving the loop releases what it did not reach; the delivery in
 * hand then, if it is not settled, is no longer renewed: settle it within its lease, or it comes back. So is one that the program has
 * forgotten. A store that does not answer ends the loop with its error.
 */
export async function* consume<Value>(
  queue: NamedQueue<Value>,
  options: ConsumeOptions,
  clock: Clock,
): AsyncGenerator<Delivery<Value>, void, undefined> {
  const { prefetch, pollIntervalMs } = readOptions("consume", CONSUME_OPTIONS, options);
  const signal = options.signal ?? new AbortController().signal;
  await queue.ensure();
  const availability = new Availability(queue.backend, queue.name, clock);
  // Timers of the store let the process end; a loop that waits for messages must not be ended by that.
  const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
  let taken: Delivery<Value>[] = [];
  let inHand: Delivery<Value> | undefined;
  try {
    while (!signal.aborted) {
      const { version } = availability;
      taken = await queue.take(prefetch, true);
      if (taken.length === 0) await availability.sleep(version, pollIntervalMs, signal);
      else availability.found();
      while (taken.length > 0 && !signal.aborted) {
        inHand = taken.shift() as Delivery<Value>;
        forgotten.register(inHand, inHand.letGo());
        yield inHand;
        inHand = undefined;
      }
    }
  } finally {
    clearInterval(keepAlive);
    availability.close();
    inHand?.abandon();
    await Promise.all(taken.map(giveBack));
  }
}

async function giveBack(delivery: Delivery<unknown>): Promise<void> {
  try {
    await delivery.putBack();
  } finally {
    // Where the store did not take it back, the lease ends by itself.
    delivery.abandon();
  }
}
