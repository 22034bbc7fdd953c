/** `queuefs migrate` */

import { statSync } from "node:fs";
import { quote } from "../../core/errors.ts";
import { DEFAULT_MAX_MESSAGE_BYTES } from "../../core/limits.ts";
import type { PlannedQueue, TakeoverPlan } from "../../migrate/plan.ts";
import type { TakenQueue } from "../../migrate/takeover.ts";
import { integerOption, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { startProgressBar } from "../progress-bar.ts";
import type { Session } from "../session.ts";
import { type Column, writeTable } from "../table.ts";
import { visible } from "../visible.ts";

const COLUMNS: readonly Column[] = [
  { title: "OLD QUEUE" },
  { title: "QUEUE" },
  { title: "MESSAGES", align: "right" },
  { title: "DEAD LETTERS", align: "right" },
  { title: "NEW IDS", align: "right" },
];

interface MigrateCommandOptions {
  readonly to?: string;
  readonly dryRun?: boolean;
  readonly maxMessageBytes?: number;
}

interface Totals {
  readonly stored: number;
  readonly repeated: number;
  readonly displaced: number;
  readonly leftRaw: number;
}

/** What is told after a takeover or a dry run, queue by queue. */
async function writeQueues(session: Session, queues: readonly (PlannedQueue | TakenQueue)[]): Promise<void> {
  if (session.json) {
    for (const queue of queues) {
      const { oldName, messages, unreadable, newIds, reason } = queue;
      const taken =
        "stored" in queue
          ? {
              existed: queue.existed,
              stored: queue.stored,
              repeated: queue.repeated,
              displaced: queue.displaced,
              putAside: queue.putAside,
              leftRaw: queue.leftRaw,
            }
          : {};
      await session.jsonLine({
        oldName,
        queue: queue.queue,
        ...(reason === undefined ? {} : { renamed: reason }),
        messages,
        unreadable,
        newIds,
        ...taken,
      });
    }
    return;
  }
  const rows = queues.map((queue) => [
    visible(queue.oldName),
    visible(queue.queue),
    String(queue.messages),
    String(queue.unreadable),
    String(queue.newIds),
  ]);
  if (rows.length > 0) await writeTable(session, COLUMNS, rows);
}

/** What a person should know, each a line on standard error. */
function writeNotes(session: Session, plan: TakeoverPlan, totals: Totals | undefined): void {
  for (const queue of plan.queues)
    if (queue.reason !== undefined) session.note(`queue ${quote(queue.oldName)} is renamed to ${quote(queue.queue)}: ${queue.reason}`);
  if (plan.processing > 0) session.note(`${plan.processing} messages were in processing; they are pending again`);
  if (plan.unreadable > 0)
    session.note(
      `${plan.unreadable} records could not be decoded; they are dead letters with their bytes as they were: see queuefs dead QUEUE`,
    );
  const newIds = plan.queues.reduce((sum, queue) => sum + queue.newIds, 0);
  if (newIds > 0) session.note(`${newIds} messages have a new id (migrated-N), since theirs was missing, malformed, reserved or shared`);
  if (plan.messages > 0) session.note("the times at which messages were enqueued begin anew; the order is kept");
  if (totals === undefined) return;
  if (totals.repeated > 0) session.note(`${totals.repeated} messages had been taken over before and were not stored again`);
  if (totals.displaced > 0)
    session.note(
      `${totals.displaced} ids were in use in the target for other messages; those got a new id (migrated-N) and stand a little later in their queue`,
    );
  if (totals.leftRaw > 0)
    session.note(
      `${totals.leftRaw} records that could not be decoded are still in their queues, as raw bytes, since others hold them or stand before them; run this again later`,
    );
}

/** Whether a location names the old file itself. */
function isSameFile(file: string, location: string): boolean {
  if (!/^sqlite:./i.test(location)) return false;
  const target = statSync(location.slice("sqlite:".length), { throwIfNoEntry: false });
  const source = statSync(file, { throwIfNoEntry: false });
  return target !== undefined && source !== undefined && target.dev === source.dev && target.ino === source.ino;
}

async function migrateFile(session: Session, path: string, location: string, options: MigrateCommandOptions): Promise<number> {
  const { openReferenceFile } = await import("../../migrate/reference-file.ts");
  using file = openReferenceFile(path);
  if (options.dryRun === true) {
    const { planTakeover } = await import("../../migrate/plan.ts");
    const plan = planTakeover(file, options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES);
    await writeQueues(session, plan.queues);
    writeNotes(session, plan, undefined);
    session.note("a dry run: nothing was changed");
    return 0;
  }
  const { takeOver } = await import("../../migrate/takeover.ts");
  const backend = await session.openStore(
    location,
    options.maxMessageBytes === undefined ? {} : { maxMessageBytes: options.maxMessageBytes },
  );
  const bar = await startProgressBar(session);
  const total = file.messageCount();
  bar.update(total);
  try {
    const report = await takeOver(file, backend, { signal: session.signal, onProgress: (done) => bar.update(total - done) });
    bar.stop();
    await writeQueues(session, report.queues);
    const sum = (name: keyof Totals): number => report.queues.reduce((count, queue) => count + queue[name], 0);
    writeNotes(session, report, { stored: sum("stored"), repeated: sum("repeated"), displaced: sum("displaced"), leftRaw: sum("leftRaw") });
    return 0;
  } finally {
    bar.stop();
  }
}

/** Takes an old queue.db over. */
export const migrate: CommandRow = {
  name: "migrate",
  summary: "take over the queue.db of an older QueueFS (tables queue_metadata and queue_messages)",
  description:
    "Stop the old service first. The old file is only read. Nothing is lost: the order and the ids are kept, messages in processing become pending, queues whose " +
    "names are reserved now get others, and records that cannot be decoded become dead letters. After an interruption run it again, before workers start.",
  examples: [
    {
      title: "Look first, then take over",
      lines: ["queuefs migrate queue.db --dry-run", "queuefs migrate queue.db", "queuefs status"],
      needs: "reference-file",
    },
  ],
  define(command, run) {
    command
      .argument("<file>", "the old queue.db")
      .option("--to <store>", "where to, if not the store in use")
      .option("--dry-run", "say what would happen, and change nothing")
      .option("--max-message-bytes <n>", "bytes that one message may have (default: 64 MiB)", integerOption)
      .action((path: string, options: MigrateCommandOptions) =>
        run(async (session) => {
          const location = options.to ?? (await session.storeLocation());
          if (isSameFile(path, location)) throw usageError(`${quote(path)} is the target itself; name another store with --to`);
          return migrateFile(session, path, location, options);
        }),
      );
  },
};
