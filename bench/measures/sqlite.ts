/** SQLite: QueueFS with both durabilities, raw statements as the limit, a transaction per call, and the peers. */

import { join } from "node:path";
import type { Contender } from "../contender.ts";
import { contestOf } from "../contenders/queuefs.ts";
import { rawStatements } from "../contenders/raw-statements.ts";
import { referenceLayout } from "../contenders/reference-layout.ts";
import { sqlitePeers } from "../peers/index.ts";
import type { Run } from "../settings.ts";
import { measureHeld, measureSnapshot, measureStatus } from "./depth.ts";
import { measureProcesses, PROCESSES_SUITE, processesOf, SHARING_SUITE } from "./processes.ts";
import { measureLog, measureStored } from "./storage.ts";
import { measureThroughput } from "./throughput.ts";

/** Messages at most, since a status costs some contenders more the deeper they are; QueueFS alone goes deeper in a suite of its own. */
const DEEPEST = 1_000_000;

/** The order of the tables. */
const ORDER = [
  "QueueFS, normal",
  "raw batches, normal",
  "per call, normal",
  "plainjob",
  "liteque",
  "better-queue",
  "QueueFS, full",
  "raw batches, full",
  "per call, full",
];

/** QueueFS on SQLite. */
export function queuefsSqlite(run: Run, durability: "full" | "normal"): Contender {
  return {
    name: `QueueFS, ${durability}`,
    role: "queuefs",
    durability,
    drainMessages: 20_000,
    open: async (folder) => contestOf(await run.library.openSqlite({ path: join(folder, "queue.db"), durability })),
  };
}

/** All who take part on SQLite. */
async function contendersOf(run: Run): Promise<Contender[]> {
  const { contenders, skipped } = await sqlitePeers();
  run.results.skip(skipped);
  const peers = contenders.filter(({ isSlow }) => run.settings.isThorough || isSlow !== true);
  run.results.skip(contenders.filter((peer) => !peers.includes(peer)).map(({ name }) => `${name} takes no part in a quick run`));
  const own = (["normal", "full"] as const).flatMap((durability) => [
    queuefsSqlite(run, durability),
    rawStatements(durability),
    referenceLayout(durability),
  ]);
  return [...own, ...peers];
}

/** Throughput and latency. */
export async function runSqlite(run: Run): Promise<void> {
  run.results.begin("sqlite", {
    title: "SQLite: calls per second",
    base: "QueueFS, normal",
    order: ORDER,
    plot: { kind: "bars", measures: ["enqueue x1", "enqueue x64", "enqueue x1000", "cycle x1", "cycle x64", "drain x64"] },
    note: "A cycle is enqueue, dequeue and ack; x64 means 64 callers at once, each awaiting one call after the other. Normal and full: SQLite's synchronous mode, full waits for the disk at each commit and is the default of QueueFS; the peers commit with normal, better-queue with off, and it answers an enqueue before it has written anything; that its writes come to an end counts. Raw batches: the statements alone, as many per transaction as there are callers, which is the limit. Per call: the statement pattern of the reference layout, a transaction for each call.",
  });
  run.results.begin("sqlite-processor", {
    title: "SQLite: time of the processor per call",
    base: "QueueFS, normal",
    order: ORDER,
    note: "What the same calls cost the processor, all threads of the process together: less noisy than the clock on a machine that does other things as well.",
  });
  await measureThroughput(run, "sqlite", await contendersOf(run));
}

/** What grows with depth, and what must not. */
export async function runSqliteDepth(run: Run): Promise<void> {
  run.results.begin("sqlite-depth", {
    title: "SQLite: what a call costs when the queue is deep",
    base: "QueueFS, normal",
    order: ORDER,
    note: "Microseconds until the answer, the median. Per call is the reference layout, which counts rows, as the peers do.",
  });
  const contenders = (await contendersOf(run)).filter(({ role, durability }) => role !== "limit" && durability !== "full");
  const { depths } = run.settings;
  for (const contender of contenders) {
    const { deepestStatus = DEEPEST } = contender;
    await measureStatus(
      run,
      "sqlite-depth",
      [contender],
      depths.filter((depth) => depth <= deepestStatus),
    );
  }
  const open = (folder: string) => run.library.openSqlite({ path: join(folder, "queue.db"), durability: "normal" });
  await measureSnapshot(run, "sqlite-depth", "QueueFS, normal", open);
  await measureHeld(run, "sqlite-depth", "QueueFS, normal", open);
}

/** Bytes. */
export async function runSqliteStorage(run: Run): Promise<void> {
  run.results.begin("sqlite-storage", {
    title: "SQLite: bytes",
    base: "QueueFS, normal",
    order: ORDER,
    note: "Messages of 256 bytes. These figures are the same in every run.",
  });
  const contenders = (await contendersOf(run)).filter(({ durability }) => durability !== "full");
  await measureStored(run, "sqlite-storage", contenders);
  await measureLog(
    run,
    "sqlite-storage",
    contenders.filter(({ isWithoutLog }) => isWithoutLog !== true),
  );
}

/** Several processes. */
export async function runSqliteProcesses(run: Run): Promise<void> {
  const { processes, isThorough } = run.settings;
  run.results.begin(PROCESSES_SUITE, {
    title: "SQLite: cycles per second of several processes on one file, together",
    base: "QueueFS, normal",
    baseMeasure: processesOf(1),
    order: ORDER,
    plot: {
      kind: "lines",
      x: "processes",
      y: "cycles per second",
      at: Object.fromEntries(processes.map((count) => [processesOf(count), count])),
      isLinear: true,
    },
    note: "64 callers in each process, all making cycles on one queue.",
  });
  run.results.begin(SHARING_SUITE, {
    title: "SQLite: how several processes share one file",
    base: "QueueFS, normal",
    order: ORDER,
    note: "The same runs.",
  });
  for (const durability of isThorough ? (["normal", "full"] as const) : (["normal"] as const)) await measureProcesses(run, durability);
}
