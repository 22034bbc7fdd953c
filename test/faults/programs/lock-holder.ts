/** Another program on the same file, which holds the write lock, or a read, for as long as it likes. */

import Database from "better-sqlite3";
import { tell } from "../../support/child-process-main.ts";

let held: Database.Database | undefined;

/** Begins a write transaction, changes nothing that matters, and keeps it open. */
export function holdWriteLock(path: string): void {
  held = new Database(path, { timeout: 60_000 });
  held.exec("BEGIN IMMEDIATE");
  held.exec("UPDATE store SET value = value WHERE name = 'life'");
  tell("holding");
}

/** Ends the transaction. */
export function releaseWriteLock(): void {
  held?.exec("COMMIT");
  held?.close();
  held = undefined;
}

const nothing = new Int32Array(new SharedArrayBuffer(4));

/** Holds the write lock for `holdMs`, so many times, letting go for `freeMs` in between. */
export function holdAgainAndAgain(path: string, times: number, holdMs: number, freeMs: number): void {
  for (let time = 0; time < times; time += 1) {
    holdWriteLock(path);
    Atomics.wait(nothing, 0, 0, holdMs);
    releaseWriteLock();
    Atomics.wait(nothing, 0, 0, freeMs);
  }
}
