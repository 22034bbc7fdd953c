/** `queuefs enqueue` */

import type { Command } from "commander";
import type { Backend } from "../../backend/contract.ts";
import { QueueFSError, taskEnded } from "../../core/errors.ts";
import type { EnqueueAnswer } from "../../core/message.ts";
import { parseChosenMessageId, type QueueName, type TaskId } from "../../core/names.ts";
import { isTerminal } from "../../core/task.ts";
import { readQueue, usageError } from "../arguments.ts";
import { BatchSender } from "../batch-sender.ts";
import type { CommandRow } from "../command.ts";
import { checkSources, mayBeMany, readMessages, type SourceOptions, takeMessages } from "../message-sources.ts";
import { OutputClosedError } from "../output.ts";
import type { Session } from "../session.ts";
import { TASK_VARIABLE } from "../task-option.ts";

interface EnqueueCommandOptions extends SourceOptions {
  readonly id?: string;
  /** `false`: detached from the task of the environment. */
  readonly task?: string | false;
}

/** Refuses both: commander would keep the one that came last, and say nothing. */
function refuseBoth(command: Command, one: string, other: string): void {
  const given = new Set<string>();
  for (const name of [one, other]) {
    command.on(`option:${name}`, () => {
      given.add(name);
      if (given.size === 2) throw usageError(`give --${one} or --${other}, not both`);
    });
  }
}

/** Prints the answers, and counts what was stored. The work goes on when nobody reads the ids any more. */
class AnswerPrinter {
  stored = 0;
  readonly conflicts: string[] = [];
  readonly #session: Session;
  #closed = false;

  constructor(session: Session) {
    this.#session = session;
  }

  async print(answers: readonly EnqueueAnswer[]): Promise<void> {
    for (const answer of answers) {
      if (answer.outcome === "conflict") this.conflicts.push(answer.id);
      else this.stored += 1;
    }
    if (this.#closed) return;
    try {
      for (const answer of answers) {
        if (this.#session.json) await this.#session.jsonLine({ id: answer.id, outcome: answer.outcome });
        else if (answer.outcome !== "conflict") await this.#session.output.line(answer.id);
      }
      await this.#session.output.flush();
    } catch (error) {
      if (!(error instanceof OutputClosedError)) throw error;
      this.#closed = true;
    }
  }
}

function check(texts: readonly string[], options: EnqueueCommandOptions): void {
  checkSources(texts, options);
  if (options.id !== undefined && mayBeMany(texts, options)) throw usageError("--id names one message; enqueue the others by themselves");
  if (options.id !== undefined) parseChosenMessageId(options.id);
}

/** Sends what the command line asks for. */
async function send(
  sender: BatchSender,
  messages: AsyncIterable<Uint8Array | undefined>,
  { id, delay }: EnqueueCommandOptions,
  task: TaskId | undefined,
): Promise<void> {
  const about = {
    ...(id === undefined ? {} : { id: parseChosenMessageId(id) }),
    ...(delay === undefined ? {} : { delayMs: delay }),
    ...(task === undefined ? {} : { task }),
  };
  for await (const data of messages) {
    if (data === undefined) sender.offer();
    else await sender.add({ data, ...about });
  }
}

async function checkGoesOn(backend: Backend, id: TaskId): Promise<void> {
  const { status } = await backend.task(id);
  if (status === "cancelling" || isTerminal(status)) throw taskEnded(id, status);
}

async function enqueueAll(session: Session, queue: QueueName, texts: readonly string[], options: EnqueueCommandOptions): Promise<number> {
  const task = session.taskOf(options.task);
  const backend = await session.openStore();
  // A missing queue, and a task that takes no more, are told before anybody has typed or piped a message.
  await backend.status(queue);
  if (task !== undefined) await checkGoesOn(backend, task);
  const printer = new AnswerPrinter(session);
  const sender = new BatchSender(backend, queue, (answers) => printer.print(answers));
  let failure: { readonly error: unknown } | undefined;
  try {
    await send(sender, readMessages(session, backend.description.maxMessageBytes, texts, options), options, task);
  } catch (error) {
    failure = { error };
  }
  try {
    // What was taken before the failure is stored all the same, so that the number told is right.
    await sender.finish();
  } catch (error) {
    failure ??= { error };
  }
  if (failure !== undefined) {
    if (printer.stored > 0)
      session.note(`not finished: ${printer.stored} ${printer.stored === 1 ? "message was" : "messages were"} stored`);
    throw failure.error;
  }
  const [conflict] = printer.conflicts;
  if (conflict !== undefined) {
    throw new QueueFSError(
      "id-conflict",
      `message id ${JSON.stringify(conflict)} was used before with other bytes; nothing was stored under it; choose another id`,
    );
  }
  return 0;
}

/** Stores messages. */
export const enqueue: CommandRow = {
  name: "enqueue",
  summary: "store messages and print their ids",
  description:
    "Each argument is a message, byte for byte. Without arguments all of standard input is one message; with --lines each of its lines is one, " +
    "sent while they come. A message that begins with a dash goes after --. What a program of queuefs work enqueues belongs to the task of its message.",
  examples: [
    { title: "Two messages", lines: ["queuefs mkdir jobs", "queuefs enqueue jobs 'parse a.txt' 'parse b.txt'"] },
    { title: "One message for each line of another program", lines: ["queuefs mkdir files", "ls / | queuefs enqueue files --lines"] },
    {
      title: "A file, with an id that makes a repeat harmless",
      lines: ["queuefs mkdir docs", "echo hello > note.txt", "queuefs enqueue docs --file note.txt --id note-1"],
    },
    {
      title: "For a task that is open",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --open)",
        'ls / | queuefs enqueue parse --lines --task "$id"',
        'queuefs task seal "$id"',
      ],
    },
  ],
  define(command, run) {
    refuseBoth(command, "task", "no-task");
    takeMessages(command.argument("<queue>", "the queue"))
      .option("--id <id>", "id of the message; the same again stores nothing")
      .option("--task <id>", `the task that is to own the messages (default: $${TASK_VARIABLE}, if that is set)`)
      .option("--no-task", "no task, whatever the environment says")
      .action((name: string, texts: string[], options: EnqueueCommandOptions) =>
        run(async (session) => {
          const queue = readQueue(name);
          check(texts, options);
          return enqueueAll(session, queue, texts, options);
        }),
      );
  },
};
