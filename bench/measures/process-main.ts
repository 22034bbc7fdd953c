/** One process of the measure with several: opens the file, waits for the word, makes cycles, tells how that went. */

import { Load, PAYLOAD, runCallers } from "../contender.ts";
import { QUEUE } from "../contenders/queuefs.ts";
import { loadBuiltLibrary } from "../library.ts";

/** What the process is to do. */
export interface ProcessTask {
  readonly path: string;
  readonly durability: "full" | "normal";
  readonly callers: number;
  readonly durationMs: number;
}

/** How it went. */
export interface ProcessAnswer {
  readonly perSecond: number;
  /** The longest that a single call took, in milliseconds. */
  readonly longestMs: number;
  /** Calls that were rejected. */
  readonly errors: number;
}

const task = JSON.parse(process.argv[2] as string) as ProcessTask;
const { openSqlite } = await loadBuiltLibrary();
const store = await openSqlite({ path: task.path, durability: task.durability });
await store.createQueue(QUEUE);
let longestMs = 0;
let errors = 0;

async function timed<Answer>(call: () => Promise<Answer>): Promise<Answer | undefined> {
  const begunMs = performance.now();
  try {
    return await call();
  } catch {
    errors += 1;
    return undefined;
  } finally {
    longestMs = Math.max(longestMs, performance.now() - begunMs);
  }
}

async function cycle(): Promise<void> {
  await timed(() => store.enqueue(QUEUE, [{ data: PAYLOAD }]));
  const deliveries = await timed(() => store.dequeue(QUEUE));
  for (const { receipt } of deliveries ?? []) await timed(() => store.ack(QUEUE, [{ receipt }]));
}

process.once("message", () => {
  void run();
});
process.send?.("ready");

async function run(): Promise<void> {
  const load = new Load(task.callers, { durationMs: task.durationMs });
  await runCallers(load, cycle);
  const answer: ProcessAnswer = { perSecond: load.perSecond, longestMs, errors };
  process.send?.(answer);
  await store.close();
  process.disconnect();
}
