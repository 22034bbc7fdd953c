/** Disk space: refusing work before the disk is full, room for acks when it is, and giving space back after a drain. */

import { existsSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import type { Database } from "./connection.ts";
import { isBusy as isLocked } from "./sqlite-error.ts";

/**
 * Kept beside the database while it is open and given up when the disk is full, so that acks go through: 4 MiB, enough for the file to take in
 * what the log gets to before it is moved, after which its room serves anew.
 */
const BALLAST_BYTES = 4 * 1024 * 1024;
/** What of it is written by one sweep. */
const BALLAST_STEP_BYTES = 256 * 1024;
/** How long an answer about free space holds, in milliseconds, unless many bytes were written. */
const FREE_SPACE_VALID_MS = 1_000;
/** Bytes written after which free space is looked at again, at most; near the floor it is a quarter of what is left above it. */
const FREE_SPACE_VALID_BYTES = 4 * 1024 * 1024;
/** Free pages of the file that are left in it, in bytes: a working queue uses them again. */
const SPARE_BYTES = 1024 * 1024;
/** Pages given back by one step: about 5 ms of work. */
const SHRINK_PAGES = 1_024;
/** Live pages up to which a file made without incremental vacuum is rebuilt in one go: some 4 MiB, well under 200 ms. */
const REBUILD_PAGES = 2_048;
/** Sweeps of an idle store from one look at its file to the next. */
const SWEEPS_PER_LOOK = 10;
/** Size of the write-ahead log that is left alone, in bytes. */
const LOG_BYTES = 1024 * 1024;
/** Size of the log that is left alone while the store is at work, in bytes. */
const BUSY_LOG_BYTES = 32 * 1024 * 1024;

/** What of the disk concerns one store. */
export class Space {
  readonly #database: Database;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #minFreeBytes: number;
  #validUntilMs = Number.NEGATIVE_INFINITY;
  #validBytes = 0;
  #enough = true;
  #freeBytes = 0;
  #idleFreePages = 0;
  /** Whether the last look found nothing to do, now or at the next. */
  #isSettled = false;
  #sweeps = 0;

  constructor(database: Database, path: string, minFreeBytes: number, clock: Clock) {
    this.#database = database;
    this.#path = path;
    this.#clock = clock;
    this.#minFreeBytes = minFreeBytes;
  }

  get #ballast(): string {
    return `${this.#path}-ballast`;
  }

  // In the sweep, so that processes that are done in a moment (commands) write none; and some at a time, since the next sync of the log would wait
  // for all of it. Answers whether more is to come.
  #keepBallast(): boolean {
    const size = statSync(this.#ballast, { throwIfNoEntry: false })?.size ?? 0;
    if (size >= BALLAST_BYTES || !this.#look() || this.#freeBytes < 2 * (BALLAST_BYTES - size)) return false;
    try {
      writeFileSync(this.#ballast, Buffer.alloc(BALLAST_STEP_BYTES), { mode: 0o600, flag: "a" });
      return size + BALLAST_STEP_BYTES < BALLAST_BYTES;
    } catch {
      // A folder that cannot be written, or a disk that filled up this moment: the store works without ballast.
      this.#dropBallast();
      return false;
    }
  }

  /** Answers whether there was one. */
  #dropBallast(): boolean {
    try {
      rmSync(this.#ballast);
      return true;
    } catch {
      // There is none, or it is not ours to remove.
      return false;
    }
  }

  #look(): boolean {
    try {
      const { bavail, blocks, bsize } = statfsSync(dirname(this.#path));
      this.#freeBytes = bavail * bsize;
      const above = this.#freeBytes - Math.min(this.#minFreeBytes, (blocks * bsize) / 20);
      this.#enough = above >= 0;
      this.#validBytes = Math.min(FREE_SPACE_VALID_BYTES, above / 4);
    } catch {
      // Where free space cannot be read, "disk full" still reaches the caller from the write itself.
      this.#enough = true;
      this.#validBytes = FREE_SPACE_VALID_BYTES;
    }
    return this.#enough;
  }

  /** Refuses to store more when the disk is nearly full. @throws QueueFSError `store-full` */
  admit(bytes: number): void {
    if (this.#minFreeBytes === 0) return;
    this.#validBytes -= bytes;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#validUntilMs || this.#validBytes < 0 || !this.#enough) {
      this.#look();
      this.#validUntilMs = nowMs + FREE_SPACE_VALID_MS;
    }
    if (!this.#enough) {
      throw new QueueFSError(
        "store-full",
        `the disk of ${quote(this.#path)} has only ${this.#freeBytes} bytes free, so nothing is enqueued (minFreeBytes is ${this.#minFreeBytes}); free space, then try again. Acks still work`,
      );
    }
  }

  /** Gives up the ballast, and the log as far as the file can take it in without growing. Answers whether there is more room than before. */
  makeRoom(): boolean {
    const hadBallast = this.#dropBallast();
    return this.#emptyLog() || hadBallast;
  }

  /** Answers whether the log was emptied. */
  #emptyLog(): boolean {
    try {
      const [{ busy }] = this.#database.pragma("wal_checkpoint(TRUNCATE)") as [{ busy: number }];
      return busy === 0;
    } catch {
      // The file would have to grow for it, or others are at work: then the log stays as it is. Any other error comes again with the next call.
      return false;
    }
  }

  /**
   * One step of giving space back, when free pages have stayed free since the last sweep. Answers whether there is more to do.
   *
   * @param isChanged whether this process committed anything since the last step
   * @param isBusy whether the store is at work: then the log is left to the checkpoints, unless it has grown far beyond what they need
   */
  shrink(isChanged: boolean, isBusy: boolean): boolean {
    this.#sweeps += 1;
    // What other processes leave, they see to themselves, unless they are gone.
    if (this.#isSettled && !isChanged && this.#sweeps % SWEEPS_PER_LOOK !== 0) return false;
    const isGrowing = this.#keepBallast();
    const free = this.#pragma("freelist_count");
    const pages = this.#pragma("page_count");
    const steady = Math.min(free, this.#idleFreePages);
    this.#isSettled = free === this.#idleFreePages && !isGrowing;
    this.#idleFreePages = free;
    const sparePages = SPARE_BYTES / this.#pragma("page_size");
    if (steady <= sparePages || steady * 2 < pages) return this.#settleFile(pages, isBusy);
    this.#isSettled = false;
    try {
      if (this.#pragma("auto_vacuum") === 0) {
        if (pages - free > REBUILD_PAGES) return false;
        this.#database.pragma("auto_vacuum = INCREMENTAL");
        this.#database.exec("VACUUM");
      } else {
        this.#database.pragma(`incremental_vacuum(${Math.min(SHRINK_PAGES, Math.ceil(steady - sparePages / 2))})`);
      }
    } catch (error) {
      // Others are at work: a later sweep, theirs or ours, finds the lock free.
      if (isLocked(error)) return false;
      throw error;
    }
    return this.#pragma("freelist_count") > sparePages;
  }

  /** Takes the log in when it is long, or when it is what tells of pages given back: until then the file keeps its length. */
  #settleFile(pages: number, isBusy: boolean): boolean {
    const log = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    const file = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (isBusy && log < BUSY_LOG_BYTES) {
      this.#isSettled = false;
      return false;
    }
    // Readers in the way leave it for a later sweep.
    if (log > LOG_BYTES || (log > 0 && file - pages * this.#pragma("page_size") > SPARE_BYTES)) this.#isSettled = this.#emptyLog();
    return false;
  }

  #pragma(name: string): number {
    return this.#database.pragma(name, { simple: true }) as number;
  }

  /** After the database was closed: the last one to close removes the log, and then the ballast has nobody left to serve. */
  afterClose(): void {
    if (!existsSync(`${this.#path}-wal`)) this.#dropBallast();
  }
}
