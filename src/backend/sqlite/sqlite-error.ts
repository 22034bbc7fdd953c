/** What an error of SQLite means for the caller. Codes: https://www.sqlite.org/rescode.html */

import { QueueFSError } from "../../core/errors.ts";

/** The result code of an error that SQLite raised (`SQLITE_BUSY`, …), or `undefined` for any other error. */
export function sqliteCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" && code.startsWith("SQLITE_") ? code : undefined;
}

/** Whether another connection was in the way and the same step can be tried again. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED") || code === "SQLITE_PROTOCOL");
}

/** Whether the disk was full. */
export function isFull(error: unknown): boolean {
  return sqliteCode(error) === "SQLITE_FULL";
}

/** Whether the file is damaged or no database, so that nothing it answers can be trusted. */
export function isCorrupt(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB");
}

/** Whether an error is one that code meets in rows that are not there, or hold what QueueFS did not write: nothing else of a step throws these. */
function isOfRows(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** The error of the table for an error of SQLite, and for what rows do that somebody changed; other errors are passed through. */
export function translate(error: unknown, path: string): unknown {
  const code = sqliteCode(error);
  if (code === undefined && isOfRows(error)) {
    return new QueueFSError(
      "store-corrupt",
      `${path}: rows are missing, or hold what QueueFS did not write (${String(error)}); run queuefs doctor, and where it finds nothing, report this as a fault of QueueFS`,
      { cause: error },
    );
  }
  if (code === undefined) return error;
  const words = error instanceof Error ? error.message : String(error);
  const cause = { cause: error };
  if (isBusy(error))
    return new QueueFSError(
      "store-busy",
      `${path}: other processes held the write lock too long (${words}); try again, or look for a stopped process that holds it`,
      cause,
    );
  if (isFull(error)) return new QueueFSError("store-full", `${path}: the disk is full (${words}); free space, then try again`, cause);
  if (isCorrupt(error))
    return new QueueFSError(
      "store-corrupt",
      `${path}: the database is damaged or no QueueFS store (${words}); run queuefs doctor, restore a backup`,
      cause,
    );
  if (code.startsWith("SQLITE_READONLY"))
    return new QueueFSError(
      "store-read-only",
      `${path}: cannot be written (${words}); check the permissions of the file and its folder`,
      cause,
    );
  if (code.startsWith("SQLITE_CANTOPEN"))
    return new QueueFSError(
      "store-unreachable",
      `${path}: cannot be opened (${words}); check that its folder exists and may be written`,
      cause,
    );
  return new QueueFSError("store-failed", `${path}: SQLite failed with ${code} (${words})`, cause);
}
