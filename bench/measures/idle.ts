/** What a worker takes that has nothing to do. */

import type { Run } from "../settings.ts";
import { STORES, startProcess, withStores } from "../stores.ts";
import type { IdleTask } from "./idle-main.ts";

/** How long a process is left alone before it is watched, in windows. */
const SETTLE_PART = 0.5;
/** Where that is to say something it takes at least so long, in milliseconds: some ten seconds after the last work the runtime tidies up once. */
const LEAST_SETTLE_MS = 15_000;
const SHORT_MS = 2_000;

/** The suite and its measure. */
export const IDLE_SUITE = "idle";
/** What is measured. */
export const IDLE_SHARE = "share of a processor";
/** The base: a process that only waits. */
export const NO_WORKER = "no worker";

/** The processes are watched at the same time: what they take is counted for each. */
export async function runIdle(run: Run): Promise<void> {
  const { idleMs } = run.settings;
  run.results.begin(IDLE_SUITE, {
    title: "Idle: what a worker takes whose queue is empty",
    base: NO_WORKER,
    order: [NO_WORKER, ...STORES],
    note: `Time of the processor, all threads of a process with one worker, over ${(idleMs / 1_000).toLocaleString("en")} seconds; without Redis' own.`,
  });
  await withStores(run, (stores) =>
    run.inFolder(async (folder) => {
      run.tell("idle: processes with one worker each, whose queues are empty");
      const settleMs = idleMs > SHORT_MS ? Math.max(LEAST_SETTLE_MS, idleMs * SETTLE_PART) : idleMs * SETTLE_PART;
      const children = [NO_WORKER, ...STORES].map((name) => {
        const store = STORES.find((one) => one === name);
        const task: IdleTask = { settleMs, idleMs, ...(store === undefined ? {} : { place: stores.newPlace(store, folder) }) };
        return { name, child: startProcess<number>("idle-main.ts", task) };
      });
      for (const { name, child } of children) {
        run.results.record(IDLE_SUITE, IDLE_SHARE, name, "%", await child.next());
        await child.ended;
      }
    }),
  );
}
