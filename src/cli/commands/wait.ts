/** `queuefs wait` */

import type { Backend } from "../../backend/contract.ts";
import type { QueueSelection, QueueStatus } from "../../core/message.ts";
import { durationOption, readSelection } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { startProgressBar } from "../progress-bar.ts";
import type { Session } from "../session.ts";
import { totalOf, writeStatuses } from "../status-table.ts";

interface WaitCommandOptions {
  readonly under?: string;
  readonly timeout?: number;
  readonly upToNow?: boolean;
}

async function waitFor(
  session: Session,
  backend: Backend,
  selection: QueueSelection,
  options: WaitCommandOptions,
): Promise<readonly QueueStatus[]> {
  const { waitComplete, WaitTimeoutError } = await import("../../queue/wait.ts");
  const bar = await startProgressBar(session);
  let said = "";
  try {
    return await waitComplete(backend, selection, {
      signal: session.signal,
      ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
      ...(options.upToNow === true ? { upTo: "now" as const } : {}),
      onProgress(statuses) {
        said = "";
        const { pending, processing } = totalOf(statuses);
        bar.update(pending + processing);
      },
      onError(error) {
        if (said === error.message) return;
        said = error.message;
        session.note(`still waiting: ${error.message}`);
      },
    });
  } catch (error) {
    bar.stop();
    if (error instanceof WaitTimeoutError && error.statuses !== undefined) await writeStatuses(session, error.statuses);
    throw error;
  } finally {
    bar.stop();
  }
}

/** Waits until queues are complete. */
export const wait: CommandRow = {
  name: "wait",
  summary: "wait until queues are complete, and print the snapshot that said so",
  description:
    "Without names it waits for all queues. On a terminal it shows how far things are. Exit code 8: timed out, with the last snapshot printed; 4: a queue was removed.",
  examples: [
    { title: "Two queues, for five minutes at most", lines: ["queuefs mkdir parse index", "queuefs wait parse index --timeout 5m"] },
    {
      title: "Only for what is enqueued already",
      lines: ["queuefs mkdir jobs", "queuefs enqueue jobs a", "queuefs wait jobs --up-to-now --timeout 10ms"],
      exitCode: 8,
    },
  ],
  define(command, run) {
    command
      .argument("[queue...]", "queues; all if there are none")
      .option("--under <path>", "all queues at and under a path")
      .option("--timeout <duration>", "give up after this time, such as 30s; 0 looks once (default: never)", durationOption)
      .option("--up-to-now", "wait only for the messages enqueued before now")
      .action((names: string[], options: WaitCommandOptions) =>
        run(async (session) => {
          const selection = readSelection(names, options.under);
          const backend = await session.openStore();
          await writeStatuses(session, await waitFor(session, backend, selection, options));
          return 0;
        }),
      );
  },
};
