/** `queuefs work` */

import { QueueFSError } from "../../core/errors.ts";
import { DEFAULT_LEASE_MS, MAX_DELAY_MS, MAX_DEQUEUE_LIMIT, MAX_LEASE_MS, MIN_LEASE_MS } from "../../core/limits.ts";
import { parseTaskId } from "../../core/names.ts";
import { checkInteger } from "../../core/options.ts";
import { durationOption, integerOption, readQueue, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { formatDuration } from "../duration.ts";
import type { WorkOptions } from "../work/work-on.ts";

interface WorkCommandOptions {
  readonly jobs: number;
  readonly batch?: number;
  readonly lease?: number;
  readonly timeout?: number;
  readonly killAfter?: number;
  readonly grace?: number;
  readonly backoff?: number;
  readonly giveUpCode: number;
  readonly untilComplete?: boolean;
  readonly untilTask?: string;
}

/** Exit code of a program that gives its message up, unless chosen otherwise: EX_DATAERR of sysexits.h, "the input was wrong". */
const GIVE_UP_CODE = 65;
/** Programs that may run at once. */
const MAX_JOBS = 1_000;
/** The longest time of a program or of its end, in milliseconds: 24 days, what timers can count. */
const MAX_TIME_MS = 24 * 24 * 3600 * 1000;

function checkTime(option: string, milliseconds: number, minimumMs: number, maximumMs: number): number {
  if (milliseconds >= minimumMs && milliseconds <= maximumMs) return milliseconds;
  const bounds = `from ${formatDuration(minimumMs)} to ${formatDuration(maximumMs)}`;
  throw new QueueFSError("invalid-argument", `${option} must be ${bounds}, got ${formatDuration(milliseconds)}`);
}

function check(options: WorkCommandOptions): WorkOptions {
  const {
    jobs,
    batch,
    lease = DEFAULT_LEASE_MS,
    timeout,
    killAfter = 5_000,
    grace = 10_000,
    backoff = 1_000,
    giveUpCode,
    untilComplete = false,
    untilTask,
  } = options;
  if (untilComplete && untilTask !== undefined) throw usageError("give --until-complete or --until-task, not both");
  return {
    jobs: checkInteger("--jobs", jobs, 1, MAX_JOBS),
    ...(batch === undefined ? {} : { batch: checkInteger("--batch", batch, 1, MAX_DEQUEUE_LIMIT) }),
    leaseMs: checkTime("--lease", lease, MIN_LEASE_MS, MAX_LEASE_MS),
    ...(timeout === undefined ? {} : { timeoutMs: checkTime("--timeout", timeout, 1, MAX_TIME_MS) }),
    killAfterMs: checkTime("--kill-after", killAfter, 0, MAX_TIME_MS),
    graceMs: checkTime("--grace", grace, 0, MAX_TIME_MS),
    backoffMs: checkTime("--backoff", backoff, 0, MAX_DELAY_MS),
    giveUpCode: checkInteger("--give-up-code", giveUpCode, 1, 255),
    untilComplete,
    ...(untilTask === undefined ? {} : { untilTask: parseTaskId(untilTask) }),
  };
}

/** Runs a program for each message. */
export const work: CommandRow = {
  name: "work",
  summary: "run a program for each message of a queue, as they come",
  description:
    "The payload is the program's standard input; QUEUEFS_ID, QUEUEFS_DELIVERY_COUNT, QUEUEFS_TIMESTAMP, QUEUEFS_QUEUE, QUEUEFS_COUNT, QUEUEFS_TASK (if a task owns it) and QUEUEFS_STORE are in its environment. Exit code 0 acks the message, the give-up code moves it to the dead letters, any other code or a signal tries it again later. Leases are renewed while programs run, and what they write is passed on as it is. Ctrl-C, SIGTERM or SIGHUP: takes no more, lets running programs finish, releases the rest; Ctrl-C or SIGTERM once more ends all at once.",
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
      title: "Until a task has ended, with its exit code",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --into parse a.txt b.txt)",
        'queuefs work parse --until-task "$id" -- wc -c',
      ],
    },
    {
      title: "A program that knows its input is wrong gives it up with code 65",
      lines: [
        "queuefs mkdir jobs",
        "queuefs enqueue jobs bad",
        "queuefs work jobs --until-complete -- sh -c 'echo wrong >&2; exit 65'",
        "queuefs dead jobs",
      ],
    },
  ],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("<program...>", "the program and its arguments, after --")
      .option("-j, --jobs <n>", `programs that run at once, up to ${MAX_JOBS}`, integerOption, 1)
      .option(
        "--batch <n>",
        "up to so many messages of one task, or of none, per program, as JSON lines {id, data, …}; its exit code is for all",
        integerOption,
      )
      .option("--lease <duration>", "lease of deliveries, renewed while programs run (default: 30s)", durationOption)
      .option("--timeout <duration>", "a program's time; then it is ended, and its message tried again (default: none)", durationOption)
      .option("--kill-after <duration>", "how long a program may take to end when told to (default: 5s)", durationOption)
      .option("--grace <duration>", "how long running programs may take when this command is to end (default: 10s)", durationOption)
      .option("--backoff <duration>", "wait before the second attempt, doubled each time up to 5m (default: 1s)", durationOption)
      .option("--give-up-code <code>", "exit code that moves a message to the dead letters", integerOption, GIVE_UP_CODE)
      .option("--until-complete", "end once the queue is complete")
      .option("--until-task <id>", "end once this task has ended, with the exit code of queuefs task wait")
      .action((queue: string, [program, ...programArguments]: [string, ...string[]], options: WorkCommandOptions) =>
        run(async (session) => {
          const name = readQueue(queue);
          const checked = check(options);
          const { workOn } = await import("../work/work-on.ts");
          await workOn(session, name, [program, ...programArguments], checked);
          return 0;
        }),
      );
  },
};
