/** `queuefs task list` */

import { formatTimestamp } from "../../core/codec.ts";
import { MAX_PAGE_ITEMS } from "../../core/limits.ts";
import { TASK_STATUSES, type Task, type TaskListOptions, type TaskStatus } from "../../core/task.ts";
import { describeTask } from "../../core/task-json.ts";
import { Tasks } from "../../task/index.ts";
import { instantOption, integerOption } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import type { Session } from "../session.ts";
import { type Column, writeTable } from "../table.ts";
import { preview, visible } from "../visible.ts";

interface ListOptions {
  readonly type?: string;
  readonly status?: string;
  readonly resource?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit?: number;
}

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "TYPE" },
  { title: "STATUS" },
  { title: "DONE", align: "right" },
  { title: "FAILED", align: "right" },
  { title: "CANCELLED", align: "right" },
  { title: "UNACKED", align: "right" },
  { title: "TOTAL", align: "right" },
  { title: "CREATED" },
  { title: "STAGE" },
  { title: "RESOURCE" },
];
const TEXT_WIDTH = 40;
/** Tasks listed unless asked otherwise. */
const DEFAULT_LIMIT = 100;

function row({ id, type, status, progress, createdAtMs, stage = "", resource = "" }: Task): string[] {
  const short = (text: string): string => preview(new TextEncoder().encode(text), TEXT_WIDTH);
  const { done, failed, cancelled, unacked, total } = progress;
  return [
    id,
    visible(type),
    status,
    ...[done, failed, cancelled, unacked, total].map(String),
    formatTimestamp(createdAtMs),
    short(stage),
    short(resource),
  ];
}

async function write(session: Session, tasks: readonly Task[]): Promise<void> {
  if (session.json) for (const task of tasks) await session.jsonLine(describeTask(task));
  else if (tasks.length > 0) await writeTable(session, COLUMNS, tasks.map(row));
  await session.output.flush();
}

/** Lists tasks. */
export const list: CommandRow = {
  name: "list",
  summary: "list tasks, the newest first",
  examples: [
    {
      title: "Those of the last day that failed",
      lines: ["queuefs mkdir parse", "queuefs task create import --into parse a", "queuefs task list --status failed --since 1d"],
    },
  ],
  define(command, run) {
    command
      .option("--type <type>", "only of this type")
      .option("--status <status>", `only with this status: ${TASK_STATUSES.join(", ")}`)
      .option("--resource <text>", "only about this")
      .option("--since <time>", "made at or after this, such as 2026-01-31T12:00:00Z, or 2h for two hours ago", instantOption)
      .option("--until <time>", "made before this", instantOption)
      .option("-n, --limit <n>", `tasks at most (default: ${DEFAULT_LIMIT})`, integerOption)
      .action((options: ListOptions) =>
        run(async (session) => {
          const { type, status, resource, since, until, limit = DEFAULT_LIMIT } = options;
          const asked: TaskListOptions = {
            ...(type === undefined ? {} : { type }),
            // The store refuses what is none, and names those there are.
            ...(status === undefined ? {} : { status: status as TaskStatus }),
            ...(resource === undefined ? {} : { resource }),
            ...(since === undefined ? {} : { fromMs: since }),
            ...(until === undefined ? {} : { toMs: until }),
          };
          const tasks = new Tasks(await session.openStore());
          let count = 0;
          let page: Task[] = [];
          for await (const task of tasks.list({ ...asked, limit: Math.max(1, Math.min(limit + 1, MAX_PAGE_ITEMS)) })) {
            session.signal.throwIfAborted();
            if (count === limit) {
              await write(session, page);
              session.note(`there are more than ${limit}; -n lists more`);
              return 0;
            }
            count += 1;
            page.push(task);
            if (page.length < MAX_PAGE_ITEMS) continue;
            await write(session, page);
            page = [];
          }
          await write(session, page);
          if (count === 0 && !session.json) session.note("there are no such tasks");
          return 0;
        }),
      );
  },
};
