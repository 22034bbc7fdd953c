/** `queuefs work` */

import { describeMessage } from "../../core/codec.ts";
import { QueueFSError } from "../../core/errors.ts";
import { DEFAULT_LEASE_MS } from "../../core/limits.ts";
import type { HandlerContext, Verdict } from "../../queue/index.ts";
import { durationOption, integerOption, readQueue, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import type { Session } from "../session.ts";
import { Batcher } from "../work/batcher.ts";
import { ProgressLine } from "../work/progress-line.ts";
import { type CommandEnd, runCommand, type WorkItem } from "../work/run-command.ts";

interface WorkCommandOptions {
  readonly jobs: number;
  readonly batch?: number;
  readonly lease?: number;
  readonly timeout?: number;
  readonly grace?: number;
  readonly backoff?: number;
  readonly giveUpCode: number;
  readonly untilComplete?: boolean;
}

/** Exit code of a program that gives its message up, unless chosen otherwise: EX_DATAERR of sysexits.h, "the input was wrong". */
const GIVE_UP_CODE = 65;

function environmentOf(queue: string, items: readonly WorkItem[], batch: boolean): Record<string, string> {
  const [first] = items;
  if (batch || first === undefined) return { QUEUEFS_QUEUE: queue, QUEUEFS_COUNT: String(items.length) };
  return {
    QUEUEFS_QUEUE: queue,
    QUEUEFS_ID: first.id,
    QUEUEFS_DELIVERY_COUNT: String(first.deliveryCount),
    QUEUEFS_TIMESTAMP: new Date(first.enqueuedAtMs).toISOString(),
  };
}

function inputOf(items: readonly WorkItem[], batch: boolean): Uint8Array {
  if (!batch) return (items[0] as WorkItem).data;
  return Buffer.from(items.map((item) => `${JSON.stringify(describeMessage(item as never))}\n`).join(""));
}

function verdictOf(
  end: CommandEnd,
  command: string,
  giveUpCode: number,
  verdicts: typeof import("../../queue/index.ts"),
): Verdict | undefined {
  if (end.code === 0) return undefined;
  const how = end.code === undefined ? `was ended by ${end.signal}` : `exited with code ${end.code}`;
  const reason = `${command} ${how}${end.errorTail === "" ? "" : `: ${end.errorTail}`}`;
  return end.code === giveUpCode ? verdicts.giveUp(reason) : verdicts.retryAfter(undefined, reason);
}

async function workOn(session: Session, queueName: string, command: readonly string[], options: WorkCommandOptions): Promise<number> {
  const [program, ...programArguments] = command;
  if (program === undefined) throw usageError("name the program to run, after --");
  const verdicts = await import("../../queue/index.ts");
  const backend = await session.openStore();
  const queue = new verdicts.NamedQueue(backend, readQueue(queueName), {
    codec: verdicts.bytesCodec,
    leaseMs: options.lease ?? DEFAULT_LEASE_MS,
  });
  await backend.status(queue.name);
  const line = new ProgressLine(session);
  const isBatch = options.batch !== undefined;
  const environment = { ...session.environment, QUEUEFS_STORE: await session.storeLocation() };
  let broken: unknown;
  const failed = new AbortController();
  const settings = {
    command: program,
    commandArguments: programArguments,
    environment,
    onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => {
      if (stream === "stdout") void session.output.bytes(chunk).then(() => session.output.flush());
      else line.write(session.errors, chunk);
    },
  };
  const batcher = new Batcher<WorkItem, CommandEnd>(options.batch ?? 1, options.jobs, async (items, signal) => {
    line.countRunning(1);
    try {
      return await runCommand(settings, inputOf(items, isBatch), environmentOf(queue.name, items, isBatch), signal);
    } finally {
      line.countRunning(-1);
    }
  });
  const handler = async (data: Uint8Array, context: HandlerContext): Promise<Verdict | undefined> => {
    const { id, deliveryCount, enqueuedAtMs, signal } = context;
    try {
      return verdictOf(await batcher.add({ id, data, deliveryCount, enqueuedAtMs }, signal), program, options.giveUpCode, verdicts);
    } catch (error) {
      // A program that cannot be started fails every message alike: end, rather than wear their deliveries out.
      broken ??= error;
      failed.abort(error);
      return verdicts.retryAfter(0);
    }
  };
  const worker = new verdicts.Worker(queue, handler, {
    concurrency: options.jobs * (options.batch ?? 1),
    prefetch: 0,
    handlerTimeoutMs: options.timeout ?? 0,
    onSettled: (outcome) => line.count(outcome),
    ...(options.grace === undefined ? {} : { graceMs: options.grace }),
    ...(options.backoff === undefined ? {} : { backoff: { firstMs: options.backoff, maximumMs: Math.max(options.backoff, 300_000) } }),
    onError: (error, about) => {
      if (about === undefined) session.note(`cannot look for work: ${error instanceof Error ? error.message : String(error)}`);
    },
  }).start();
  const ending = AbortSignal.any([session.signal, failed.signal]);
  try {
    if (options.untilComplete === true) await verdicts.waitComplete(backend, { queues: [queue.name] }, { signal: ending });
    else
      await new Promise<void>((resolve) =>
        ending.aborted ? resolve() : ending.addEventListener("abort", () => resolve(), { once: true }),
      );
  } catch (error) {
    if (!ending.aborted) throw error;
  } finally {
    await worker.stop();
    await line.end();
  }
  if (broken !== undefined) throw broken instanceof QueueFSError ? broken : new QueueFSError("internal", String(broken), { cause: broken });
  return 0;
}

/** Runs a program for each message. */
export const work: CommandRow = {
  name: "work",
  summary: "run a program for each message of a queue, as they come",
  description:
    "The payload is the program's standard input; QUEUEFS_ID, QUEUEFS_DELIVERY_COUNT, QUEUEFS_QUEUE, QUEUEFS_TIMESTAMP and QUEUEFS_STORE are in its environment. Exit code 0 acks the message, the give-up code moves it to the dead letters, any other or a signal tries it again later. Leases are renewed while programs run. Ctrl-C or SIGTERM takes no more, waits for running programs, and gives back the rest.",
  examples: [
    {
      title: "One process per message, until all is done",
      lines: ["queuefs mkdir jobs", "queuefs enqueue jobs one two three", "queuefs work jobs --until-complete -- tr a-z A-Z"],
    },
    {
      title: "Four at a time, each process taking up to ten messages as JSON lines",
      lines: ["queuefs mkdir jobs", "seq 25 | queuefs enqueue jobs --lines", "queuefs work jobs -j 4 --batch 10 --until-complete -- wc -l"],
    },
    {
      title: "A program that knows its input is wrong gives it up with code 65",
      lines: [
        "queuefs mkdir jobs",
        "queuefs enqueue jobs bad",
        "queuefs work jobs --until-complete -- sh -c 'exit 65'",
        "queuefs dead jobs",
      ],
    },
  ],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("<program...>", "the program and its arguments, after --")
      .option("-j, --jobs <number>", "programs that run at once", integerOption, 1)
      .option("--batch <number>", "messages per program, given as JSON lines {id, data, …}; one exit code for all", integerOption)
      .option("--lease <duration>", "lease of deliveries, renewed while programs run (default: 30s)", durationOption)
      .option("--timeout <duration>", "a program's time; then it is ended and its message tried again (default: none)", durationOption)
      .option("--grace <duration>", "how long running programs may take when the command is to end (default: 10s)", durationOption)
      .option("--backoff <duration>", "wait before the second attempt, doubled each time (default: 1s)", durationOption)
      .option("--give-up-code <code>", "exit code that moves a message to the dead letters", integerOption, GIVE_UP_CODE)
      .option("--until-complete", "end once the queue is complete")
      .action((queue: string, program: string[], options: WorkCommandOptions) =>
        run((session) => workOn(session, queue, program, options)),
      );
  },
};
