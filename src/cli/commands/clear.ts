/** `queuefs clear` */

import { readQueue } from "../arguments.ts";
import type { CommandRow } from "../command.ts";

/** Removes all unacked messages. */
export const clear: CommandRow = {
  name: "clear",
  summary: "remove all messages of a queue, those in processing too",
  description: "Dead letters stay; queuefs dead --drop all removes them.",
  examples: [{ title: "Begin anew", lines: ["queuefs mkdir jobs", "queuefs enqueue jobs a b c", "queuefs clear jobs"] }],
  define(command, run) {
    command.argument("<queue>", "the queue").action((name: string) =>
      run(async (session) => {
        const queue = readQueue(name);
        const backend = await session.openStore();
        const cleared = await backend.clear(queue);
        if (session.json) await session.jsonLine({ queue, pending: cleared.pending, processing: cleared.processing });
        else await session.output.line(`cleared ${queue}: ${cleared.pending} pending, ${cleared.processing} in processing`);
        return 0;
      }),
    );
  },
};
