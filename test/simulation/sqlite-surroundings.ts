/**
 * SQLite itself on a file, with something in the way of its driver: the n-th statement from now fails as a full disk, a broken disk or a
 * busy file would let it fail, before or after it took effect; or the process dies at it.
 */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Driver from "better-sqlite3";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import type { Ground, Move, Surroundings } from "./run.ts";

const REMEMBER_MS = 10_000;
/** A file system in memory, where there is one: no disk is waited for. */
const FOLDER = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** What goes wrong at a statement. */
type Fault = "busy" | "full" | "full, undone" | "broken" | "broken, undone" | "broken after" | "death" | "death after";

interface Armed {
  readonly fault: Fault;
  /** Statements to go until it happens. */
  left: number;
}

/** One open file of a client. */
interface Handle {
  readonly database: Driver.Database;
  isDead: boolean;
}

/** What is in the way of the driver while a run lasts. */
class Interference {
  armed: Armed | undefined;
  isOpening = false;
  readonly handles: Handle[] = [];
  readonly #tell: (line: string) => void;

  constructor(tell: (line: string) => void) {
    this.#tell = tell;
  }

  /** Says what goes wrong next. */
  arm(armed: Armed): void {
    this.armed = armed;
  }

  /** Runs a statement of a handle, or what happens in its stead. */
  run(handle: Handle, source: string, statement: () => unknown): unknown {
    // A dead process runs nothing: what still happens in this one is nobody's.
    if (handle.isDead) throw new Driver.SqliteError("the process is dead", "SQLITE_MISUSE");
    const { armed } = this;
    const kind = source.trimStart().slice(0, 8).toUpperCase();
    // Undoing needs no disk; where even that fails, the connection is of no use any more.
    if (armed === undefined || this.isOpening || kind.startsWith("ROLLBACK")) return statement();
    if (armed.left > 0) {
      armed.left -= 1;
      return statement();
    }
    const [fault, isAfter, isUndone] = [armed.fault.split(/[ ,]/)[0], armed.fault.endsWith("after"), armed.fault.endsWith("undone")];
    // A transaction that could not be begun is none, and only the statements that need the lock find it taken.
    if (isAfter && kind.startsWith("BEGIN")) return statement();
    if (fault === "busy" && !kind.startsWith("BEGIN") && !kind.startsWith("SELECT")) return statement();
    this.armed = undefined;
    this.#tell(`${armed.fault} at ${kind.trim()}`);
    if (isAfter) statement();
    if (fault === "death") {
      handle.isDead = true;
      // What the operating system does: the file is closed, and what was not committed is undone by whoever opens it next.
      handle.database.close();
      throw new Driver.SqliteError("the process is dead", "SQLITE_MISUSE");
    }
    // SQLite undoes the whole transaction by itself after some of these errors.
    if (isUndone && handle.database.inTransaction) Driver.prototype.exec.call(handle.database, "ROLLBACK");
    if (fault === "busy") throw new Driver.SqliteError("database is locked", "SQLITE_BUSY");
    if (fault === "full") throw new Driver.SqliteError("database or disk is full", "SQLITE_FULL");
    throw new Driver.SqliteError("disk I/O error", "SQLITE_IOERR_WRITE");
  }
}

/** Puts an interference in the way of every file that is opened from now on. @returns a function that takes it away */
function interfere(interference: Interference): () => void {
  const { prepare } = Driver.prototype;
  const byDatabase = new WeakMap<Driver.Database, Handle>();
  Driver.prototype.prepare = function prepared(this: Driver.Database, source: string) {
    let handle = byDatabase.get(this);
    if (handle === undefined) {
      handle = { database: this, isDead: false };
      byDatabase.set(this, handle);
      interference.handles.push(handle);
    }
    const own = handle;
    const statement = prepare.call(this, source) as unknown as Record<"run" | "get" | "all", (...values: unknown[]) => unknown>;
    for (const name of ["run", "get", "all"] as const) {
      const original = statement[name];
      statement[name] = (...values) => interference.run(own, source, () => original.apply(statement, values));
    }
    return statement as never;
  } as typeof prepare;
  return () => {
    Driver.prototype.prepare = prepare;
  };
}

/** A store in a file. Every wait of the product follows the clock of the run. */
export function sqliteSurroundings(ground: Ground): Surroundings {
  const { clock, random, choice, tell } = ground;
  const folder = mkdtempSync(join(FOLDER, "queuefs-simulation-"));
  const interference = new Interference(tell);
  const takeAway = interfere(interference);
  const { setTimeout } = globalThis;
  // Calls that wait for the lock keep the process alive, so they have timers of the host and not of the clock.
  globalThis.setTimeout = ((callback: () => void, ms = 0) => clock.setTimer(callback, ms)) as unknown as typeof setTimeout;
  const clients: { backend: Backend; handles: Handle[] }[] = [];
  const opened: Backend[] = [];
  const faults: readonly Fault[] = [
    "busy",
    "busy",
    "full",
    "full, undone",
    "broken",
    "broken, undone",
    "broken after",
    "death",
    "death after",
  ];
  return {
    span: { leasesMs: [1_000, 2_000, 5_000, 60_000, 600_000], delaysMs: [1_000, 3_000], isExact: true, sendsAgain: false },
    isTimed: true,
    isTold: false,
    mostUnknown: 8,
    rememberMs: REMEMBER_MS,
    async open(client) {
      const known = interference.handles.length;
      interference.isOpening = true;
      const backend = await openSqlite({
        path: join(folder, "queue.db"),
        durability: "normal",
        clock,
        random,
        bootId: "simulation",
        rememberMs: REMEMBER_MS,
        busyTimeoutMs: 200,
        minFreeBytes: 0,
        sweepIntervalMs: 3_600_000,
        onError: (error) => tell(`an error in the background: ${String(error)}`),
      });
      interference.isOpening = false;
      opened.push(backend);
      clients[client] = { backend, handles: interference.handles.slice(known) };
      return backend;
    },
    crash(client) {
      for (const handle of clients[client]?.handles ?? []) {
        if (handle.isDead) continue;
        handle.isDead = true;
        handle.database.close();
      }
    },
    moves(faulty) {
      if (!faulty || interference.armed !== undefined) return [];
      return faults.map((fault): Move => {
        const left = Math.floor(choice.fraction() * 14);
        return { weight: 0.5, text: `${fault} in ${left} statements`, make: () => interference.arm({ fault, left }) };
      });
    },
    died() {
      const found = clients.findIndex(({ handles }) => handles.some((handle) => handle.isDead));
      return found < 0 ? undefined : found;
    },
    calm() {
      interference.armed = undefined;
    },
    async end() {
      globalThis.setTimeout = setTimeout;
      for (const handle of interference.handles) if (handle.database.open) handle.database.close();
      takeAway();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
