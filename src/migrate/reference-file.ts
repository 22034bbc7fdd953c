/** Reads a `queue.db` of the reference layout, all of it as of one moment, and never writes to it. */

import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { QueueFSError, quote } from "../core/errors.ts";

/** One message of the old file. */
export interface ReferenceRow {
  /** The row's number, which is the order of the old queues. */
  readonly rowId: bigint;
  /** The bytes of the queue's name, one character for each byte (Latin-1). */
  readonly queueKey: string;
  /** The message's id, or `null` where it is missing or not valid UTF-8. */
  readonly messageId: string | null;
  /** The record as it was stored, or `null` where there is none. */
  readonly record: Uint8Array | null;
}

/** An old file, open for reading. */
export interface ReferenceFile extends Disposable {
  /** Where it is. */
  readonly path: string;
  /** Names of the queues the file knows without messages being needed, as bytes, one character for each. */
  queueKeys(): string[];
  /** The first message after `rowId` in the old order, or `undefined` after the last. `undefined` starts at the first. */
  nextRow(rowId: bigint | undefined): ReferenceRow | undefined;
  /** Ids that several messages of one queue share, as `queueKey` + NUL + id. The old layout did not forbid that. */
  sharedIds(): ReadonlySet<string>;
  /** How many messages the file says are in processing. */
  processingCount(): number;
  /** How many messages there are. */
  messageCount(): number;
  /** Lets go of the file. */
  close(): void;
}

const NEEDED_COLUMNS = ["id", "queue_name", "message_id", "data"] as const;
const SMALLEST_ROW_ID = -(2n ** 63n);
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

interface RawRow {
  readonly id: bigint;
  readonly queue: Buffer | null;
  readonly message: Buffer | null;
  readonly record: Buffer | null;
}

function keyOf(bytes: Buffer | null): string {
  return bytes === null ? "" : bytes.toString("latin1");
}

function textOf(bytes: Buffer | null): string | null {
  if (bytes === null) return null;
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

function codeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}

/** What an error of SQLite means for somebody who wants the file taken over. */
function asQueueFSError(path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (error instanceof QueueFSError || !code.startsWith("SQLITE_")) return error;
  const words = error instanceof Error ? error.message : String(error);
  if (code === "SQLITE_NOTADB")
    return new QueueFSError("invalid-argument", `${quote(path)} is not an SQLite file; name the queue.db of the old service`, {
      cause: error,
    });
  if (code.startsWith("SQLITE_CORRUPT"))
    return new QueueFSError(
      "store-corrupt",
      `${quote(path)} is damaged (${words}); repair a copy of it first, for example with the .recover command of sqlite3`,
      { cause: error },
    );
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"))
    return new QueueFSError("store-busy", `another process holds ${quote(path)}; stop the old service first`, { cause: error });
  return new QueueFSError("store-failed", `${quote(path)} cannot be read (${code}: ${words})`, { cause: error });
}

/** Opens the file and begins the one read transaction that everything is read in. */
function openSnapshot(path: string): Database.Database {
  const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 5_000 });
  try {
    database.pragma("query_only = 1");
    database.exec("BEGIN");
    // A transaction of SQLite begins with its first read.
    database.prepare("SELECT count(*) FROM sqlite_schema").get();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A file in WAL mode needs a writable folder even for readers; where there is none, a copy is read. */
function openOrCopy(path: string): { readonly database: Database.Database; readonly remove: () => void } {
  try {
    return { database: openSnapshot(path), remove: () => {} };
  } catch (error) {
    if (!/^SQLITE_(CANTOPEN|READONLY)/.test(codeOf(error))) throw error;
  }
  const folder = mkdtempSync(join(tmpdir(), "queuefs-migrate-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, "queue.db");
    copyFileSync(path, copy);
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`);
    return { database: openSnapshot(copy), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Whether the table has the columns the takeover reads. */
function checkLayout(path: string, database: Database.Database): void {
  if (database.pragma("encoding", { simple: true }) !== "UTF-8") {
    throw new QueueFSError(
      "invalid-argument",
      `${quote(path)} keeps its text in UTF-16, which the reference layout never did; it was not made by the old service`,
    );
  }
  const columns = database.pragma("table_info(queue_messages)") as { readonly name: string; readonly type: string; readonly pk: number }[];
  const names = new Set(columns.map((column) => column.name));
  const missing = NEEDED_COLUMNS.filter((column) => !names.has(column));
  const keyed = columns.some((column) => column.name === "id" && column.pk === 1 && column.type.toUpperCase() === "INTEGER");
  if (missing.length === 0 && keyed && columns.filter((column) => column.pk > 0).length === 1) return;
  const what =
    columns.length === 0
      ? "no table queue_messages"
      : missing.length > 0
        ? `no column ${missing.join(", ")} in queue_messages`
        : "no integer key in queue_messages";
  throw new QueueFSError(
    "invalid-argument",
    `${quote(path)} is not a queue.db of the reference layout: it has ${what}; a store of QueueFS itself is used with --store sqlite:FILE`,
  );
}

class OpenReferenceFile implements ReferenceFile {
  readonly path: string;
  readonly #database: Database.Database;
  readonly #remove: () => void;
  readonly #next: Database.Statement<[bigint], RawRow>;
  readonly #hasStatus: boolean;
  readonly #hasMetadata: boolean;

  constructor(path: string, database: Database.Database, remove: () => void) {
    this.path = path;
    this.#database = database;
    this.#remove = remove;
    const hasColumn = (table: string, column: string): boolean =>
      (database.pragma(`table_info(${table})`) as { readonly name: string }[]).some((row) => row.name === column);
    this.#hasStatus = hasColumn("queue_messages", "status");
    this.#hasMetadata = hasColumn("queue_metadata", "queue_name");
    // Bytes and not text, because reading text would replace what is not valid UTF-8 without a word.
    this.#next = database
      .prepare<[bigint], RawRow>(
        `SELECT id, CAST(queue_name AS BLOB) AS queue, CAST(message_id AS BLOB) AS message, CAST(data AS BLOB) AS record
         FROM queue_messages WHERE id >= ? ORDER BY id LIMIT 1`,
      )
      .safeIntegers();
  }

  #read<Result>(step: () => Result): Result {
    try {
      return step();
    } catch (error) {
      throw asQueueFSError(this.path, error);
    }
  }

  queueKeys(): string[] {
    if (!this.#hasMetadata) return [];
    return this.#read(() =>
      this.#database
        .prepare<[], { queue: Buffer | null }>("SELECT CAST(queue_name AS BLOB) AS queue FROM queue_metadata")
        .all()
        .map((row) => keyOf(row.queue)),
    );
  }

  nextRow(rowId: bigint | undefined): ReferenceRow | undefined {
    const from = rowId === undefined ? SMALLEST_ROW_ID : rowId + 1n;
    if (from > -(SMALLEST_ROW_ID + 1n)) return undefined;
    const row = this.#read(() => this.#next.get(from));
    return row && { rowId: row.id, queueKey: keyOf(row.queue), messageId: textOf(row.message), record: row.record };
  }

  sharedIds(): ReadonlySet<string> {
    const rows = this.#read(() =>
      this.#database
        .prepare<[], { queue: Buffer | null; message: Buffer | null }>(
          `SELECT CAST(queue_name AS BLOB) AS queue, CAST(message_id AS BLOB) AS message
           FROM queue_messages GROUP BY 1, 2 HAVING count(*) > 1`,
        )
        .all(),
    );
    return new Set(rows.map((row) => `${keyOf(row.queue)}\0${textOf(row.message)}`));
  }

  #count(condition: string): number {
    return this.#read(
      () => this.#database.prepare<[], { count: number }>(`SELECT count(*) AS count FROM queue_messages ${condition}`).get()?.count ?? 0,
    );
  }

  processingCount(): number {
    return this.#hasStatus ? this.#count("WHERE status = 'processing'") : 0;
  }

  messageCount(): number {
    return this.#count("");
  }

  close(): void {
    this.#database.close();
    this.#remove();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Opens an old file. Everything read from it is of the moment of this call, whatever is written to it meanwhile; the file itself is
 * not changed (SQLite may leave its `-shm` and an empty `-wal` beside it).
 *
 * @throws QueueFSError `path-not-found`, `invalid-argument` when it is not of the reference layout, `store-corrupt`, `store-busy`, `store-failed`
 */
export function openReferenceFile(path: string): ReferenceFile {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new QueueFSError("path-not-found", `there is no file ${quote(path)}`);
  if (!stats.isFile()) throw new QueueFSError("invalid-argument", `${quote(path)} is not a file; name the queue.db of the old service`);
  try {
    const { database, remove } = openOrCopy(path);
    try {
      checkLayout(path, database);
      return new OpenReferenceFile(path, database, remove);
    } catch (error) {
      database.close();
      remove();
      throw error;
    }
  } catch (error) {
    throw asQueueFSError(path, error);
  }
}
