/** `queuefs mkdir` */

import { integerOption, readQueue } from "../arguments.ts";
import type { CommandRow } from "../command.ts";

/** Makes queues. */
export const make: CommandRow = {
  name: "mkdir",
  summary: "make queues",
  description: "A queue that exists stays as it is, except for the settings that are given. Queues above it need not exist.",
  examples: [
    {
      title: "A queue, and one under it whose messages are tried three times at most",
      lines: ["queuefs mkdir imports", "queuefs mkdir imports/parse --max-deliveries 3"],
    },
  ],
  define(command, run) {
    command
      .argument("<queue...>", "names of queues, such as imports/parse")
      .option("--max-deliveries <n>", "deliveries after which a message becomes a dead letter, 0 for never (default: 20)", integerOption)
      .action((names: string[], options: { readonly maxDeliveries?: number }) =>
        run(async (session) => {
          const queues = names.map(readQueue);
          const settings = options.maxDeliveries === undefined ? {} : { maxDeliveries: options.maxDeliveries };
          const backend = await session.openStore();
          for (const queue of queues) {
            const outcome = await backend.createQueue(queue, settings);
            if (outcome === "exists" && options.maxDeliveries !== undefined) await backend.configureQueue(queue, settings);
            if (session.json) await session.jsonLine({ queue, outcome });
            else await session.output.line(`${outcome} ${queue}`);
          }
          return 0;
        }),
      );
  },
};
