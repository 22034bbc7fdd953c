/** Looking over a whole store for `queuefs doctor`. */

import { statSync } from "node:fs";
import type { Finding } from "../../core/message.ts";
import { type Database, isUnread, networkFileSystem } from "./connection.ts";
import { findGoneSessions } from "./recovery.ts";
import { isCorrupt } from "./sqlite-error.ts";
import { statements } from "./statements.generated.ts";
import type { StoreContext } from "./step.ts";

/** Size of the log above which something holds back the checkpoint, in bytes. */
const LOG_ALARM_BYTES = 64 * 1024 * 1024;
/** What to do about a damaged file. */
const DAMAGED = "stop all processes, copy the file and its -wal aside, restore a backup";

/** All findings, of one moment. A damaged file is itself a finding, and what can still be looked at is. */
export function inspectStore(database: Database, context: StoreContext, path: string): Finding[] {
  const checks: readonly (() => Finding | Finding[])[] = [
    () => checkIntegrity(database),
    () => checkVersions(database),
    () => checkCounters(database),
    () => checkOrphans(database),
    () => checkTasks(context),
    () => checkSessions(context),
    () => checkFile(database, path),
  ];
  database.exec("BEGIN");
  try {
    return checks.flatMap((check) => {
      try {
        return check();
      } catch (error) {
        if (!isCorrupt(error)) throw error;
        return finding("error", "integrity", `the database file is damaged, so that a check could not end (${String(error)}); ${DAMAGED}`);
      }
    });
  } finally {
    // A damaged file can end the transaction by itself.
    if (database.inTransaction) database.exec("ROLLBACK");
  }
}

function finding(severity: Finding["severity"], check: string, message: string): Finding {
  return { severity, check, message };
}

function checkIntegrity(database: Database): Finding {
  const rows = database.prepare("PRAGMA integrity_check(5)").pluck().all();
  if (rows.some(isUnread))
    return finding("error", "integrity", `the disk failed while the file was checked (${rows.join("; ")}); try again`);
  return rows.length === 1 && rows[0] === "ok"
    ? finding("ok", "integrity", "the database file is sound")
    : finding("error", "integrity", `the database file is damaged: ${rows.join("; ")}; ${DAMAGED}`);
}

function checkVersions(database: Database): Finding {
  const library = database.prepare("SELECT sqlite_version()").pluck().get();
  return finding("ok", "versions", `SQLite ${library}, schema ${database.pragma("user_version", { simple: true })}`);
}

/** Compares the counters of each queue with the rows that they count. */
function checkCounters(database: Database): Finding[] {
  const rows = database.prepare(statements.countRows).all() as {
    name: string;
    pending: number;
    processing: number;
    ready: number;
    delayed: number;
    dead: number;
    messages: number;
    processingRows: number;
    readyRows: number;
    delayedRows: number;
    deadRows: number;
  }[];
  const wrong = rows.filter(
    (row) =>
      row.pending + row.processing !== row.messages ||
      row.processing !== row.processingRows ||
      row.ready !== row.readyRows ||
      row.delayed !== row.delayedRows ||
      row.dead !== row.deadRows,
  );
  if (wrong.length === 0) return [finding("ok", "counters", `the counters of ${rows.length} queues agree with their messages`)];
  return wrong.map((row) =>
    finding(
      "error",
      "counters",
      `queue "${row.name}" counts pending ${row.pending}, processing ${row.processing}, dead ${row.dead}, but has ${row.messages - row.processingRows}, ${row.processingRows}, ${row.deadRows} rows; this is a bug or foreign writing: report it, move the messages to a new queue`,
    ),
  );
}

function checkOrphans(database: Database): Finding {
  const orphans = database.prepare(statements.countOrphans).pluck().get() as number;
  return orphans === 0
    ? finding("ok", "orphans", "no records without their messages or queues")
    : finding("error", "orphans", `${orphans} records lack their message or queue; a dequeue moves such messages to the dead letters`);
}

/** Compares the counters of tasks with their messages. */
function checkTasks({ sql }: StoreContext): Finding[] {
  const wrong = sql.wrongParts.all() as [string | null, string | null, number, number][];
  const [misplaced] = sql.misplacedTasks.get() as [number];
  const [unended] = sql.unendedTasks.get() as [number];
  if (wrong.length + misplaced + unended === 0) {
    const [count] = sql.countTasks.get() as [number];
    return [finding("ok", "tasks", `the counters of ${count} tasks agree with their messages`)];
  }
  const advice = "this is a bug or foreign writing: report it, then cancel or remove the task";
  return [
    ...wrong.map(([task, queue, counted, messages]) =>
      finding("error", "tasks", `task "${task}" counts ${counted} messages in queue "${queue}", which has ${messages}; ${advice}`),
    ),
    ...(misplaced === 0 ? [] : [finding("error", "tasks", `${misplaced} records name a task that is not theirs; ${advice}`)]),
    ...(unended === 0 ? [] : [finding("error", "tasks", `${unended} tasks have nothing left to do and did not end; ${advice}`)]),
  ];
}

function checkSessions(context: StoreContext): Finding {
  const gone = findGoneSessions(context).length;
  return finding(
    "ok",
    "consumers",
    `${context.sql.sessions.all().length - gone} processes hold or held deliveries, ${gone} more are gone and recovered at the next sweep`,
  );
}

function checkFile(database: Database, path: string): Finding[] {
  const findings: Finding[] = [];
  const network = networkFileSystem(path);
  findings.push(
    network === undefined
      ? finding("ok", "file-system", "the file lies on a local file system")
      : finding(
          "error",
          "file-system",
          `the file lies on ${network}, where SQLite's log cannot be shared safely; move it to a local disk, or use Redis`,
        ),
  );
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  findings.push(
    log < LOG_ALARM_BYTES
      ? finding("ok", "log", `the write-ahead log has ${log} bytes`)
      : finding(
          "warning",
          "log",
          `the write-ahead log has ${log} bytes: a reader holds back the checkpoint; end long-running reads of the file`,
        ),
  );
  if (database.pragma("auto_vacuum", { simple: true }) === 0) {
    findings.push(
      finding("warning", "vacuum", "the file was made without incremental vacuum, so it shrinks only once it is nearly drained"),
    );
  }
  return findings;
}
