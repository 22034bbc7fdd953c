/** The processes of the test of trees: workers that grow the trees, and producers that plant them. Each may be killed at any moment. */

import { giveUp, type HandlerContext, NamedQueue, QueueManager, retryAfter, Tasks, textCodec, type Verdict } from "../../../src/index.ts";
import { reportFault, serve, tellSurely } from "../../support/child-process-main.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";
import { nodeOf, TREE_QUEUES } from "./tree.ts";

/** What a worker process is told. */
export interface TreeOrder {
  readonly spec: StoreSpec;
  readonly leaseMs: number;
}

/** What a producer process is told. */
export interface PlantOrder extends TreeOrder {
  readonly id: string;
  readonly roots: readonly string[];
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function grow(name: string, context: HandlerContext, queues: ReadonlyMap<string, NamedQueue<string>>): Promise<Verdict | undefined> {
  const node = nodeOf(name);
  if (node.workMs > 0) await rest(node.workMs);
  const children = node.children.map(nodeOf);
  const queueOf = (queue: string): NamedQueue<string> => queues.get(queue) as NamedQueue<string>;
  // Their ids make what a second attempt enqueues again the same messages.
  if (node.manner === "enqueue") {
    for (const child of children) await queueOf(child.queue).enqueue(child.name, { id: child.name });
  } else if (node.manner === "together") {
    for (const queue of TREE_QUEUES) {
      const names = children.filter((child) => child.queue === queue).map((child) => child.name);
      if (names.length > 0) await queueOf(queue).enqueueMany(names, (id) => ({ id }));
    }
  } else {
    for (const child of children) void context.forward(queueOf(child.queue), child.name, { id: child.name });
  }
  if (node.fate === "fails once" && context.deliveryCount === 1) throw new Error(`${name} fails at first`);
  if (node.fate === "retries once" && context.deliveryCount === 1) return retryAfter(10, "not yet");
  return node.fate === "given up" ? giveUp(`${name} is hopeless`) : undefined;
}

async function work({ spec, leaseMs }: TreeOrder): Promise<void> {
  const backend = await openStore(spec, reportFault);
  const options = { codec: textCodec, leaseMs };
  const queues = new Map(TREE_QUEUES.map((queue) => [queue as string, new NamedQueue<string>(backend, queue, options)]));
  const manager = new QueueManager(backend);
  for (const queue of queues.values()) {
    manager.work(queue, (name, context) => grow(name, context, queues), {
      concurrency: 4,
      backoff: { firstMs: 5, maximumMs: 50 },
      keepLeasesWhileBusy: false,
    });
  }
  manager.start();
}

/** Plants roots one after the other into a task that it seals at the end. */
async function plant({ spec, leaseMs, id, roots }: PlantOrder): Promise<void> {
  const backend = await openStore(spec, reportFault);
  const tasks = new Tasks(backend, { producerLeaseMs: leaseMs });
  const task = await tasks.open({ id, type: "planting" });
  for (const root of roots) {
    const { queue } = nodeOf(root);
    await task.enqueue(new NamedQueue<string>(backend, queue, { codec: textCodec }), root, { id: root });
    await tellSurely(root);
    await rest(3);
  }
  await task.seal();
  await backend.close();
}

const programs = { work, plant };
/** The programs by name. */
export type TreePrograms = typeof programs;
serve(programs);
