/** How soon a program can work: from opening a store to the first enqueue, and a whole run of the command line against an empty run of Node.js. */

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { PAYLOAD } from "../contender.ts";
import { fillQueue, QUEUE } from "../contenders/queuefs.ts";
import { median } from "../results.ts";
import { type Run, turns } from "../settings.ts";
import { openPlace, type Place, STORES, type Stores, withStores } from "../stores.ts";

/** Messages in a file that is opened again. */
const MESSAGES = 10_000;
const NEW_FILE = "SQLite, a new file";
const OLD_FILE = `SQLite, a file with ${MESSAGES.toLocaleString("en")} messages`;
const FIRST_ENQUEUE = "from opening to the first enqueue";

/** The suite of processes, with its measure and the two that are compared. */
export const PROCESS_SUITE = "start-up-process";
/** The measure. */
export const WHOLE_RUN = "a whole run";
/** The base. */
export const EMPTY_RUN = "node -e 0";
/** The command line. */
export const STATUS_RUN = "queuefs status";

const program = join(import.meta.dirname, "..", "..", "dist", "cli", "main.js");

/** Everything about starting. */
export async function runStartUp(run: Run): Promise<void> {
  run.results.begin("start-up", {
    title: "Start-up: from opening a store to the answer of the first enqueue",
    base: NEW_FILE,
    order: ["memory", NEW_FILE, OLD_FILE, "Redis"],
    note: "The queue is made in between. The modules are loaded already; SQLite commits with full, as it does unless told otherwise.",
  });
  run.results.begin(PROCESS_SUITE, {
    title: "Start-up: a whole run of the command line",
    base: EMPTY_RUN,
    order: [EMPTY_RUN, STATUS_RUN],
    note: `From the start of the process to its end; the file of SQLite has ${MESSAGES.toLocaleString("en")} messages.`,
  });
  await withStores(run, (stores) =>
    run.inFolder(async (folder) => {
      const filled = stores.newPlace("SQLite", folder, "full");
      const store = await openPlace(run.library, filled);
      await store.createQueue(QUEUE);
      await fillQueue(store, QUEUE, MESSAGES);
      await store.close();
      await measureOpening(run, stores, folder, filled);
      measureRuns(run, filled);
    }),
  );
}

async function measureOpening(run: Run, stores: Stores, folder: string, filled: Place): Promise<void> {
  const places: Readonly<Record<string, () => Place>> = {
    ...Object.fromEntries(STORES.map((store) => [store === "SQLite" ? NEW_FILE : store, () => stores.newPlace(store, folder, "full")])),
    [OLD_FILE]: () => filled,
  };
  for (let round = 0; round < run.settings.rounds; round += 1) {
    const times = new Map(Object.keys(places).map((name) => [name, [] as number[]]));
    for (let opening = 0; opening < run.settings.openings; opening += 1) {
      for (const name of turns(Object.keys(places), opening)) {
        run.tell(`start-up, round ${round + 1}: ${name}`);
        const place = (places[name] as () => Place)();
        const begunMs = performance.now();
        const store = await openPlace(run.library, place);
        await store.createQueue(QUEUE);
        await store.enqueue(QUEUE, [{ data: PAYLOAD }]);
        times.get(name)?.push(performance.now() - begunMs);
        await store.close();
      }
    }
    for (const [name, values] of times) run.results.record("start-up", FIRST_ENQUEUE, name, "ms", median(values));
  }
}

function measureRuns(run: Run, { path }: Place): void {
  const runs: Readonly<Record<string, readonly string[]>> = {
    [EMPTY_RUN]: ["-e", "0"],
    [STATUS_RUN]: [program, "status", QUEUE, "--store", `sqlite:${path}`],
  };
  for (let round = 0; round < run.settings.rounds; round += 1) {
    const times = new Map(Object.keys(runs).map((name) => [name, [] as number[]]));
    for (let opening = 0; opening < run.settings.openings; opening += 1) {
      for (const name of turns(Object.keys(runs), opening)) {
        run.tell(`start-up, round ${round + 1}: ${name}`);
        const begunMs = performance.now();
        const { status, stderr } = spawnSync(process.execPath, runs[name], { encoding: "utf8" });
        times.get(name)?.push(performance.now() - begunMs);
        if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
      }
    }
    for (const [name, values] of times) run.results.record(PROCESS_SUITE, WHOLE_RUN, name, "ms", median(values));
  }
}
