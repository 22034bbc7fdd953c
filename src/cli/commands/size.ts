/** `queuefs size` */

import { readQueue } from "../arguments.ts";
import type { CommandRow } from "../command.ts";

/** Prints how many messages are pending. */
export const size: CommandRow = {
  name: "size",
  summary: "print how many messages are pending",
  description: "Nothing pending does not mean that all is done: see status and wait.",
  examples: [{ title: "How long is the queue", lines: ["queuefs mkdir jobs", "queuefs enqueue jobs a b c", "queuefs size jobs"] }],
  define(command, run) {
    command.argument("<queue>", "the queue").action((name: string) =>
      run(async (session) => {
        const queue = readQueue(name);
        const backend = await session.openStore();
        const { pending } = await backend.status(queue);
        if (session.json) await session.jsonLine({ queue, size: pending });
        else await session.output.line(String(pending));
        return 0;
      }),
    );
  },
};
