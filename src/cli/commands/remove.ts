/** `queuefs rm` */

import type { Backend } from "../../backend/contract.ts";
import type { QueueName } from "../../core/names.ts";
import { readPath, readQueue } from "../arguments.ts";
import type { CommandRow } from "../command.ts";

/** What is to be removed: a queue or directory, or what a path of the file face names among the tasks. */
type Removable = { readonly queue: QueueName } | { readonly taskPath: string };

function readRemovable(name: string): Removable {
  return /^\/*\.tasks(\/|$)/.test(name) ? { taskPath: readPath(name) } : { queue: readQueue(name) };
}

/** @returns how many queues or tasks were removed */
async function removeOne(backend: Backend, what: Removable, recursive: boolean): Promise<number> {
  if ("queue" in what) return backend.removeQueue(what.queue, { recursive });
  const { QueueFS } = await import("../../fs/queue-fs.ts");
  await using files = new QueueFS(backend);
  return files.rm(what.taskPath);
}

/** Removes queues with their messages and dead letters, and the records of tasks. */
export const remove: CommandRow = {
  name: "rm",
  summary: "remove queues with their messages and dead letters",
  description: "A path /.tasks/ID removes the record of a task that has ended, as queuefs task remove does.",
  examples: [
    { title: "A directory with all queues under it", lines: ["queuefs mkdir imports/parse imports/index", "queuefs rm -r imports"] },
  ],
  define(command, run) {
    command
      .argument("<path...>", "queues, and with -r directories as well; or tasks, as /.tasks/ID")
      .option("-r, --recursive", "remove the queues under it too")
      .action((names: string[], options: { readonly recursive?: boolean }) =>
        run(async (session) => {
          const removables = names.map(readRemovable);
          const backend = await session.openStore();
          for (const what of removables) {
            const removed = await removeOne(backend, what, options.recursive === true);
            const path = "queue" in what ? what.queue : what.taskPath;
            if (session.json) await session.jsonLine({ path, removed });
            else await session.output.line(`removed ${path}${removed === 1 ? "" : ` (${removed} queues)`}`);
          }
          return 0;
        }),
      );
  },
};
