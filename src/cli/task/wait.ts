/** `queuefs task wait` */

import { parseTaskId } from "../../core/names.ts";
import { durationOption } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { followTask } from "./follow.ts";

/** Waits for the end of a task. */
export const wait: CommandRow = {
  name: "wait",
  summary: "wait until a task has ended, and say how",
  description:
    "On a terminal it shows how far things are; else it writes a line for each change, with --json the task. Exit code 0: completed; 22: failed, with the first error; 23: cancelled; 8: timed out, with the last state.",
  examples: [
    {
      title: "For five minutes at most",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --into parse a.txt)",
        "queuefs work parse --until-complete -- wc -c",
        'queuefs task wait "$id" --timeout 5m',
      ],
    },
    {
      title: "A task of which a message was given up",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --into parse a.txt)",
        "queuefs work parse --until-complete -- sh -c 'echo wrong >&2; exit 65'",
        'queuefs task wait "$id"',
      ],
      exitCode: 22,
    },
  ],
  define(command, run) {
    command
      .argument("<id>", "the task")
      .option("--timeout <duration>", "give up after this time, such as 30s; 0 looks once (default: never)", durationOption)
      .action((given: string, options: { readonly timeout?: number }) =>
        run(async (session) => {
          const id = parseTaskId(given);
          await followTask(session, await session.openStore(), id, options.timeout);
          return 0;
        }),
      );
  },
};
