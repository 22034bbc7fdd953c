/** QueueFS itself, on any of its backends. */

import type { Backend } from "../../src/backend/contract.ts";
import type { QueueName } from "../../src/core/names.ts";
import { type Contest, drainWith, PAYLOAD, runCallers } from "../contender.ts";

/** The queue that is measured. */
export const QUEUE = "bench/queue" as QueueName;
const MESSAGE = [{ data: PAYLOAD }];
const FILL_BATCH = 1_000;

/** A store with one queue as a contest. @param afterClose called when the store is closed */
export async function contestOf(store: Backend, afterClose: () => Promise<void> = async () => {}): Promise<Contest> {
  await store.createQueue(QUEUE);
  const take = async (): Promise<boolean> => {
    const [delivery] = await store.dequeue(QUEUE);
    if (delivery === undefined) return false;
    const [answer] = await store.ack(QUEUE, [{ receipt: delivery.receipt }]);
    if (answer?.outcome !== "acked") throw new Error(`the ack answered ${answer?.outcome ?? "nothing"}`);
    return true;
  };
  return {
    enqueue: (load) => runCallers(load, () => store.enqueue(QUEUE, MESSAGE)),
    cycle: (load) =>
      runCallers(load, async () => {
        await store.enqueue(QUEUE, MESSAGE);
        if (!(await take())) throw new Error("a message that was enqueued could not be taken");
      }),
    fill: (count) => fillQueue(store, QUEUE, count),
    drain: (callers) => drainWith(callers, take),
    status: () => store.status(QUEUE),
    close: async () => {
      await store.close();
      await afterClose();
    },
  };
}

/** Stores messages in batches. */
export async function fillQueue(store: Backend, queue: QueueName, count: number): Promise<void> {
  const batch = Array.from({ length: FILL_BATCH }, () => ({ data: PAYLOAD }));
  for (let left = count; left > 0; left -= FILL_BATCH) await store.enqueue(queue, left < FILL_BATCH ? batch.slice(0, left) : batch);
}
