/** What is left of the event loop under load: how late a timer of one millisecond is while 64 callers make cycles. */

import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Load } from "../contender.ts";
import { contestOf } from "../contenders/queuefs.ts";
import { type Run, turns } from "../settings.ts";
import { openPlace, type Stores, withStores } from "../stores.ts";

const CALLERS = 64;
/** Windows are longer here: some delays are rare. */
const WINDOWS = 5;
const NOTHING = "no load";
const SETTLE_MS = 3;
/** Who takes part, with the store and its durability. */
const LOADS = {
  memory: ["memory", "normal"],
  "SQLite, normal": ["SQLite", "normal"],
  "SQLite, full": ["SQLite", "full"],
  Redis: ["Redis", "normal"],
} as const;

/** The suite. */
export const LOOP_SUITE = "event-loop";

/** Everything about the event loop. */
export async function runEventLoop(run: Run): Promise<void> {
  run.results.begin(LOOP_SUITE, {
    title: `Event loop: from one tick of a timer of 1 ms to the next, while ${CALLERS} callers make cycles`,
    base: NOTHING,
    order: [NOTHING, ...Object.keys(LOADS)],
    note: "What other work of the same process has to wait for. Read with perf_hooks.monitorEventLoopDelay.",
  });
  await withStores(run, async (stores) => {
    for (let round = 0; round < run.settings.rounds; round += 1) {
      for (const name of turns([NOTHING, ...Object.keys(LOADS)], round)) {
        run.tell(`event loop, round ${round + 1}: ${name}`);
        await run.inFolder((folder) => measureLoad(run, stores, name, folder));
        await stores.clear();
      }
    }
  });
}

async function measureLoad(run: Run, stores: Stores, name: string, folder: string): Promise<void> {
  const durationMs = run.settings.windowMs * WINDOWS;
  const load = LOADS[name as keyof typeof LOADS];
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  const measure = async (make: (durationMs: number) => Promise<unknown>): Promise<void> => {
    await make(durationMs / WINDOWS);
    histogram.enable();
    // A delay is counted from tick to tick: the first must have been, and the last is to come.
    await sleep(SETTLE_MS);
    await make(durationMs);
    await sleep(SETTLE_MS);
    histogram.disable();
  };
  if (load === undefined) {
    await measure((ms) => sleep(ms));
  } else {
    const store = await openPlace(run.library, stores.newPlace(load[0], folder, load[1]));
    const contest = await contestOf(store);
    try {
      await measure((ms) => contest.cycle(new Load(CALLERS, { durationMs: ms })));
    } finally {
      await contest.close();
    }
  }
  for (const [measureName, value] of [
    ["p50", histogram.percentile(50)],
    ["p99", histogram.percentile(99)],
    ["longest", histogram.max],
  ] as const) {
    run.results.record(LOOP_SUITE, measureName, name, "us", value / 1_000);
  }
}
