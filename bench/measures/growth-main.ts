/** The process of the measure of growth: lets messages through one store, with a bounded backlog, and tells at regular marks how large all is. */

import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { PAYLOAD } from "../contender.ts";
import { fillQueue, QUEUE } from "../contenders/queuefs.ts";
import { loadBuiltLibrary } from "../library.ts";
import { openPlace, type Place } from "../stores.ts";

/** What the process is to do. */
export interface GrowthTask {
  readonly place: Place;
  readonly messages: number;
  /** Messages that are there all the time. */
  readonly backlog: number;
  readonly callers: number;
  readonly marks: number;
}

/** What it tells at each mark. It goes on when it hears something. */
export interface GrowthMark {
  /** The heap and what it holds outside, after its garbage was collected. */
  readonly heapBytes: number;
  /** Memory of the process. */
  readonly processBytes: number;
  /** The files of the store, the log included; 0 when it has none. */
  readonly fileBytes: number;
}

const task = JSON.parse(process.argv[2] as string) as GrowthTask;
const folder = dirname(task.place.path);
const store = await openPlace(await loadBuiltLibrary(), task.place);
await store.createQueue(QUEUE);
await fillQueue(store, QUEUE, task.backlog);
const message = [{ data: PAYLOAD }];
let left = 0;

async function cycle(): Promise<void> {
  while (left > 0) {
    left -= 1;
    await store.enqueue(QUEUE, message);
    const [delivery] = await store.dequeue(QUEUE);
    if (delivery === undefined) throw new Error("the queue was empty");
    await store.ack(QUEUE, [{ receipt: delivery.receipt }]);
  }
}

async function mark(): Promise<void> {
  // The first collection ends what the second one then finds unused, buffers outside the heap among it.
  for (let time = 0; time < 2; time += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  const files = task.place.store === "SQLite" ? readdirSync(folder) : [];
  const fileBytes = files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  const answer: GrowthMark = { heapBytes: heapUsed + external, processBytes: rss, fileBytes };
  const goOn = new Promise((resolve) => process.once("message", resolve));
  process.send?.(answer);
  await goOn;
}

for (let index = 0; index <= task.marks; index += 1) {
  // What comes before the first mark warms up: code is compiled, pools get their size.
  left = Math.ceil(task.messages / task.marks);
  await Promise.all(Array.from({ length: task.callers }, cycle));
  await mark();
}
const { pending, processing } = await store.status(QUEUE);
if (pending !== task.backlog || processing !== 0)
  throw new Error(`${pending} messages are pending and ${processing} in processing at the end`);
await store.close();
process.disconnect();
