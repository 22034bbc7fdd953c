/** `queuefs ls` */

import type { Backend } from "../../backend/contract.ts";
import { isQueueFSError, QueueFSError, quote } from "../../core/errors.ts";
import { MAX_SNAPSHOT_QUEUES } from "../../core/limits.ts";
import type { Status } from "../../core/message.ts";
import { parseQueueName, type QueueName } from "../../core/names.ts";
import type { FileStat, FileSystemPort } from "../../fs/port.ts";
import { readPath } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import type { Session } from "../session.ts";
import { type Column, styled, writeTable } from "../table.ts";
import { visible } from "../visible.ts";

const COLUMNS: readonly Column[] = [
  { title: "MODE" },
  { title: "KIND" },
  { title: "PENDING", align: "right" },
  { title: "PROCESSING", align: "right" },
  { title: "NAME" },
];

function join(directory: string, name: string): string {
  return `${directory.replace(/\/$/, "")}/${name}`;
}

/** What lies at a path: a directory's entries, or the control file itself. */
async function entriesAt(files: FileSystemPort, path: string, all: boolean): Promise<readonly FileStat[]> {
  const stat = await files.stat(path);
  if (stat.kind === "file") return [stat];
  const entries = await files.readdir(path, { all });
  return all ? entries : entries.filter((entry) => entry.role !== "control");
}

/** The status of those entries that are queues, by name; queues removed meanwhile are left out. */
async function statusesOf(backend: Backend, path: string, entries: readonly FileStat[]): Promise<Map<string, Status>> {
  const names = entries.filter((entry) => entry.role === "queue").map((entry) => parseQueueName(join(path, entry.name).slice(1)));
  const found = new Map<string, Status>();
  for (let start = 0; start < names.length; start += MAX_SNAPSHOT_QUEUES) {
    for (const status of await snapshot(backend, names.slice(start, start + MAX_SNAPSHOT_QUEUES))) found.set(status.queue, status);
  }
  return found;
}

async function snapshot(backend: Backend, queues: readonly QueueName[]): Promise<readonly (Status & { readonly queue: QueueName })[]> {
  try {
    return await backend.statuses({ queues });
  } catch (error) {
    if (!isQueueFSError(error, "queue-not-found")) throw error;
  }
  const found: (Status & { readonly queue: QueueName })[] = [];
  for (const queue of queues) {
    try {
      found.push({ queue, ...(await backend.status(queue)) });
    } catch (error) {
      if (!isQueueFSError(error, "queue-not-found")) throw error;
    }
  }
  return found;
}

async function printLong(session: Session, backend: Backend, path: string, entries: readonly FileStat[]): Promise<void> {
  const statuses = await statusesOf(backend, path, entries);
  const statusOf = (entry: FileStat): Status | undefined =>
    entry.role === "queue" ? statuses.get(join(path, entry.name).slice(1)) : undefined;
  if (session.json) {
    for (const entry of entries) {
      const status = statusOf(entry);
      await session.jsonLine({
        name: entry.name,
        role: entry.role,
        mode: entry.mode,
        ...(status && { pending: status.pending, processing: status.processing }),
      });
    }
    return;
  }
  const rows = entries.map((entry) => {
    const status = statusOf(entry);
    return [
      `0${entry.mode.toString(8)}`,
      entry.role,
      status ? String(status.pending) : "-",
      status ? String(status.processing) : "-",
      visible(entry.name),
    ];
  });
  if (rows.length > 0) await writeTable(session, COLUMNS, rows);
}

/** Lists queues. */
export const list: CommandRow = {
  name: "ls",
  summary: "list queues and directories",
  examples: [
    { title: "All queues under a path, with their status", lines: ["queuefs mkdir imports/parse imports/index", "queuefs ls -l imports"] },
  ],
  define(command, run) {
    command
      .argument("[path]", "where to look", "/")
      .option("-l, --long", "with kind, mode and status")
      .option("-a, --all", "with the control files")
      .action((given: string, options: { readonly long?: boolean; readonly all?: boolean }) =>
        run(async (session) => {
          const path = readPath(given);
          const backend = await session.openStore();
          const { QueueFS } = await import("../../fs/queue-fs.ts");
          await using files = new QueueFS(backend);
          const entries = await entriesAt(files, path, options.all === true).catch((error: unknown) => {
            if (!isQueueFSError(error, "queue-not-found")) throw error;
            throw new QueueFSError("path-not-found", `there is no queue or directory ${quote(path)}`, { cause: error });
          });
          if (options.long === true) await printLong(session, backend, path, entries);
          else if (session.json) for (const entry of entries) await session.jsonLine({ name: entry.name, role: entry.role });
          else
            for (const entry of entries)
              await session.output.line(entry.role === "queue" ? styled(session, "bold", visible(entry.name)) : visible(entry.name));
          return 0;
        }),
      );
  },
};
