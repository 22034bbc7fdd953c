/** QueueFS itself, on any of its backends. */

import type { Backend } from "../../src/backend/contract.ts";
import type { QueueName } from "../../src/core/names.ts";
import { type Contest, drainWith, PAYLOAD, runCallers } from "../contender.ts";

/** The queue that is measured. */
export const QUEUE = "bench/queue" as QueueName;
const FILL_BATCH = 1_000;

/** A store with one queue as a contest. @param data of each message */
export async function contestOf(store: Backend, data: Uint8Array = PAYLOAD): Promise<Contest> {
  await store.createQueue(QUEUE);
  const message = [{ data }];
  const take = async (): Promise<boolean> => {
    const [delivery] = await store.dequeue(QUEUE);
    if (delivery === undefined) return false;
    const [answer] = await store.ack(QUEUE, [{ receipt: delivery.receipt }]);
    if (answer?.outcome !== "acked") throw new Error(`the ack answered ${answer?.outcome ?? "nothing"}`);
    return true;
  };
  return {
    enqueue: (load) => runCallers(load, () => store.enqueue(QUEUE, message)),
    cycle: (load) =>
      runCallers(load, async () => {
        await store.enqueue(QUEUE, message);
        if (!(await take())) throw new Error("a message that was enqueued could not be taken");
      }),
    fill: (count) => fillQueue(store, QUEUE, count, data),
    drain: (callers) => drainWith(callers, take),
    status: () => store.status(QUEUE),
    close: () => store.close(),
  };
}

/** Stores messages in batches. */
export async function fillQueue(store: Backend, queue: QueueName, count: number, data: Uint8Array = PAYLOAD): Promise<void> {
  const batch = Array.from({ length: FILL_BATCH }, () => ({ data }));
  for (let left = count; left > 0; left -= FILL_BATCH) await store.enqueue(queue, left < FILL_BATCH ? batch.slice(0, left) : batch);
}
