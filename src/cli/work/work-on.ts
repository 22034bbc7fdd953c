/** Works a queue off: one program per message, or per group of them. */

import { systemClock } from "../../core/clock.ts";
import { formatTimestamp, messageJsonChunks } from "../../core/codec.ts";
import { isQueueFSError, QueueFSError, quote } from "../../core/errors.ts";
import type { QueueName, TaskId } from "../../core/names.ts";
import { isTerminal, type Task } from "../../core/task.ts";
import { bytesCodec } from "../../queue/codec.ts";
import { keepLeasesWhileBusy } from "../../queue/lease-holding.ts";
import { NamedQueue } from "../../queue/named-queue.ts";
import { waitComplete } from "../../queue/wait.ts";
import { waitTask } from "../../task/wait.ts";
import { formatDuration } from "../duration.ts";
import { OutputClosedError, OutputFailedError } from "../output.ts";
import type { Session } from "../session.ts";
import { absoluteLocation, STORE_VARIABLE } from "../store-option.ts";
import { assertCompleted } from "../task/ending.ts";
import { TASK_VARIABLE } from "../task-option.ts";
import { GroupWorker, type Outcome, type Settlement } from "./group-worker.ts";
import type { Group } from "./groups.ts";
import { programOutput } from "./program-output.ts";
import { ProgressLine } from "./progress-line.ts";
import { type CommandEnd, canBeFound, type NotStarted, runCommand } from "./run-command.ts";

/** What is to be done, checked and complete. Times are in milliseconds. */
export interface WorkOptions {
  readonly jobs: number;
  /** Messages per program, as JSON lines; one message as its bytes if absent. */
  readonly batch?: number;
  readonly leaseMs: number;
  readonly timeoutMs?: number;
  readonly killAfterMs: number;
  readonly graceMs: number;
  readonly backoffMs: number;
  readonly giveUpCode: number;
  readonly untilComplete: boolean;
  /** The task whose end ends the work. */
  readonly untilTask?: TaskId;
}

/** The longest wait between attempts unless the first is longer, in milliseconds: five minutes, as workers of the library have it. */
const LONGEST_BACKOFF_MS = 300_000;
/** Failures of the store that do not pass by themselves. */
const LASTING = ["queue-not-found", "store-corrupt", "store-unsuitable", "closed"] as const;
/** A trouble that goes on is told again after this time, in milliseconds. */
const TELL_AGAIN_MS = 60_000;
const LINE_END = new Uint8Array([10]);

/** What tells a program of its message. A program may itself be a worker, whose own messages these are not. */
const NO_MESSAGE = {
  QUEUEFS_QUEUE: undefined,
  QUEUEFS_ID: undefined,
  QUEUEFS_DELIVERY_COUNT: undefined,
  QUEUEFS_TIMESTAMP: undefined,
  QUEUEFS_COUNT: undefined,
  [TASK_VARIABLE]: undefined,
};

function environmentOf(queue: QueueName, group: Group, isBatch: boolean): Record<string, string> {
  const [first] = group;
  const shared = {
    QUEUEFS_QUEUE: queue,
    QUEUEFS_COUNT: String(group.length),
    // The same for all of a group.
    ...(first?.task === undefined ? {} : { [TASK_VARIABLE]: first.task }),
  };
  if (isBatch || first === undefined) return shared;
  return {
    ...shared,
    QUEUEFS_ID: first.id,
    QUEUEFS_DELIVERY_COUNT: String(first.deliveryCount),
    QUEUEFS_TIMESTAMP: formatTimestamp(first.enqueuedAtMs),
  };
}

function* inputOf(group: Group, isBatch: boolean): Generator<Uint8Array> {
  for (const { id, data, deliveryCount, enqueuedAtMs, task } of group) {
    if (!isBatch) {
      yield data;
      continue;
    }
    // Without the receipt: these messages are the worker's to settle.
    yield* messageJsonChunks({ id, data, deliveryCount, enqueuedAtMs, ...(task === undefined ? {} : { task }) });
    yield LINE_END;
  }
}

/** What a program's end means for its messages. */
function settlementOf(end: CommandEnd, command: string, options: WorkOptions): Settlement {
  if (end.cutShort === "abort") return { as: "release", reason: "" };
  if (end.outputError !== undefined) return { as: "release", reason: `not all that ${command} wrote could be written` };
  const how =
    end.cutShort === "timeout"
      ? `took longer than ${formatDuration(options.timeoutMs ?? 0)} and was ended`
      : end.code === undefined
        ? `was ended by ${end.signal}`
        : `exited with code ${end.code}`;
  if (end.cutShort === undefined && end.code === 0) return { as: "ack" };
  const giveUp = end.cutShort === undefined && end.code === options.giveUpCode;
  return { as: "nack", giveUp, reason: `${command} ${how}${end.errorTail === "" ? "" : `: ${end.errorTail}`}` };
}

function cannotRun(command: string, why: string, cause?: Error): QueueFSError {
  const words = `the program ${quote(command)} cannot be run (${why}); check its name and that it may be executed`;
  return new QueueFSError("invalid-argument", words, { cause });
}

/** Says which messages were not done, and why. */
function tellFailures(line: ProgressLine, group: Group, outcomes: readonly Outcome[], reason: string): void {
  const meaning = {
    nacked: "to be tried again",
    dead: "moved to the dead letters",
    lost: "no longer this worker's to settle",
    cancelled: "removed, since its task was cancelled",
  };
  for (const [outcome, words] of Object.entries(meaning)) {
    const ids = group.filter((_, index) => outcomes[index] === outcome).map(({ id }) => id);
    if (ids.length === 0) continue;
    const which = ids.length === 1 ? `message ${quote(ids[0])}` : `${ids.length} messages`;
    const [firstLine = ""] = reason.split("\n", 1);
    line.note(`${which} ${words}${firstLine === "" ? "" : `: ${firstLine}`}`);
  }
}

/** The work of one command. */
class Work {
  readonly #session: Session;
  readonly #queue: NamedQueue<Uint8Array>;
  readonly #command: readonly [string, ...string[]];
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #options: WorkOptions;
  readonly #line: ProgressLine;
  readonly #broken = new AbortController();
  #lastTrouble = { words: "", atMs: 0 };

  constructor(
    session: Session,
    queue: NamedQueue<Uint8Array>,
    command: readonly [string, ...string[]],
    store: string,
    options: WorkOptions,
  ) {
    this.#session = session;
    this.#queue = queue;
    this.#command = command;
    this.#options = options;
    this.#environment = { ...session.environment, ...NO_MESSAGE, [STORE_VARIABLE]: store };
    this.#line = new ProgressLine(session);
  }

  async do(): Promise<void> {
    const { jobs, batch = 1, backoffMs, graceMs, untilComplete, untilTask } = this.#options;
    const releaseThread = keepLeasesWhileBusy(this.#queue.backend, systemClock);
    const worker = new GroupWorker(this.#queue, {
      jobs,
      groupSize: batch,
      backoff: { firstMs: backoffMs, maximumMs: Math.max(backoffMs, LONGEST_BACKOFF_MS) },
      run: (group, signal) => this.#run(group, signal),
      onSettled: (group, outcomes, settlement) => {
        this.#line.count(outcomes);
        const told = settlement.as === "nack" || outcomes.includes("lost") || outcomes.includes("cancelled");
        if (told) tellFailures(this.#line, group, outcomes, settlement.as === "nack" ? settlement.reason : "");
      },
      onError: (error) => this.#trouble(error),
    });
    const ending = AbortSignal.any([this.#session.signal, this.#broken.signal]);
    let task: Task | undefined;
    try {
      if (untilTask !== undefined) task = await waitTask(this.#queue.backend, untilTask, { signal: ending });
      else if (untilComplete) await waitComplete(this.#queue.backend, { queues: [this.#queue.name] }, { signal: ending });
      else await aborted(ending);
    } catch (error) {
      if (!ending.aborted) throw error;
    } finally {
      if (this.#line.running > 0) {
        const again = this.#session.signal.aborted ? "; once more ends them at once" : "";
        this.#line.note(`ending: running programs may take ${formatDuration(graceMs)} to finish${again}`);
      }
      await worker.stop(graceMs);
      await releaseThread();
      this.#line.end();
    }
    this.#broken.signal.throwIfAborted();
    // A worker without an end has done what it was for when it is told to stop; one that was to make the queue complete has not.
    if (untilComplete || untilTask !== undefined) this.#session.signal.throwIfAborted();
    if (task !== undefined) await assertCompleted(this.#queue.backend, task);
  }

  async #run(group: Group, abort: AbortSignal): Promise<Settlement> {
    const { batch, jobs, timeoutMs, killAfterMs } = this.#options;
    const [command, ...commandArguments] = this.#command;
    const isBatch = batch !== undefined;
    const output = programOutput((stream, bytes) => this.#pass(stream, bytes), jobs > 1);
    this.#line.countRunning(1);
    const end = await runCommand(
      { command, commandArguments, environment: this.#environment, killAfterMs, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
      {
        input: inputOf(group, isBatch),
        environment: environmentOf(this.#queue.name, group, isBatch),
        abort,
        write: output.write,
      },
    );
    this.#line.countRunning(-1);
    if ("notStarted" in end) return this.#notStarted(end, command);
    const outputError = end.outputError ?? (await output.end().catch((error: unknown) => error));
    return settlementOf({ ...end, outputError }, command, this.#options);
  }

  async #pass(stream: "stdout" | "stderr", bytes: Uint8Array): Promise<void> {
    try {
      await this.#line.pass(stream, bytes);
    } catch (error) {
      // Nobody gets the results: programs would work for nothing.
      this.#break(
        error instanceof OutputClosedError
          ? new OutputFailedError("standard output was closed by its reader; what was not wholly written was released", { cause: error })
          : error,
      );
      throw error;
    }
  }

  /** Every message would meet the same: their deliveries must not be worn out by it. */
  #notStarted({ notStarted, isTransient }: NotStarted, command: string): Settlement {
    if (isTransient) {
      this.#trouble(new Error(`${command} cannot be started now (${notStarted.message}); trying again`));
      return { as: "release-and-rest", reason: "" };
    }
    this.#break(cannotRun(command, notStarted.message, notStarted));
    return { as: "release", reason: "" };
  }

  #trouble(error: unknown): void {
    if (LASTING.some((code) => isQueueFSError(error, code))) this.#break(error);
    const words = error instanceof Error ? error.message : String(error);
    const atMs = systemClock.monotonicMs();
    if (this.#broken.signal.aborted || (words === this.#lastTrouble.words && atMs - this.#lastTrouble.atMs < TELL_AGAIN_MS)) return;
    this.#lastTrouble = { words, atMs };
    this.#line.note(words);
  }

  #break(error: unknown): void {
    if (!this.#broken.signal.aborted) this.#broken.abort(error);
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/**
 * Runs a program for each message of a queue until told to end, or until the queue is complete or a task has ended.
 *
 * @throws QueueFSError `task-failed`, `task-cancelled`, `task-not-found` when it works until a task has ended
 * @throws QueueFSError `queue-not-found`, `invalid-argument` when the program cannot be run; whatever the store answers that lasts
 * @throws OutputFailedError when what programs write cannot be written
 * @throws InterruptedError when it was to make the queue complete, or to work until a task has ended, and was told to end before
 */
export async function workOn(
  session: Session,
  name: QueueName,
  command: readonly [string, ...string[]],
  options: WorkOptions,
): Promise<void> {
  if (!canBeFound(command[0], session.environment.PATH)) throw cannotRun(command[0], "there is none of that name");
  const backend = await session.openStore();
  // Whoever makes a queue says so; a misspelt name must not make one.
  await backend.status(name);
  if (options.untilTask !== undefined) {
    const task = await backend.task(options.untilTask);
    if (isTerminal(task.status)) return assertCompleted(backend, task);
  }
  const queue = new NamedQueue(backend, name, { codec: bytesCodec, leaseMs: options.leaseMs });
  await new Work(session, queue, command, absoluteLocation(await session.storeLocation()), options).do();
}
