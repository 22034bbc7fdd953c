/** `queuefs peek` */

import { EMPTY_JSON, messageJsonChunks } from "../../core/codec.ts";
import { EXIT_CODE_EMPTY, quote } from "../../core/errors.ts";
import { readQueue, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { messageLines } from "../message-lines.ts";

/** Shows the message that a dequeue would take. */
export const peek: CommandRow = {
  name: "peek",
  summary: "show the message that a dequeue would take, and leave it",
  description: `Exit code ${EXIT_CODE_EMPTY}: there is nothing to take now.`,
  examples: [{ title: "The oldest message", lines: ["queuefs mkdir jobs", "queuefs enqueue jobs 'parse a.txt'", "queuefs peek jobs"] }],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .option("--raw", "write the bytes of the message and nothing else")
      .action((name: string, options: { readonly raw?: boolean }) =>
        run(async (session) => {
          const queue = readQueue(name);
          if (options.raw === true && session.json) throw usageError("choose --raw or --json");
          const backend = await session.openStore();
          const message = await backend.peek(queue);
          if (message === undefined) {
            if (session.json) await session.output.line(EMPTY_JSON);
            session.note(`queue ${quote(queue)} has nothing to take now`);
            return EXIT_CODE_EMPTY;
          }
          if (options.raw === true) await session.output.bytes(message.data);
          else if (session.json) await session.output.json(messageJsonChunks(message));
          else for (const line of messageLines(session, message, [])) await session.output.line(line);
          return 0;
        }),
      );
  },
};
