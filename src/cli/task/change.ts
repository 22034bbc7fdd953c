/** `queuefs task cancel`, `retry`, `remove`, `update` and `seal`. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { parseTaskId } from "../../core/names.ts";
import type { Json, Task } from "../../core/task.ts";
import { PRODUCER_GONE } from "../../core/task-request.ts";
import { Tasks } from "../../task/index.ts";
import { durationOption, jsonOption, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { followTask } from "./follow.ts";
import { whereOf, writeTask } from "./task-lines.ts";

function made(...lines: string[]): readonly string[] {
  return ["queuefs mkdir parse", "id=$(queuefs task create import --into parse a.txt b.txt)", ...lines];
}

/** Cancels a task. */
export const cancel: CommandRow = {
  name: "cancel",
  summary: "cancel a task: its pending messages are removed, and it takes no more",
  description:
    "Programs that queuefs work runs on its messages are told to end. It is cancelling until what is in processing is settled. A task that has ended stays as it is.",
  examples: [{ title: "No longer wanted", lines: made("queuefs task cancel \"$id\" --reason 'no longer wanted'") }],
  define(command, run) {
    command
      .argument("<id>", "the task")
      .option("--reason <text>", "why, kept with the task")
      .action((given: string, options: { readonly reason?: string }) =>
        run(async (session) => {
          const id = parseTaskId(given);
          const tasks = new Tasks(await session.openStore());
          const task = await tasks.cancel(id, options);
          await writeTask(session, task);
          if (task.status !== "cancelled" && task.status !== "cancelling")
            session.note(`task ${quote(id)} had ended before; nothing was cancelled`);
          return 0;
        }),
      );
  },
};

/** Tries the failed messages of a task again. */
export const retry: CommandRow = {
  name: "retry",
  summary: "try the failed messages of a task again, and print the id of the task that owns them now",
  description:
    "Of a task that has ended a new one is made, of the same type, resource and meta; the old one stays as it ended. Of one that goes on, the messages become its own again.",
  examples: [
    {
      title: "Try again what failed",
      lines: made(
        "queuefs work parse --until-complete -- sh -c 'exit 65'",
        'again=$(queuefs task retry "$id")',
        "queuefs work parse --until-complete -- wc -c",
        'queuefs task wait "$again"',
      ),
    },
  ],
  define(command, run) {
    command
      .argument("<id>", "the task")
      .option("--wait", "wait for the end of the task that owns them now, as queuefs task wait does")
      .option("--timeout <duration>", "of --wait: give up after this time", durationOption)
      .action((given: string, options: { readonly wait?: boolean; readonly timeout?: number }) =>
        run(async (session) => {
          const id = parseTaskId(given);
          if (options.timeout !== undefined && options.wait !== true) throw usageError("--timeout is for --wait");
          const backend = await session.openStore();
          const task = await new Tasks(backend).retry(id);
          if (session.json) await writeTask(session, task);
          else await session.output.line(task.id);
          await session.output.flush();
          if (options.wait === true) await followTask(session, backend, task.id, options.timeout);
          return 0;
        }),
      );
  },
};

/** Removes tasks. */
export const remove: CommandRow = {
  name: "remove",
  summary: "remove the records of tasks that have ended",
  description: "Their dead letters stay with their queues. Tasks that have ended are removed by themselves after a while.",
  examples: [{ title: "A task that was cancelled", lines: made('queuefs task cancel "$id"', 'queuefs task remove "$id"') }],
  define(command, run) {
    command.argument("<id...>", "tasks").action((given: string[]) =>
      run(async (session) => {
        const ids = given.map(parseTaskId);
        const tasks = new Tasks(await session.openStore());
        for (const id of ids) {
          await tasks.remove(id);
          if (session.json) await session.jsonLine({ id, outcome: "removed" });
          else await session.output.line(`removed ${id}`);
        }
        return 0;
      }),
    );
  },
};

interface UpdateOptions {
  readonly stage?: string;
  readonly meta?: { readonly value: Json };
  readonly result?: { readonly value: Json };
}

/** Changes what is said of a task. */
export const update: CommandRow = {
  name: "update",
  summary: "say in which step a task is, or what came out of it",
  examples: [
    {
      title: "What a program says while it works",
      lines: made('queuefs task update "$id" --stage parsing --result \'{"pages":12}\''),
    },
  ],
  define(command, run) {
    command
      .argument("<id>", "the task")
      .option("--stage <text>", "the step it is in")
      .option("--meta <json>", "whatever is kept with it", jsonOption)
      .option("--result <json>", "what came out of it", jsonOption)
      .action((given: string, options: UpdateOptions) =>
        run(async (session) => {
          const id = parseTaskId(given);
          const { stage, meta, result } = options;
          if (stage === undefined && meta === undefined && result === undefined)
            throw usageError("say what is to change: --stage, --meta or --result");
          const change = {
            ...(stage === undefined ? {} : { stage }),
            ...(meta === undefined ? {} : { meta: meta.value }),
            ...(result === undefined ? {} : { result: result.value }),
          };
          const tasks = new Tasks(await session.openStore());
          await writeTask(session, await tasks.update(id, change), "updated");
          return 0;
        }),
      );
  },
};

/** Why a task takes no seal. */
function notSealed({ id, status, error }: Task): QueueFSError {
  const why = error === undefined ? "" : `: ${error.reason}${whereOf(error)}`;
  const told = (words: string): QueueFSError => new QueueFSError("task-ended", `task ${quote(id)} ${words}${why}; nothing changed`);
  if (status === "cancelling" || status === "cancelled") return told("was cancelled");
  if (error?.reason === PRODUCER_GONE) return told(`was not sealed in time, and is ${status}`);
  // A message that failed first hides whether the lease ended after it.
  return told(error?.queue === undefined ? `was sealed before, and is ${status}` : `was sealed before, or not in time, and is ${status}`);
}

/** Seals a task. */
export const seal: CommandRow = {
  name: "seal",
  summary: "say that no more messages are added to a task, so that it can end",
  description: "Exit code 20: it was sealed before, was cancelled, or its lease has ended; nothing changed.",
  examples: [
    {
      title: "Add messages, then seal",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --open)",
        'queuefs enqueue parse a.txt --task "$id"',
        'queuefs task seal "$id"',
      ],
    },
  ],
  define(command, run) {
    command
      .argument("<id>", "the task")
      .option("--error <text>", "why not all could be added: the task fails once its messages are settled")
      .action((given: string, options: { readonly error?: string }) =>
        run(async (session) => {
          const id = parseTaskId(given);
          const backend = await session.openStore();
          const { outcome, task } = await backend.sealTask(id, options);
          if (outcome === "sealed") {
            await writeTask(session, task, "sealed");
            return 0;
          }
          throw notSealed(task);
        }),
      );
  },
};
