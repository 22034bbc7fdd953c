/** Options of the SQLite backend. */

import type { Clock, Random } from "../../core/clock.ts";
import {
  DEFAULT_MAX_MESSAGE_BYTES,
  DEFAULT_REMEMBER_MS,
  DEFAULT_SWEEP_INTERVAL_MS,
  MAX_MESSAGE_BYTES_BOUND,
  MAX_REMEMBER_MS,
} from "../../core/limits.ts";
import type { OptionTable } from "../../core/options.ts";
import { MAX_WAITING_BYTES_OPTION } from "../../core/waiting-bytes.ts";

/** Options of {@link openSqlite}, as a table. */
export const SQLITE_OPTIONS = {
  path: { type: "text", meaning: "the database file; made if missing, its folder is not" },
  durability: {
    type: "choice",
    choices: ["full", "normal"],
    default: "full",
    meaning: "full: what enqueue resolved survives power loss; normal: it survives kill -9 only, and is faster",
  },
  busyTimeoutMs: {
    type: "integer",
    minimum: 0,
    maximum: 600_000,
    default: 10_000,
    meaning: "how long a call waits while other processes hold the write lock, in milliseconds",
  },
  maxMessageBytes: {
    type: "integer",
    minimum: 1,
    maximum: MAX_MESSAGE_BYTES_BOUND,
    default: DEFAULT_MAX_MESSAGE_BYTES,
    meaning: "bytes of one message, and of all messages of one call",
  },
  maxWaitingBytes: MAX_WAITING_BYTES_OPTION,
  rememberMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_REMEMBER_MS,
    default: DEFAULT_REMEMBER_MS,
    meaning: "how long answers to chosen message ids and request ids are remembered, in milliseconds",
  },
  sweepIntervalMs: {
    type: "integer",
    minimum: 10,
    maximum: 3_600_000,
    default: DEFAULT_SWEEP_INTERVAL_MS,
    meaning: "how often this process recovers ended leases and tidies, in milliseconds",
  },
  minFreeBytes: {
    type: "integer",
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 16 * 1024 * 1024,
    meaning: "free disk space below which enqueue is refused, in bytes, but never more than a twentieth of the disk",
  },
  clock: { type: "object", meaning: "the time; the host's clocks unless given" },
  random: { type: "object", meaning: "the randomness; the host's unless given" },
  bootId: { type: "text", meaning: "names this run of the host; read from the system unless given" },
  onError: { type: "object", meaning: "called with errors of work in the background, such as recovery" },
} as const satisfies OptionTable;

/** Options of {@link openSqlite}. */
export interface SqliteOptions {
  /** The database file. It is made if missing; its folder must exist. */
  readonly path: string;
  /**
   * `full` (default): what `enqueue` resolved survives kill -9 and power loss. `normal`: it survives kill -9; a power loss or a crash of
   * the operating system may undo the last transactions, acks included.
   */
  readonly durability?: "full" | "normal";
  /** How long a call waits while other processes hold the write lock, in milliseconds. 0 to 600,000, default 10,000. */
  readonly busyTimeoutMs?: number;
  /** Bytes of one message, and of all messages of one call. 1 to 511 MiB, default 64 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Bytes of calls that store messages and wait, beyond which more are refused as `store-busy`: so a producer that never awaits does not fill the
   * memory. From 1,024, default 512 MiB.
   */
  readonly maxWaitingBytes?: number;
  /** How long answers to chosen message ids and request ids are remembered, in milliseconds. 0 to 7 days, default 10 minutes. */
  readonly rememberMs?: number;
  /** How often this process recovers ended leases and tidies, in milliseconds. 10 to 3,600,000, default 1,000. */
  readonly sweepIntervalMs?: number;
  /** Free disk space below which enqueue is refused, in bytes, but never more than a twentieth of the disk. Default 16 MiB. */
  readonly minFreeBytes?: number;
  /** The time; the host's clocks unless given. */
  readonly clock?: Clock;
  /** The randomness of receipts and jitter; the host's unless given. */
  readonly random?: Random;
  /** Names this run of the host: another id than the one in the file means that all leases have ended. Read from the system unless given. */
  readonly bootId?: string;
  /** Called with errors of work in the background, such as recovery. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
}

/** The options with their defaults. */
export interface SqliteSettings extends Required<Omit<SqliteOptions, "bootId">> {
  readonly bootId: string;
}
