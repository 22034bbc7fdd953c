/** Workers of the soak, in processes of their own that die at any moment. */

import { appendFileSync } from "node:fs";
import { type HandlerContext, NamedQueue, QueueManager, retryAfter, textCodec, type Verdict } from "../../../src/index.ts";
import { reportFault, serve } from "../../support/child-process-main.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";

/** What a worker process of the soak is told. */
export interface SoakOrder {
  readonly spec: StoreSpec;
  readonly first: string;
  readonly second: string;
  readonly leaseMs: number;
  /** The file that gets a line for each message the second queue's handler has done. */
  readonly record: string;
}

/** Each message fails in its own way at its first deliveries, and is done in the end. */
async function first(text: string, context: HandlerContext, second: NamedQueue<string>): Promise<Verdict | undefined> {
  const kind = Number(text) % 10;
  if (context.deliveryCount === 1 && kind === 3) throw new Error("the first attempt fails");
  if (context.deliveryCount === 1 && kind === 5) return retryAfter(20, "not yet");
  if (kind === 7) await new Promise((resolve) => setTimeout(resolve, 5));
  await context.forward(second, text);
  return undefined;
}

async function work(order: SoakOrder): Promise<void> {
  const backend = await openStore(order.spec, reportFault);
  const options = { codec: textCodec, leaseMs: order.leaseMs };
  const manager = new QueueManager(backend);
  const second = new NamedQueue<string>(backend, order.second, options);
  const worker = { concurrency: 8, backoff: { firstMs: 10, maximumMs: 100 }, keepLeasesWhileBusy: false };
  manager.work(new NamedQueue<string>(backend, order.first, options), (text, context) => first(text, context, second), worker);
  // Written before the ack: what is acked has its line, whenever the process dies.
  manager.work(second, (text) => appendFileSync(order.record, `${text}\n`), worker);
  manager.start();
}

const programs = { work };
/** The programs by name. */
export type SoakPrograms = typeof programs;
serve(programs);
