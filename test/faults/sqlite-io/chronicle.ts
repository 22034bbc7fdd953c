/**
 * Work whose every commit that matters leaves a line in one queue, in the same step. The lines stand in the order of the commits, so what a
 * store holds after a power loss tells how far it came, and the rest of it must be what those lines say.
 */

import { openSync, writeSync } from "node:fs";
import Database from "better-sqlite3";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import { parseMessageId, parseQueueName, parseTaskId, type QueueName } from "../../../src/core/names.ts";
import { encodeMark } from "./disk.ts";

const [LINES, JOBS] = [parseQueueName("lines"), parseQueueName("jobs")];
const FIRST_JOBS = ["first-1", "first-2", "first-3", "first-4", "first-5"];
/** Payloads of jobs, so that the log grows quickly. */
const JOB_BYTES = 2_500;

/** What a line says, beside that the commit with it happened. */
export interface Line {
  readonly acked?: string;
  readonly added?: string;
  readonly done?: string;
}

/** What the programs append to the record once a call was answered. */
export type Mark = { readonly set: "up" } | { readonly line: string };

/** Durability of the connections of a run. */
export type Durability = "full" | "normal";

let record: number | undefined;

function mark(value: Mark): void {
  record ??= openSync(process.env.QUEUEFS_FILE_CALLS_RECORD as string, "a");
  const bytes = encodeMark(value);
  if (writeSync(record, bytes) !== bytes.length) throw new Error("the record could not be written");
}

const job = (id: string) => ({ id: parseMessageId(id), data: new Uint8Array(JOB_BYTES).fill(id.length) });
const line = (id: string, said: Line) => ({ id: parseMessageId(id), data: Buffer.from(JSON.stringify(said)) });

function open_(path: string, durability: Durability): Promise<Backend> {
  return openSqlite({ path, durability, sweepIntervalMs: 3_600_000, minFreeBytes: 0 });
}

/** Makes the store and its first jobs. */
export async function setUp(path: string, durability: Durability, workers: readonly string[]): Promise<void> {
  const backend = await open_(path, durability);
  for (const queue of [LINES, JOBS, ...workers.map(own)]) await backend.createQueue(queue, { maxDeliveries: 0 });
  await backend.enqueue(JOBS, FIRST_JOBS.map(job));
  mark({ set: "up" });
  await backend.close();
}

function own(worker: string): QueueName {
  return parseQueueName(`tasks-of-${worker}`);
}

async function take(backend: Backend, queue: QueueName): Promise<DeliveredMessage> {
  // Others may hold all of them for a moment.
  for (;;) {
    const [message] = await backend.dequeue(queue, { leaseMs: 600_000, owner: "receipt" });
    if (message !== undefined) return message;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Works so many rounds and closes. `phase` tells its lines from those of another time. */
export async function chronicle(path: string, durability: Durability, worker: string, phase: string, rounds: number): Promise<void> {
  const backend = await open_(path, durability);
  for (let round = 0; round < rounds; round += 1) {
    const name = `${worker}-${phase}-${round}`;
    await backend.enqueue(LINES, [line(`${name}-note`, {})]);
    mark({ line: `${name}-note` });
    const { id, receipt } = await take(backend, JOBS);
    const said: Line = { acked: id, added: `${name}-job` };
    const forward = [
      { queue: JOBS, messages: [job(`${name}-job`)] },
      { queue: LINES, messages: [line(`${name}-ack`, said)] },
    ];
    await backend.ack(JOBS, [{ receipt, forward }]);
    mark({ line: `${name}-ack` });
    if (round % 3 === 0) await doTask(backend, worker, name);
  }
  await backend.close();
}

async function doTask(backend: Backend, worker: string, name: string): Promise<void> {
  const task = parseTaskId(`task-${name}`);
  await backend.createTask({ id: task, type: "import" }, [{ queue: own(worker), messages: [job(`${name}-work`)] }]);
  await backend.sealTask(task);
  const { receipt } = await take(backend, own(worker));
  const forward = [{ queue: LINES, messages: [line(`${name}-done`, { done: task })] }];
  await backend.ack(own(worker), [{ receipt, forward }]);
  mark({ line: `${name}-done` });
}

let checkpointing = false;

/** What the checkpoint thread does, far more often: the log is taken in and begun anew every few commits. */
export async function checkpointAgainAndAgain(path: string, durability: Durability): Promise<number> {
  const database = new Database(path, { fileMustExist: true, timeout: 1 });
  database.pragma(`synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
  checkpointing = true;
  let checkpoints = 0;
  while (checkpointing) {
    try {
      const [{ checkpointed }] = database.pragma("wal_checkpoint(PASSIVE)") as [{ checkpointed: number }];
      if (checkpointed > 0) checkpoints += 1;
    } catch (error) {
      if (!String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY")) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  database.close();
  return checkpoints;
}

/** Ends {@link checkpointAgainAndAgain}. */
export function stopCheckpoints(): void {
  checkpointing = false;
}

/** Lines of a store, oldest first; `undefined` when it has no such queue yet. */
export async function readLines(backend: Backend): Promise<{ id: string; said: Line }[] | undefined> {
  const lines: { id: string; said: Line }[] = [];
  try {
    for (let after: string | undefined = ""; after !== undefined; ) {
      const page = await backend.messages(LINES, { limit: 1_000, ...(after === "" ? {} : { after }) });
      for (const { id, data } of page.items) lines.push({ id, said: JSON.parse(Buffer.from(data).toString()) as Line });
      after = page.next;
    }
    return lines;
  } catch (error) {
    if (isQueueFSError(error, "queue-not-found")) return undefined;
    throw error;
  }
}

/**
 * What of a store contradicts the lines that it holds, or what had been answered before.
 *
 * @param all the lines of the run that ended well
 * @param answered lines whose calls had been answered; of these none may be missing
 * @param isSetUp whether the answer to making the store had come
 */
export async function contradictions(
  backend: Backend,
  all: readonly { id: string; said: Line }[],
  answered: ReadonlySet<string>,
  isSetUp: boolean,
): Promise<string[]> {
  const found = (await backend.inspect()).filter(({ severity }) => severity === "error").map(({ message }) => message);
  const lines = await readLines(backend);
  if (lines === undefined) return isSetUp ? [...found, "the store was made, and is not there"] : found;
  const hole = lines.findIndex(({ id }, index) => id !== all[index]?.id);
  if (hole >= 0) found.push(`line ${hole} is ${lines[hole]?.id}, not ${all[hole]?.id}`);
  const present = new Set(lines.map(({ id }) => id));
  for (const id of answered) if (!present.has(id)) found.push(`${id} was answered and is lost`);
  const jobs = new Set(FIRST_JOBS);
  const done = new Set<string>();
  for (const { said } of lines) {
    if (said.acked !== undefined) jobs.delete(said.acked);
    if (said.added !== undefined) jobs.add(said.added);
    if (said.done !== undefined) done.add(said.done);
  }
  const { items } = await backend.messages(JOBS, { limit: 1_000 }).catch((error: unknown) => {
    if (isQueueFSError(error, "queue-not-found") && !isSetUp && lines.length === 0) return { items: [] };
    throw error;
  });
  const listed = items.map(({ id }) => id as string);
  const mayBeEmpty = lines.length === 0 && !isSetUp && listed.length === 0;
  if (!mayBeEmpty && [...jobs].sort().join() !== [...listed].sort().join()) found.push(`jobs are ${listed}, not ${[...jobs]}`);
  const completed = (await backend.tasks({ status: "completed", limit: 1_000 })).items.map(({ id }) => id as string);
  if ([...done].sort().join() !== completed.sort().join()) found.push(`tasks done are ${completed}, not ${[...done]}`);
  return found;
}
