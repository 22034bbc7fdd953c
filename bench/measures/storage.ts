/** Bytes on disk: of a stored message, and of what a cycle writes to the write-ahead log. Both are the same in every run. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { type Contender, type Contest, Load, PAYLOAD_BYTES } from "../contender.ts";
import type { Run } from "../settings.ts";

const STORED_MESSAGES = 20_000;
/** Cycles of each caller before the log is looked at, and cycles that are counted. */
const FIRST_CYCLES = 10;
const CYCLES = 50;

/** Bytes that a message needs beyond its payload, while the store is full. */
export async function measureStored(run: Run, suite: string, contenders: readonly Contender[]): Promise<void> {
  for (const contender of contenders) {
    run.tell(`${suite}: bytes per stored message, ${contender.name}`);
    const messages = Math.min(STORED_MESSAGES, contender.drainMessages * 4);
    const empty = await sizeWith(run, contender, 0);
    const full = await sizeWith(run, contender, messages);
    run.results.record(suite, "bytes per message beyond its payload", contender.name, "bytes", (full - empty) / messages - PAYLOAD_BYTES);
  }
}

function sizeWith(run: Run, contender: Contender, messages: number): Promise<number> {
  return run.inFolder(async (folder) => {
    const contest = await contender.open(folder);
    await contest.fill(messages);
    // The last one to close writes the log into the file.
    await contest.close();
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  });
}

/** Bytes of the write-ahead log per cycle, by one caller and by 64 at once. */
export async function measureLog(run: Run, suite: string, contenders: readonly Contender[]): Promise<void> {
  for (const contender of contenders) {
    run.tell(`${suite}: bytes of the log per cycle, ${contender.name}`);
    for (const callers of [1, 64]) {
      const bytes = await run.inFolder(async (folder) => {
        const contest = await contender.open(folder);
        try {
          return await logBytes(folder, contest, callers);
        } finally {
          await contest.close();
        }
      });
      run.results.record(suite, logOf(callers), contender.name, "bytes", bytes);
    }
  }
}

/** The name of the measure. */
export function logOf(callers: number): string {
  return `log bytes per cycle x${callers}`;
}

async function logBytes(folder: string, contest: Contest, callers: number): Promise<number> {
  const path = join(folder, readdirSync(folder).find((name) => name.endsWith(".db")) as string);
  // While somebody reads an old state, the log cannot begin anew, so its length is what was written.
  const reader = new Database(path, { readonly: true });
  try {
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM sqlite_schema").get();
    await contest.cycle(new Load(callers, { calls: FIRST_CYCLES * callers }));
    const before = logSize(path);
    const load = new Load(callers, { calls: CYCLES * callers });
    await contest.cycle(load);
    return (logSize(path) - before) / load.done;
  } finally {
    reader.close();
  }
}

function logSize(path: string): number {
  return existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0;
}
