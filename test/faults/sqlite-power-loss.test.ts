/**
 * The power fails at thousands of instants of one recorded run of several processes: what was synced is there, of the rest whatever the disk
 * happened to write, torn sectors included. QUEUEFS_FAULTS_CRASH_POINTS sets how many, QUEUEFS_SEED which.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { SeededRandom } from "../../src/testing/index.ts";
import { childProcesses } from "../support/child-process.ts";
import { report } from "./report.ts";
import { contradictions, type Durability, type Line, type Mark, readLines } from "./sqlite-io/chronicle.ts";
import { Disk, type RecordedCall, readRecord } from "./sqlite-io/disk.ts";
import { fastFolder } from "./sqlite-io/fast-folder.ts";
import { buildFileCalls, FileCallControl, prepareFileCalls } from "./sqlite-io/file-calls.ts";
import type { FileCallPrograms } from "./sqlite-io/programs.ts";
import { givenSeed } from "./sqlite-io/seed.ts";

const children = childProcesses<FileCallPrograms>("test/faults/sqlite-io/programs.ts");
const CRASH_POINTS = Number(process.env.QUEUEFS_FAULTS_CRASH_POINTS ?? 1_000);
const WORKERS = ["ada", "bob", "cid"];
const ROUNDS = 25;
let folder: string;
let library: string;

beforeAll(() => {
  folder = mkdtempSync(join(fastFolder() ?? tmpdir(), "queuefs-power-loss-"));
  library = buildFileCalls(folder);
});

afterEach(() => children.end());
afterAll(() => rmSync(folder, { recursive: true }));

interface Run {
  readonly calls: readonly RecordedCall[];
  readonly lines: readonly { id: string; said: Line }[];
  readonly checkpoints: number;
}

/** One run: the store is made, then twice three workers and a checkpointer open it, work and close, so that the log goes and comes again. */
async function recordRun(durability: Durability, isLying: boolean): Promise<Run> {
  const place = mkdtempSync(join(folder, "run-"));
  mkdirSync(join(place, "counted"));
  const { environment, record } = prepareFileCalls(library, join(place, "counted"), place);
  const control = new FileCallControl(join(place, "control"));
  control.set("recording", 1);
  control.set("lying", isLying ? 1 : 0);
  const path = join(place, "counted", "queue.db");
  const workers = await Promise.all(WORKERS.map(() => children.start({ environment })));
  const checkpointer = await children.start({ environment });
  await workers[0]?.call("setUp", path, durability, WORKERS);
  let checkpoints = 0;
  for (const phase of ["early", "late"]) {
    const working = workers.map((worker, index) => worker.call("chronicle", path, durability, WORKERS[index] as string, phase, ROUNDS));
    const checkpointing = checkpointer.call("checkpointAgainAndAgain", path, durability);
    await Promise.all(working);
    await checkpointer.call("stopCheckpoints");
    checkpoints += await checkpointing;
  }
  control.close();
  const backend = await openSqlite({ path });
  const lines = (await readLines(backend)) as Run["lines"];
  await backend.close();
  return { calls: readRecord(record), lines, checkpoints };
}

/** Has the power fail at so many instants, chosen by chance. @returns what was wrong afterwards */
async function crash(run: Run, points: number, seed: number, isFull: boolean, mostFound = Number.POSITIVE_INFINITY): Promise<string[]> {
  const random = new SeededRandom(seed);
  const instants = Array.from({ length: points }, () => Math.floor(random.fraction() * (run.calls.length + 1))).sort((a, b) => a - b);
  const disk = new Disk();
  const answered = new Set<string>();
  const found: string[] = [];
  let isSetUp = false;
  let performed = 0;
  for (const instant of instants) {
    for (; performed < instant; performed += 1) {
      const call = run.calls[performed] as RecordedCall;
      if (call.kind !== "mark") disk.perform(call);
      else {
        const mark = JSON.parse(call.data.toString()) as Mark;
        if ("set" in mark) isSetUp = true;
        else answered.add(mark.line);
      }
    }
    const place = mkdtempSync(join(folder, "crash-"));
    const words = disk.losePower(place, random);
    // Shared memory of before is on the disk as it may be.
    if (random.fraction() < 0.3) writeFileSync(join(place, "queue.db-shm"), Buffer.alloc(32_768, Math.floor(random.fraction() * 256)));
    const wrong = await examine(join(place, "queue.db"), run, isFull ? answered : new Set(), isFull && isSetUp);
    found.push(...wrong.map((text) => `after ${instant} of ${run.calls.length} calls (${words}): ${text}`));
    rmSync(place, { recursive: true });
    if (found.length >= mostFound) break;
  }
  return found;
}

async function examine(path: string, run: Run, answered: ReadonlySet<string>, isSetUp: boolean): Promise<string[]> {
  try {
    const backend = await openSqlite({ path, bootId: "after", durability: "normal", sweepIntervalMs: 3_600_000, onError: () => {} });
    try {
      return await contradictions(backend, run.lines, answered, isSetUp);
    } finally {
      await backend.close();
    }
  } catch (error) {
    return [error instanceof Error ? String(error.stack) : String(error)];
  }
}

function tell(what: string, { calls, checkpoints, lines }: Run, points: number): void {
  const count = (kind: string): number => calls.filter((call) => call.kind === kind).length;
  report(
    `${what}: up to ${points} crash points in ${count("write")} writes, ${count("sync")} syncs, ${checkpoints} checkpoints, ${lines.length} commits with a line`,
  );
}

describe("a power loss", () => {
  it.each(["full", "normal"] as const)("with durability %s leaves what was promised", async (durability) => {
    const run = await recordRun(durability, false);
    expect(run.lines.length).toBeGreaterThan(2 * WORKERS.length * ROUNDS);
    expect(run.checkpoints).toBeGreaterThan(2);
    const found = await crash(run, CRASH_POINTS, givenSeed(), durability === "full");
    tell(durability, run, CRASH_POINTS);
    expect(found).toEqual([]);
  });

  it("on a disk that only says it has synced is found out", async () => {
    const run = await recordRun("full", true);
    const found = await crash(run, CRASH_POINTS, givenSeed(), true, 1);
    // It ends at the first that is wrong.
    tell("lying disk", run, CRASH_POINTS);
    expect(found.length).toBeGreaterThan(0);
  });
});
