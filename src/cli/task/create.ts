/** `queuefs task create` */

import type { Backend } from "../../backend/contract.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import { DEFAULT_PLAIN_LEASE_MS, MAX_BATCH_ITEMS } from "../../core/limits.ts";
import type { NewMessage } from "../../core/message.ts";
import { parseChosenTaskId } from "../../core/names.ts";
import type { Json } from "../../core/task.ts";
import { assertSameTask } from "../../task/index.ts";
import { durationOption, jsonOption, readQueue, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { checkSources, readMessages, type SourceOptions, takeMessages } from "../message-sources.ts";
import type { Session } from "../session.ts";
import { writeTask } from "./task-lines.ts";

interface CreateOptions extends SourceOptions {
  readonly id?: string;
  readonly resource?: string;
  readonly stage?: string;
  readonly meta?: { readonly value: Json };
  readonly into?: string;
  readonly open?: boolean;
  readonly lease?: number;
}

function check(texts: readonly string[], options: CreateOptions): void {
  checkSources(texts, options);
  const hasMessages = texts.length > 0 || options.lines === true || options.file !== undefined;
  if (options.into === undefined && (hasMessages || options.delay !== undefined))
    throw usageError("name the queue of the messages with --into");
  if (options.into === undefined && options.open !== true)
    throw usageError("a task without messages would end at once: give some, with --into, or leave it open for more, with --open");
  if (options.lease !== undefined && options.open !== true) throw usageError("--lease is for --open");
}

/** All messages, which have to fit into one step. */
async function gather(session: Session, backend: Backend, texts: readonly string[], options: CreateOptions): Promise<NewMessage[]> {
  const { maxMessageBytes } = backend.description;
  const isWholeInput = texts.length === 0 && options.lines !== true && options.file === undefined;
  const messages: NewMessage[] = [];
  let bytes = 0;
  for await (const data of readMessages(session, maxMessageBytes, texts, options)) {
    if (data === undefined) continue;
    // A forgotten TYPE makes the only message the type of the task, and leaves nothing to be one.
    if (isWholeInput && data.byteLength === 0) {
      throw usageError(
        "there is no message: none was given after TYPE, and standard input is empty; nothing was stored. " +
          "An empty message is given as '', and no message at all as --lines of nothing",
      );
    }
    bytes += data.byteLength;
    messages.push({ data, ...(options.delay === undefined ? {} : { delayMs: options.delay }) });
    if (messages.length > MAX_BATCH_ITEMS || (bytes > maxMessageBytes && messages.length > 1)) {
      throw new QueueFSError(
        "message-too-large",
        `a task is made with at most ${MAX_BATCH_ITEMS} messages and ${maxMessageBytes} bytes, in one step; nothing was stored. ` +
          "For more, make it with --open, add them with queuefs enqueue --task, and seal it",
      );
    }
  }
  return messages;
}

async function createTask(session: Session, type: string, texts: readonly string[], options: CreateOptions): Promise<void> {
  const { id, resource, stage, meta, open, lease = DEFAULT_PLAIN_LEASE_MS } = options;
  const queue = options.into === undefined ? undefined : readQueue(options.into);
  const task = {
    type,
    ...(id === undefined ? {} : { id: parseChosenTaskId(id) }),
    ...(resource === undefined ? {} : { resource }),
    ...(stage === undefined ? {} : { stage }),
    ...(meta === undefined ? {} : { meta: meta.value }),
    ...(open === true ? { producer: { leaseMs: lease, owner: "receipt" as const } } : {}),
  };
  const backend = await session.openStore();
  // A missing queue is told before anybody has typed or piped a message.
  if (queue !== undefined) await backend.status(queue);
  const messages = queue === undefined ? [] : await gather(session, backend, texts, options);
  const created = await backend.createTask(task, queue === undefined ? [] : [{ queue, messages }]);
  if (created.outcome === "exists") {
    assertSameTask(created.task, task);
    session.note(`task ${quote(id)} is there already (${created.task.status}); nothing was stored`);
  }
  if (session.json) await writeTask(session, created.task);
  else await session.output.line(created.task.id);
}

/** Makes a task. */
export const create: CommandRow = {
  name: "create",
  summary: "make a task with its messages, in one step, and print its id",
  description:
    "The messages are given as to queuefs enqueue: as arguments, with --lines or --file, or all of standard input as one. The task ends with the last of them, " +
    "and of what the programs that work on them enqueue. With --open it takes more messages (queuefs enqueue --task) and ends no earlier than it is sealed " +
    "(queuefs task seal); if that does not happen before the lease ends, it fails. The same --id again makes nothing and prints the id.",
  examples: [
    {
      title: "A task with one message for each line, waited for",
      lines: [
        "queuefs mkdir parse",
        "id=$(ls / | queuefs task create import --resource / --into parse --lines)",
        "queuefs work parse --until-complete -- wc -c",
        'queuefs task wait "$id"',
      ],
    },
    {
      title: "Messages that are found one after the other",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --open --lease 1h)",
        'for name in a b c; do queuefs enqueue parse "$name" --task "$id"; done',
        'queuefs task seal "$id"',
      ],
    },
  ],
  define(command, run) {
    takeMessages(command.argument("<type>", "what kind of work it is, such as import"))
      .option("--into <queue>", "the queue of the messages")
      .option("--id <id>", "id of the task; the same again makes nothing")
      .option("--resource <text>", "what it is about, such as a path or an address")
      .option("--stage <text>", "the step it begins with")
      .option("--meta <json>", "whatever is to be kept with it", jsonOption)
      .option("--open", "leave it open for more messages, until it is sealed")
      .option("--lease <duration>", `how long it may stay open (default: ${formatDuration(DEFAULT_PLAIN_LEASE_MS)})`, durationOption)
      .action((type: string, texts: string[], options: CreateOptions) =>
        run(async (session) => {
          check(texts, options);
          await createTask(session, type, texts, options);
          return 0;
        }),
      );
  },
};
