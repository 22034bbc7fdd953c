/** A process that has nothing to do: with a worker whose queue is empty, or without one. Tells what part of a processor it takes. */

import { setTimeout as sleep } from "node:timers/promises";
import { QUEUE } from "../contenders/queuefs.ts";
import { loadBuiltLibrary } from "../library.ts";
import { openPlace, type Place } from "../stores.ts";

/** What the process is to do. */
export interface IdleTask {
  /** The store of its worker; it has none when this is absent. */
  readonly place?: Place;
  /** How long it is left alone before, and how long it is watched, in milliseconds. */
  readonly settleMs: number;
  readonly idleMs: number;
}

const task = JSON.parse(process.argv[2] as string) as IdleTask;
const library = await loadBuiltLibrary();
const store = task.place === undefined ? undefined : await openPlace(library, task.place);
const worker = store && new library.Worker(new library.NamedQueue(store, QUEUE), () => {}).start();
// Only what comes from now on is to be collected; and not at the end of the wait, since a collection is followed by another one.
globalThis.gc?.();
await sleep(task.settleMs);
const before = process.cpuUsage();
const begunMs = performance.now();
await sleep(task.idleMs);
const { user, system } = process.cpuUsage(before);
const percent: number = (user + system) / 10 / (performance.now() - begunMs);
process.send?.(percent);
await worker?.stop();
await store?.close();
process.disconnect();
