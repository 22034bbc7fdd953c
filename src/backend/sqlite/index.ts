/** The SQLite backend, the default: one file, several processes of one host, nothing to set up. */

import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { systemClock, systemRandom } from "../../core/clock.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import type { Backend } from "../contract.ts";
import { SqliteBackend } from "./backend.ts";
import { type Database, networkFileSystem, openDatabase } from "./connection.ts";
import { readBootId } from "./host.ts";
import { SQLITE_OPTIONS, type SqliteOptions, type SqliteSettings } from "./options.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { TaskMemory } from "./task-memory.ts";

export { SQLITE_OPTIONS, type SqliteOptions } from "./options.ts";

/**
 * Opens a store in a SQLite file, making the file if it is missing. Other processes of the same host may have it open. Ended leases are
 * recovered from then on; nobody's live delivery is disturbed.
 *
 * @throws QueueFSError `invalid-argument`, `dependency-missing`, `store-unreachable` (no folder, no permission), `store-unsuitable` (newer
 * schema, another program's file, no write-ahead log), `store-corrupt`, `store-busy`, `store-read-only`
 */
export async function openSqlite(options: SqliteOptions): Promise<Backend> {
  const values = readOptions("openSqlite", SQLITE_OPTIONS, options);
  const settings: SqliteSettings = {
    ...values,
    path: realPath(values.path),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    bootId: options.bootId ?? readBootId(),
    onError: options.onError ?? ((error) => process.emitWarning(error instanceof Error ? error : String(error))),
  };
  const backend = await openDatabase(settings, (database) => {
    const sql = prepareStatements(database);
    adoptBoot(database, sql, settings);
    const [storeId] = sql.setting.get("store") as [string];
    const { clock, random, path, durability, busyTimeoutMs, rememberMs, sweepIntervalMs } = settings;
    const reopening = {
      module: import.meta.url,
      exportName: "openSqlite",
      options: { path, durability, busyTimeoutMs, rememberMs, sweepIntervalMs },
    };
    return new SqliteBackend(database, { sql, clock, random, storeId, rememberMs, tasks: new TaskMemory() }, settings, reopening);
  });
  const network = networkFileSystem(settings.path);
  if (network !== undefined) {
    settings.onError(
      new QueueFSError(
        "store-unsuitable",
        `${settings.path} lies on ${network}, where SQLite's log cannot be shared safely between hosts; use a local disk, or Redis`,
      ),
    );
  }
  try {
    await backend.recoverAtOpen();
    return backend;
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/**
 * The file's own name, from the root: with another name of it the log beside it would be looked for in the wrong place, and a relative one
 * would change its meaning with the working folder. SQLite would also take `:memory:` and `file:` for something else than a file.
 *
 * @throws QueueFSError `invalid-argument`
 */
function realPath(path: string | undefined): string {
  if (path === undefined || path === "" || path.includes("\0"))
    throw new QueueFSError("invalid-argument", `openSqlite needs the option path, a file name, got ${quote(path)}`);
  if (path === ":memory:")
    throw new QueueFSError("invalid-argument", "openSqlite keeps its store in a file; for one in memory use openMemory");
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    // There is no such file yet, or it cannot be looked at: opening it will say what is wrong.
    return absolute;
  }
}

/** After a boot the monotonic clock began anew: all leases have ended, delays go on by the wall clock, memories last their time again. */
function adoptBoot(database: Database, sql: Statements, settings: SqliteSettings): void {
  const isAnother = (): boolean => (sql.setting.get("boot") as [string] | undefined)?.[0] !== settings.bootId;
  if (!isAnother()) return;
  database
    .transaction(() => {
      if (!isAnother()) return;
      const nowMs = Math.ceil(settings.clock.monotonicMs());
      sql.endAllLeases.run();
      sql.endAllProducers.run();
      sql.rebaseDelays.run(nowMs, Math.floor(settings.clock.wallMs()));
      sql.rebaseChosenIds.run(nowMs + settings.rememberMs, nowMs + settings.rememberMs);
      sql.rebaseRequests.run(nowMs + settings.rememberMs);
      sql.deleteSessions.run();
      sql.saveSetting.run("boot", settings.bootId);
    })
    .immediate();
}
