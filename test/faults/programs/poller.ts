/** The second process: reads the status of queues as fast as it can, in the right way or, for the controls, in wrong ones. */

import type { Backend } from "../../../src/backend/contract.ts";
import type { Status } from "../../../src/core/message.ts";
import type { QueueName } from "../../../src/core/names.ts";
import { nextTurn } from "../../../src/core/turn.ts";
import { reportFault, tell } from "../../support/child-process-main.ts";
import type { Snapshots } from "../history.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";
import { now } from "./recorder.ts";

/**
 * How to read. `snapshot` is the product's way. The others are the mistakes that this product exists to end: the queues one after the
 * other, and the two numbers of a queue from two sources.
 */
export type Reading = "snapshot" | "queue-by-queue" | "two-sources";

/** Every so many equal snapshots in a row one is kept; those that differ from the one before, and all complete ones, are kept always. */
const KEEP_EVERY = 8;

let isStopping = false;

/** Ends {@link poll}, which then answers. */
export function stopPolling(): void {
  isStopping = true;
}

/** Reads until told to stop, and answers with what it saw. */
export async function poll(spec: StoreSpec, queues: readonly QueueName[], reading: Reading): Promise<Snapshots> {
  const backend = await openStore(spec, reportFault);
  const seen: number[] = [];
  let previous = "";
  let equal = 0;
  isStopping = false;
  tell("polling");
  for (let times = 0; !isStopping; times += 1) {
    const begin = now();
    const statuses = await READINGS[reading](backend, queues);
    const end = now();
    const numbers = statuses.flatMap(({ pending, processing }) => [pending, processing]);
    const text = numbers.join(" ");
    equal = text === previous ? equal + 1 : 0;
    previous = text;
    if (equal % KEEP_EVERY === 0 || numbers.every((number) => number === 0)) seen.push(begin, end, ...numbers);
    if (times % 256 === 0) await nextTurn();
  }
  await backend.close();
  return Float64Array.from(seen);
}

/** A reader over a network, or one that is preempted, takes up to so long between two reads. */
const LONGEST_GAP_NANOSECONDS = 12e6;

async function pause(): Promise<void> {
  const until = now() + Math.random() * LONGEST_GAP_NANOSECONDS;
  while (now() < until) await nextTurn();
}

const READINGS: Readonly<Record<Reading, (backend: Backend, queues: readonly QueueName[]) => Promise<readonly Status[]>>> = {
  snapshot: (backend, queues) => backend.statuses({ queues }),
  async "queue-by-queue"(backend, queues) {
    const statuses: Status[] = [];
    // The last queue first: work moves from the first to the last.
    for (const queue of [...queues].reverse()) {
      if (statuses.length > 0) await pause();
      statuses.unshift(await backend.status(queue));
    }
    return statuses;
  },
  async "two-sources"(backend, queues) {
    const processing = await backend.statuses({ queues });
    await pause();
    const pending = await backend.statuses({ queues });
    return queues.map((_queue, index) => ({ pending: pending[index]?.pending ?? 0, processing: processing[index]?.processing ?? 0 }));
  },
};
