/** Where and with what the run was made: the class of the machine and the versions, never its name. */

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";

/** The class of a machine. */
export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly memoryGiB: number;
  readonly platform: string;
  /** How many processes wanted to run when the run began, over the last minute: more than there are cores means noisy figures. */
  readonly loadAtBegin: number;
}

const root = join(import.meta.dirname, "..");

/** Describes this machine. */
export function describeMachine(): Machine {
  const all = cpus();
  return {
    cores: all.length,
    processor: all[0]?.model.trim() ?? "unknown",
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    platform: `${process.platform} ${process.arch}`,
    loadAtBegin: Math.round((loadavg()[0] ?? 0) * 10) / 10,
  };
}

/** The versions of all that takes part and is there. */
export function describeVersions(): Record<string, string> {
  const versions: Record<string, string> = { "Node.js": process.versions.node };
  for (const name of ["better-sqlite3", "ioredis"]) {
    const version = versionOf(join(root, "node_modules", name));
    if (version !== undefined) versions[name] = version;
  }
  const database = new Database(":memory:");
  versions.SQLite = String(database.prepare("SELECT sqlite_version()").pluck().get());
  database.close();
  const server = /v=(\S+)/.exec(spawnSync("redis-server", ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1];
  if (server !== undefined) versions["Redis server"] = server;
  for (const name of ["plainjob", "liteque", "better-queue", "better-queue-sqlite", "bullmq", "bee-queue"]) {
    const version = versionOf(join(root, "bench", "peers", "node_modules", name));
    if (version !== undefined) versions[name] = version;
  }
  return versions;
}

function versionOf(folder: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }).version;
  } catch {
    // It is not installed, which is told where contenders are chosen.
    return undefined;
  }
}
