/** `queuefs task show` */

import { formatTimestamp } from "../../core/codec.ts";
import { parseTaskId } from "../../core/names.ts";
import type { TaskFailure } from "../../core/task.ts";
import { describeTask } from "../../core/task-json.ts";
import { Tasks } from "../../task/index.ts";
import { integerOption } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { type Column, writeTable } from "../table.ts";
import { preview, visible } from "../visible.ts";
import { taskLines } from "./task-lines.ts";

const COLUMNS: readonly Column[] = [{ title: "QUEUE" }, { title: "FAILED MESSAGE" }, { title: "DIED" }, { title: "REASON" }];
const REASON_WIDTH = 80;
/** Failed messages shown unless asked otherwise. */
const DEFAULT_FAILURES = 100;

/** The first failed messages of a task, without their data, and whether there are more. */
async function failuresOf(tasks: Tasks, id: string, limit: number): Promise<{ shown: Omit<TaskFailure, "data">[]; more: boolean }> {
  const shown: Omit<TaskFailure, "data">[] = [];
  for await (const { data: _, ...failure } of tasks.failures(id)) {
    if (shown.length === limit) return { shown, more: true };
    shown.push(failure);
  }
  return { shown, more: false };
}

/** Shows a task. */
export const show: CommandRow = {
  name: "show",
  summary: "show a task, and the messages of it that failed",
  examples: [
    {
      title: "How far it is, and what failed",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --into parse a.txt b.txt)",
        "queuefs work parse --until-complete -- sh -c 'echo no such page >&2; exit 65'",
        'queuefs task show "$id"',
      ],
    },
  ],
  define(command, run) {
    command
      .argument("<id>", "the task")
      .option("-n, --limit <n>", `failed messages at most (default: ${DEFAULT_FAILURES})`, integerOption)
      .action((given: string, options: { readonly limit?: number }) =>
        run(async (session) => {
          const id = parseTaskId(given);
          const tasks = new Tasks(await session.openStore());
          const task = await tasks.get(id);
          const { shown, more } = await failuresOf(tasks, id, options.limit ?? DEFAULT_FAILURES);
          if (session.json) {
            const failures = shown.map(({ queue, id: message, reason, deliveryCount, diedAtMs }) => {
              return { queue, id: message, reason, deliveries: deliveryCount, diedAt: formatTimestamp(diedAtMs) };
            });
            await session.jsonLine({ ...describeTask(task), failures, ...(more ? { moreFailures: true } : {}) });
            return 0;
          }
          for (const line of taskLines(session, task)) await session.output.line(line);
          if (shown.length === 0) return 0;
          await session.output.line("");
          const rows = shown.map(({ queue, id: message, reason, diedAtMs }) => {
            return [visible(queue), visible(message), formatTimestamp(diedAtMs), preview(new TextEncoder().encode(reason), REASON_WIDTH)];
          });
          await writeTable(session, COLUMNS, rows);
          if (more) await session.output.line(`… and more; -n shows more than ${shown.length}`);
          return 0;
        }),
      );
  },
};
