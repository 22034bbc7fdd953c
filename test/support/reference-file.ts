/** Writes files of the reference layout, as older services left them. */

import Database from "better-sqlite3";

/** One row of `queue_messages`. */
export interface OldMessage {
  readonly queue: string | Uint8Array;
  readonly id: string | null;
  /** The record as it stands in the column; see {@link oldRecord}. */
  readonly record: string | Uint8Array | null;
  readonly status?: "pending" | "processing";
}

/** What a file is made of. */
export interface OldFile {
  readonly messages: readonly OldMessage[];
  /** Names of `queue_metadata`; `null` for a file without that table. Default: none. */
  readonly queues?: readonly (string | Uint8Array)[] | null;
  /** Whether the file has the two status columns. Default true. */
  readonly statusColumns?: boolean;
  /** The journal mode. Default `wal`, as the service had it. */
  readonly journal?: "wal" | "delete";
}

/** A record as the service wrote it: bytes as an array (newer), text as text (older). */
export function oldRecord(id: string, data: string | Uint8Array, timestamp: number | string = 1_700_000_000): string {
  return JSON.stringify({ id, data: typeof data === "string" ? data : Array.from(data), timestamp });
}

/** Writes a file of the reference layout. */
export function writeOldFile(path: string, file: OldFile): void {
  const database = new Database(path);
  try {
    database.pragma(`journal_mode = ${file.journal ?? "wal"}`);
    if (file.queues !== null) {
      database.exec(
        "CREATE TABLE queue_metadata (queue_name TEXT PRIMARY KEY, created_at INTEGER DEFAULT (strftime('%s', 'now')), last_updated INTEGER DEFAULT (strftime('%s', 'now')))",
      );
      const insert = database.prepare("INSERT INTO queue_metadata (queue_name) VALUES (?)");
      for (const queue of file.queues ?? []) insert.run(queue);
    }
    const withStatus = file.statusColumns !== false;
    // The record may be NULL here, which the service's own tables forbade, so that tests can have it.
    database.exec(
      `CREATE TABLE queue_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, queue_name TEXT NOT NULL, message_id TEXT, data TEXT, timestamp INTEGER NOT NULL,
       ${withStatus ? "status TEXT NOT NULL DEFAULT 'pending', processing_started_at INTEGER," : ""} created_at INTEGER DEFAULT (strftime('%s', 'now')))`,
    );
    const insert = database.prepare(
      `INSERT INTO queue_messages (queue_name, message_id, data, timestamp${withStatus ? ", status, processing_started_at" : ""}) VALUES (?, ?, ?, 1700000000${withStatus ? ", ?, ?" : ""})`,
    );
    database.transaction(() => {
      for (const { queue, id, record, status } of file.messages) {
        insert.run(queue, id, record, ...(withStatus ? [status ?? "pending", status === "processing" ? 1_700_000_001 : null] : []));
      }
    })();
  } finally {
    database.close();
  }
}
