/** One of several processes that use the same file as hard as they can. */

import { monitorEventLoopDelay } from "node:perf_hooks";
import type { QueueName } from "../../../src/core/names.ts";
import { reportFault, tell } from "../../support/child-process-main.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";

/** What one process did. */
export interface Contended {
  /** Payloads of the messages it acked. */
  readonly acked: readonly string[];
  /** Delay of its event loop over what an idle one has, in milliseconds. */
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  /** The longest that one call took, in milliseconds. */
  readonly longestCallMs: number;
}

const RESOLUTION_MS = 5;

/** Enqueues, dequeues and acks one message after the other, so many times, in `loops` loops at once. */
export async function contend(spec: StoreSpec, queue: QueueName, name: string, cycles: number, loops: number): Promise<Contended> {
  const backend = await openStore(spec, reportFault);
  const acked: string[] = [];
  let longestCallMs = 0;
  const timed = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    const begin = performance.now();
    const result = await call();
    longestCallMs = Math.max(longestCallMs, performance.now() - begin);
    return result;
  };
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let cycle = 0;
  const loop = async (): Promise<void> => {
    while (cycle < cycles) {
      cycle += 1;
      const payload = new TextEncoder().encode(`${name}.${cycle}`);
      await timed(() => backend.enqueue(queue, [{ data: payload }]));
      // As many messages as were enqueued are delivered: somebody else may have taken the one of this loop, and left another.
      const [message] = await timed(() => backend.dequeue(queue));
      if (message === undefined) throw new Error("nothing to be dequeued, though each process enqueues before it dequeues");
      const [answer] = await timed(() => backend.ack(queue, [{ receipt: message.receipt }]));
      if (answer?.outcome !== "acked") throw new Error(`an ack was ${answer?.outcome}`);
      acked.push(new TextDecoder().decode(message.data));
    }
  };
  tell("contending");
  await Promise.all(Array.from({ length: loops }, loop));
  delay.disable();
  await backend.close();
  return {
    acked,
    delayP99Ms: delay.percentile(99) / 1e6 - RESOLUTION_MS,
    delayMaxMs: delay.max / 1e6 - RESOLUTION_MS,
    longestCallMs,
  };
}
