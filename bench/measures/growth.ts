/** Growth: millions of messages through each store with a bounded backlog, and how large heap, process, files and server are meanwhile. */

import type { Run } from "../settings.ts";
import { STORES, type StoreName, startProcess, withStores } from "../stores.ts";
import type { GrowthMark, GrowthTask } from "./growth-main.ts";

const BACKLOG = 1_000;
const CALLERS = 64;
const MARKS = 10;

/** The suite. */
export const GROWTH_SUITE = "growth";
/** The first row, to which the others are set in relation, and the last. */
export const FIRST_MARK = "begin";
/** The other one. */
export const LAST_MARK = "end";

/** The columns of a store. */
export function growthOf(store: StoreName, what: "heap" | "process" | "files" | "server"): string {
  return `${store}: ${what}`;
}

/** Everything about growth. */
export async function runGrowth(run: Run): Promise<void> {
  const { growthMessages } = run.settings;
  const step = growthMessages / MARKS;
  const rows = Array.from({ length: MARKS + 1 }, (_, index) =>
    index === 0 ? FIRST_MARK : index === MARKS ? LAST_MARK : `after ${(step * index).toLocaleString("en")}`,
  );
  run.results.begin(GROWTH_SUITE, {
    title: `Growth: bytes while ${growthMessages.toLocaleString("en")} messages go through`,
    base: growthOf("memory", "heap"),
    baseMeasure: FIRST_MARK,
    order: STORES.flatMap((store) => (["heap", "process", "files", "server"] as const).map((what) => growthOf(store, what))),
    plot: {
      kind: "lines",
      x: "messages that went through",
      y: "bytes of the heap",
      at: Object.fromEntries(rows.map((row, index) => [row, step * index])),
      contenders: STORES.map((store) => growthOf(store, "heap")),
      isLinear: true,
    },
    note: `${BACKLOG.toLocaleString("en")} messages are there all the time, ${CALLERS} callers make cycles; each store in a process of its own. Begin: after a warm-up of ${step.toLocaleString("en")} messages. Heap: what JavaScript holds, buffers included, after its garbage was collected; process: its resident memory; files: the database and its log; server: used_memory of Redis.`,
  });
  await withStores(run, async (stores) => {
    for (const store of STORES) {
      await run.inFolder(async (folder) => {
        const task: GrowthTask = {
          place: stores.newPlace(store, folder),
          messages: growthMessages,
          backlog: BACKLOG,
          callers: CALLERS,
          marks: MARKS,
        };
        const child = startProcess<GrowthMark>("growth-main.ts", task);
        for (const row of rows) {
          run.tell(`growth: ${store}, ${row}`);
          const { heapBytes, processBytes, fileBytes } = await child.next();
          const record = (what: "heap" | "process" | "files" | "server", bytes: number): void =>
            run.results.record(GROWTH_SUITE, row, growthOf(store, what), "bytes", bytes);
          record("heap", heapBytes);
          record("process", processBytes);
          if (store === "SQLite") record("files", fileBytes);
          if (store === "Redis") record("server", await stores.serverBytes());
          child.send("go on");
        }
        await child.ended;
      });
      await stores.clear();
    }
  });
}
