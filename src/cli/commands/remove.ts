/** `queuefs rm` */

import { readQueue } from "../arguments.ts";
import type { CommandRow } from "../command.ts";

/** Removes queues with their messages and dead letters. */
export const remove: CommandRow = {
  name: "rm",
  summary: "remove queues with their messages and dead letters",
  examples: [
    { title: "A directory with all queues under it", lines: ["queuefs mkdir imports/parse imports/index", "queuefs rm -r imports"] },
  ],
  define(command, run) {
    command
      .argument("<path...>", "queues, and with -r directories as well")
      .option("-r, --recursive", "remove the queues under it too")
      .action((names: string[], options: { readonly recursive?: boolean }) =>
        run(async (session) => {
          const paths = names.map(readQueue);
          const backend = await session.openStore();
          for (const path of paths) {
            const removed = await backend.removeQueue(path, { recursive: options.recursive === true });
            if (session.json) await session.jsonLine({ path, removed });
            else await session.output.line(`removed ${path}${removed === 1 ? "" : ` (${removed} queues)`}`);
          }
          return 0;
        }),
      );
  },
};
