/** A process whose calls a test stops in the middle. */

import Database from "better-sqlite3";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import type { QueueName } from "../../../src/core/names.ts";

let backend: Backend | undefined;

/** Opens the store, with nothing left to do by itself. */
export async function openHeld(path: string): Promise<void> {
  backend = await openSqlite({ path, sweepIntervalMs: 3_600_000, minFreeBytes: 0 });
}

/** Stores one message, of nines. */
export async function enqueueHeld(queue: QueueName, sizeBytes: number): Promise<void> {
  await backend?.enqueue(queue, [{ data: new Uint8Array(sizeBytes).fill(9) }]);
}

/** What the checkpoint thread does, once. */
export function checkpointOnce(path: string): void {
  const database = new Database(path, { fileMustExist: true, timeout: 1 });
  database.pragma("synchronous = FULL");
  database.pragma("wal_checkpoint(PASSIVE)");
  database.close();
}
