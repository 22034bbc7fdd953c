/** Opening a file: the driver, the pragmas, the checks, the schema. */

import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type Driver from "better-sqlite3";
import { backoffMs } from "../../core/backoff.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import { MOST_PAGES } from "./checkpoints.ts";
import type { SqliteSettings } from "./options.ts";
import { schema } from "./schema.generated.ts";
import { isBusy, translate } from "./sqlite-error.ts";

/** "QuFS": marks the file as ours (https://www.sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x51754653;
/** The newest schema this version knows; schema 001 is version 1. */
const SCHEMA_VERSION = Object.keys(schema).length;
/**
 * Page size of new files, in bytes. Measured on 256-byte messages: half the WAL bytes of a cycle with 4,096-byte pages at the same
 * throughput, and 4 KiB messages waste 6 % instead of 12 %.
 */
const PAGE_BYTES = 2_048;
/** Bytes of the log that are kept when it begins anew: what {@link MOST_PAGES} take. */
const LOG_BYTES = MOST_PAGES * PAGE_BYTES;
/** Files above this size are not checked at each open, since that reads them whole; `queuefs doctor` does. In bytes. */
const CHECK_AT_OPEN_BYTES = 8 * 1024 * 1024;
/** First version without the WAL-reset bug (https://www.sqlite.org/wal.html#walresetbug), among the branches better-sqlite3 has shipped. */
const OLDEST_LIBRARY = [3, 51, 3] as const;

/** One open database file. */
export type Database = Driver.Database;

/**
 * Opens the file, makes or checks its schema, and lets `begin` do what else belongs to opening. All of it is tried again while other
 * processes are in the way.
 *
 * @throws QueueFSError `dependency-missing`, `store-unsuitable`, `store-corrupt`, `store-unreachable`, …
 */
export async function openDatabase<Result>(settings: SqliteSettings, begin: (database: Database) => Result): Promise<Result> {
  const { path, clock } = settings;
  const Constructor = await loadDriver();
  if (!existsSync(dirname(path))) {
    throw new QueueFSError("store-unreachable", `the folder of ${quote(path)} does not exist; make it first`);
  }
  const deadlineMs = clock.monotonicMs() + Math.max(settings.busyTimeoutMs, 1_000);
  for (let attempt = 1; ; attempt += 1) {
    let database: Database | undefined;
    try {
      // A busy handler inside SQLite would block the event loop: one millisecond only, the rest is waited for outside.
      database = new Constructor(path, { timeout: 1 });
      prepareFile(database, settings);
      return begin(database);
    } catch (error) {
      database?.close();
      if (!isBusy(error) || clock.monotonicMs() >= deadlineMs) throw translate(error, path);
      await new Promise<void>((done) => setTimeout(done, backoffMs({ firstMs: 4, maximumMs: 50 }, attempt, settings.random)));
    }
  }
}

async function loadDriver(): Promise<typeof Driver> {
  try {
    return (await import("better-sqlite3")).default;
  } catch (error) {
    throw new QueueFSError(
      "dependency-missing",
      `the SQLite backend needs the package better-sqlite3 (12 on Node 20, 12 or 13 on Node 22 and later), which did not load: ${String(error)}`,
      { cause: error },
    );
  }
}

function prepareFile(database: Database, settings: SqliteSettings): void {
  checkLibrary(database);
  const isNew = database.pragma("page_count", { simple: true }) === 0;
  if (isNew) {
    // Both take effect only before the first page is written.
    database.pragma(`page_size = ${PAGE_BYTES}`);
    database.pragma("auto_vacuum = INCREMENTAL");
  } else {
    checkOwnership(database, settings.path);
  }
  if (database.pragma("journal_mode = WAL", { simple: true }) !== "wal") {
    throw new QueueFSError("store-unsuitable", `${settings.path}: the file cannot use write-ahead logging here; put it on a local disk`);
  }
  // better-sqlite3 compiles NORMAL in as the default of WAL files: say it on every connection.
  database.pragma(`synchronous = ${settings.durability === "full" ? "FULL" : "NORMAL"}`);
  // As long as the log gets (checkpoints.ts): one that is cut each time it begins anew has to be made longer again, page by page.
  database.pragma(`journal_size_limit = ${LOG_BYTES}`);
  database.pragma("cache_size = -16384");
  database.pragma("temp_store = MEMORY");
  migrate(database, settings);
  const pages = database.pragma("page_count", { simple: true }) as number;
  const pageBytes = database.pragma("page_size", { simple: true }) as number;
  if (!isNew && pages * pageBytes <= CHECK_AT_OPEN_BYTES) {
    const found = database.pragma("quick_check(1)", { simple: true });
    // A page that cannot be read now says nothing of what is on it: a sound file is not to be replaced by a backup.
    if (isUnread(found))
      throw new QueueFSError("store-failed", `${settings.path}: the disk failed while the file was checked (${String(found)}); try again`);
    if (found !== "ok")
      throw new QueueFSError(
        "store-corrupt",
        `${settings.path}: the database is damaged (${String(found)}); stop all processes, copy the file and its -wal aside, restore a backup`,
      );
  }
}

/** Whether a check could not read a page: SQLite then answers with a text that ends in a code of SQLITE_IOERR (10 in its lowest byte). */
export function isUnread(found: unknown): boolean {
  const code = /unable to get the page\. error code=(\d+)/.exec(String(found))?.[1];
  return code !== undefined && (Number(code) & 0xff) === 10;
}

function checkLibrary(database: Database): void {
  const version = String(database.prepare("SELECT sqlite_version()").pluck().get());
  const numbers = version.split(".").map(Number);
  for (const [index, oldest] of OLDEST_LIBRARY.entries()) {
    const number = numbers[index] ?? 0;
    if (number > oldest) return;
    if (number < oldest) {
      throw new QueueFSError(
        "store-unsuitable",
        `SQLite ${version} has a bug that can lose commits (fixed in ${OLDEST_LIBRARY.join(".")}); install better-sqlite3 12.11 or later`,
      );
    }
  }
}

function checkOwnership(database: Database, path: string): void {
  // Both of one moment: another process may be making the store just now.
  const { application, tables } = database.transaction(() => ({
    application: database.pragma("application_id", { simple: true }),
    tables: database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[],
  }))();
  if (application === APPLICATION_ID || tables.length === 0) return;
  if (tables.includes("queue_messages")) {
    throw new QueueFSError(
      "store-unsuitable",
      `${path}: this is a queue.db of the reference layout; take it over with: queuefs migrate ${quote(path)}`,
    );
  }
  throw new QueueFSError(
    "store-unsuitable",
    `${path}: this database belongs to another program (tables ${tables.slice(0, 5).join(", ")}); choose another file`,
  );
}

function migrate(database: Database, settings: SqliteSettings): void {
  if (database.pragma("user_version", { simple: true }) === SCHEMA_VERSION) return;
  database
    .transaction(() => {
      const version = database.pragma("user_version", { simple: true }) as number;
      if (version > SCHEMA_VERSION) {
        throw new QueueFSError(
          "store-unsuitable",
          `${settings.path}: its schema ${version} is newer than ${SCHEMA_VERSION}, the newest this version of QueueFS knows; use a newer QueueFS`,
        );
      }
      for (const step of Object.keys(schema).sort().slice(version)) database.exec(schema[step as keyof typeof schema]);
      database.pragma(`application_id = ${APPLICATION_ID}`);
      database.pragma(`user_version = ${SCHEMA_VERSION}`);
      if (version === 0) {
        const save = database.prepare("INSERT INTO store (name, value) VALUES (?, ?)");
        save.run("store", settings.random.token().toString(36));
        save.run("boot", settings.bootId);
        save.run("life", 0);
      }
    })
    .immediate();
}

/** File systems that several hosts share, where WAL cannot work; numbers of statfs(2): NFS, SMB, SMB2, CIFS, 9P, AFS, Ceph, FUSE. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB2"],
  [0xff534d42, "CIFS"],
  [0x01021997, "9P"],
  [0x5346414f, "AFS"],
  [0x00c36400, "Ceph"],
  [0x65735546, "FUSE"],
]);

/** The name of the network file system that `path` lies on, or `undefined` when it is a local one. */
export function networkFileSystem(path: string): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return NETWORK_FILE_SYSTEMS.get(statfsSync(dirname(path)).type);
  } catch {
    // Only a warning hangs on the answer, so not knowing is not a failure.
    return undefined;
  }
}
