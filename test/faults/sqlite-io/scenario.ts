/** One pass through all that a store does, under a fault; every answer is held against the ledger. */

import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import { schema } from "../../../src/backend/sqlite/schema.generated.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { type ErrorCode, isQueueFSError } from "../../../src/core/errors.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import { type MessageId, parseMessageId, parseQueueName, parseTaskId } from "../../../src/core/names.ts";
import { SeededRandom } from "../../../src/testing/index.ts";
import { type CallKind, type Fault, FileCallControl } from "./file-calls.ts";
import { happenedAfter, Ledger } from "./ledger.ts";

const [JOBS, NEXT, CLEARED] = [parseQueueName("jobs"), parseQueueName("next"), parseQueueName("cleared")];
const OLD = parseQueueName("old");
const OLD_MESSAGES = ["old-1", "old-2", "old-3"].map(parseMessageId);
const [DONE, GIVEN_UP] = [parseTaskId("done"), parseTaskId("given-up")];

/** What a call may answer when the disk fails. `queue-not-found` and `task-not-found` follow from the failure of what would have made them. */
const FOLLOWING: readonly ErrorCode[] = ["queue-not-found", "task-not-found", "task-ended", "closed"];
const FAILED: readonly ErrorCode[] = ["store-failed", "outcome-unknown", "store-unreachable", "store-read-only", ...FOLLOWING];
const ALLOWED: Readonly<Record<string, readonly ErrorCode[]>> = {
  // SQLite itself takes a read that fails so for a damaged medium (SQLITE_IOERR_CORRUPTFS).
  EIO: [...FAILED, "store-corrupt"],
  ESTALE: FAILED,
  EMFILE: FAILED,
  ENOSPC: [...FAILED, "store-full"],
  // What is memory-mapped has no code of its own for "full" in SQLite.
  half: ["store-full", "store-failed", "outcome-unknown", "store-unreachable", ...FOLLOWING],
};

/** What one run found. */
export interface RunResult {
  /** Calls of the kind that were made, and how many of them failed. */
  readonly seen: number;
  readonly struck: number;
  /** Codes of the errors that calls answered. */
  readonly codes: readonly string[];
  readonly violations: readonly string[];
}

/** A clock whose timers run when the scenario says so, so that sweeps come at one place of it. */
function steppedClock(): { clock: Clock; sweep(): void } {
  const waiting = new Set<() => void>();
  return {
    clock: {
      ...systemClock,
      setTimer(callback) {
        waiting.add(callback);
        return { cancel: () => void waiting.delete(callback) };
      },
    },
    sweep() {
      for (const callback of [...waiting]) {
        waiting.delete(callback);
        callback();
      }
    },
  };
}

const bytes = (size: number): Uint8Array => new Uint8Array(size).fill(7);

/** One pass. */
class Scenario {
  readonly ledger = new Ledger();
  readonly violations: string[] = [];
  readonly codes: string[] = [];
  readonly random: SeededRandom;
  readonly #allowed: readonly ErrorCode[];
  readonly #kind: CallKind;
  #stored = 0;

  constructor(fault: Fault) {
    this.#kind = fault.kind;
    this.#allowed = ALLOWED[fault.action] ?? [];
    this.random = new SeededRandom(fault.number);
  }

  /** Notes an error; anything but one of the table, and of those that this fault can lead to, is a violation. */
  note(where: string, error: unknown): void {
    const code = isQueueFSError(error) ? error.code : "none";
    this.codes.push(code);
    if (!this.#allowed.includes(code as ErrorCode) || (code === "store-corrupt" && this.#kind !== "read"))
      this.violations.push(`${where}: ${error instanceof Error ? error.stack : error}`);
  }

  async attempt<Result>(where: string, call: () => Promise<Result>): Promise<Result | { readonly error: unknown }> {
    try {
      return await call();
    } catch (error) {
      this.note(where, error);
      return { error };
    }
  }

  async enqueue(backend: Backend, queue: typeof JOBS, size: number, count: number): Promise<void> {
    const ids: MessageId[] = Array.from({ length: count }, () => parseMessageId(`m${this.#stored++}`));
    const answer = await this.attempt("enqueue", () =>
      backend.enqueue(
        queue,
        ids.map((id) => ({ id, data: bytes(size) })),
      ),
    );
    for (const id of ids) this.ledger.stored(queue, id, "error" in answer ? happenedAfter(answer.error) : "yes");
  }

  /** Calls made at once share a transaction, and each must still have the right answer. */
  async enqueueTogether(backend: Backend): Promise<void> {
    await Promise.all([1, 2, 3].map(() => this.enqueue(backend, JOBS, 300, 1)));
  }

  async dequeue(backend: Backend, limit: number): Promise<readonly DeliveredMessage[]> {
    const { least, most } = this.ledger.bounds(JOBS);
    const held = await this.attempt("status", () => backend.status(JOBS));
    const answer = await this.attempt("dequeue", () => backend.dequeue(JOBS, { limit, leaseMs: 600_000 }));
    if ("error" in answer) return [];
    if (answer.length === 0 && "pending" in held && held.pending > 0)
      this.violations.push(`dequeue is empty, ${held.pending} were pending`);
    if ("pending" in held && (held.pending + held.processing < least || held.pending + held.processing > most))
      this.violations.push(`status is ${held.pending}+${held.processing}, not from ${least} to ${most}`);
    return answer;
  }

  async ack(backend: Backend, message: DeliveredMessage | undefined, withForward: boolean): Promise<void> {
    if (message === undefined) return;
    const id = parseMessageId(`m${this.#stored++}`);
    const forward = withForward ? { forward: [{ queue: NEXT, messages: [{ id, data: bytes(100) }] }] } : {};
    const answer = await this.attempt("ack", () => backend.ack(JOBS, [{ receipt: message.receipt, ...forward }]));
    const happened = "error" in answer ? happenedAfter(answer.error) : answer[0]?.outcome === "acked" ? "yes" : "no";
    if (!("error" in answer) && happened === "no") this.violations.push("the ack of a held message is stale");
    this.ledger.removed(message.id, happened);
    if (withForward) this.ledger.stored(NEXT, id, happened);
  }

  async createTask(backend: Backend, task: typeof DONE, count: number): Promise<void> {
    const ids = Array.from({ length: count }, () => parseMessageId(`m${this.#stored++}`));
    const answer = await this.attempt("createTask", () =>
      backend.createTask({ id: task, type: "import" }, [{ queue: NEXT, messages: ids.map((id) => ({ id, data: bytes(50) })) }]),
    );
    const happened = "error" in answer ? happenedAfter(answer.error) : "yes";
    this.ledger.task(task, happened);
    for (const id of ids) this.ledger.stored(NEXT, id, happened);
  }

  async work(backend: Backend, path: string, sweep: () => void): Promise<void> {
    for (const queue of [JOBS, NEXT, CLEARED]) await this.attempt("createQueue", () => backend.createQueue(queue, { maxDeliveries: 0 }));
    await this.enqueue(backend, JOBS, 200, 8);
    await this.enqueueTogether(backend);
    await this.enqueue(backend, JOBS, 9_000, 3);
    await this.enqueue(backend, CLEARED, 500, 4);
    const held = await this.dequeue(backend, 5);
    const [first, second, third, fourth, fifth] = held;
    if (first !== undefined) await this.attempt("extend", () => backend.extend(JOBS, [{ receipt: first.receipt, leaseMs: 700_000 }]));
    if (second !== undefined)
      await this.attempt("nack", () => backend.nack(JOBS, [{ receipt: second.receipt, reason: "not now", delayMs: 600_000 }]));
    if (third !== undefined) await this.attempt("release", () => backend.release(JOBS, [third.receipt]));
    await this.ack(backend, first, false);
    await this.ack(backend, fourth, true);
    if (fifth !== undefined) {
      this.ledger.gaveUp(fifth.id);
      await this.attempt("nack", () => backend.nack(JOBS, [{ receipt: fifth.receipt, giveUp: true, reason: "no" }]));
    }
    checkpointFrom(path);
    await this.createTask(backend, DONE, 2);
    await this.createTask(backend, GIVEN_UP, 2);
    await this.attempt("sealTask", () => backend.sealTask(DONE));
    const cancelled = await this.attempt("cancelTask", () => backend.cancelTask(GIVEN_UP));
    await this.workTasks(backend, cancelled);
    const cleared = await this.attempt("clear", () => backend.clear(CLEARED));
    this.ledger.removedAll(CLEARED, "error" in cleared ? happenedAfter(cleared.error) : "yes");
    await this.attempt("recover", () => backend.recover());
    sweep();
    await this.enqueue(backend, JOBS, 40, 2);
    for (const message of await this.dequeue(backend, 3)) await this.ack(backend, message, false);
    await this.attempt("messages", () => backend.messages(JOBS));
    await this.attempt("statuses", () => backend.statuses({ under: "" }));
    await this.attempt("tasks", () => backend.tasks());
  }

  /** Acks what the tasks have in the queue, so that one ends; the other was cancelled, which removes its messages. */
  async workTasks(backend: Backend, cancelled: unknown): Promise<void> {
    const isKnown = !(cancelled instanceof Object && "error" in cancelled && happenedAfter(cancelled.error) === "no");
    const listed = await this.attempt("messages", () => backend.messages(NEXT, { limit: 100 }));
    const answer = await this.attempt("dequeue", () => backend.dequeue(NEXT, { limit: 10, leaseMs: 600_000 }));
    if (isKnown) for (const id of this.#ofGivenUp()) this.ledger.removed(id, "unknown");
    if ("error" in answer) return;
    if (!("error" in listed) && listed.items.some(({ state }) => state === "pending") && answer.length === 0)
      this.violations.push("dequeue is empty, though messages of the task were listed as pending");
    for (const { id, receipt } of answer) {
      const acked = await this.attempt("ack", () => backend.ack(NEXT, [{ receipt }]));
      this.ledger.removed(id, "error" in acked ? happenedAfter(acked.error) : acked[0]?.outcome === "acked" ? "yes" : "no");
    }
    for (const id of [DONE, GIVEN_UP]) {
      const task = await this.attempt("task", () => backend.task(id));
      if (!("reason" in task) && "status" in task) this.ledger.taskSeen(id, task.status);
    }
  }

  #ofGivenUp(): MessageId[] {
    return [this.#stored - 2, this.#stored - 1].map((number) => parseMessageId(`m${number}`));
  }
}

/** What the checkpoint thread does, on a connection of its own. It may fail, like everything. */
function checkpointFrom(path: string): void {
  let database: Database.Database | undefined;
  try {
    database = new Database(path, { fileMustExist: true, timeout: 1 });
    database.pragma("synchronous = FULL");
    database.pragma("wal_checkpoint(PASSIVE)");
  } catch {
    // The fault hit this connection, which is not the store's.
  } finally {
    database?.close();
  }
}

/** Writes a file as the first version made it, of one queue with messages, so that opening it migrates them. */
export function writeTemplate(path: string): void {
  const database = new Database(path);
  database.pragma("page_size = 2048");
  database.pragma("auto_vacuum = INCREMENTAL");
  database.pragma("journal_mode = WAL");
  database.exec(schema["001"]);
  database.pragma(`application_id = ${0x51754653}`);
  database.pragma("user_version = 1");
  database.exec(`INSERT INTO store (name, value) VALUES ('store', 's1'), ('boot', 'same'), ('life', 1);
    INSERT INTO queue (slot, name, life, created_at, max_deliveries, head, tail, pending, enqueued) VALUES (1, '${OLD}', 1, 5, 20, 0, 3, 3, 3)`);
  const insert = database.prepare("INSERT INTO message (key, enqueued_at, placed, id, data) VALUES (1 << 46 | ?, 7, 0, ?, ?)");
  for (const [index, id] of OLD_MESSAGES.entries()) insert.run(index + 1, id, bytes(3_000));
  database.close();
}

/** Opens without faults, and compares. */
async function check(path: string, scenario: Scenario, where: string): Promise<void> {
  try {
    const backend = await openSqlite({ path, sweepIntervalMs: 3_600_000, busyTimeoutMs: 0, onError: () => {} });
    try {
      for (const found of await scenario.ledger.contradictions(backend)) scenario.violations.push(`${where}: ${found}`);
    } finally {
      await backend.close();
    }
  } catch (error) {
    scenario.violations.push(`${where}: it does not open or answer: ${error instanceof Error ? error.stack : error}`);
  }
}

/**
 * Runs the scenario once under `fault`.
 *
 * @param folder the folder whose calls are counted
 * @param outside a folder whose calls are not, for a copy of the files as a kill would leave them
 * @param template a file to begin with; a new one if absent
 */
export async function runOnce(folder: string, outside: string, fault: Fault, template?: string): Promise<RunResult> {
  const control = new FileCallControl(process.env.QUEUEFS_FILE_CALLS_CONTROL as string);
  const scenario = new Scenario(fault);
  const onUncaught = (error: unknown): void =>
    void scenario.violations.push(`nobody caught: ${error instanceof Error ? error.stack : error}`);
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
  mkdirSync(folder);
  mkdirSync(outside);
  const path = join(folder, "queue.db");
  if (template !== undefined) copyFileSync(template, path);
  const { clock, sweep } = steppedClock();
  if (template !== undefined) for (const id of OLD_MESSAGES) scenario.ledger.stored(OLD, id, "yes");
  control.arm(fault);
  const opened = await scenario.attempt("open", () =>
    openSqlite({
      path,
      clock,
      random: scenario.random,
      bootId: "same",
      busyTimeoutMs: 100,
      minFreeBytes: 0,
      onError: (error) => scenario.note("background", error),
    }),
  );
  if (!("error" in opened)) {
    await scenario.work(opened, path, sweep);
    control.pausing(() => {
      for (const name of ["queue.db", "queue.db-wal"])
        if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(outside, name));
    });
    await scenario.attempt("close", () => opened.close());
  }
  const { seen, struck } = control.disarm();
  if (existsSync(join(outside, "queue.db"))) await check(join(outside, "queue.db"), scenario, "after a kill");
  await check(path, scenario, "after close");
  await new Promise((resolve) => setImmediate(resolve));
  control.close();
  process.off("uncaughtException", onUncaught);
  process.off("unhandledRejection", onUncaught);
  rmSync(folder, { recursive: true });
  rmSync(outside, { recursive: true });
  return { seen, struck, codes: scenario.codes, violations: scenario.violations };
}
