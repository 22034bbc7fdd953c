/** `queuefs enqueue` */

import type { Backend } from "../../backend/contract.ts";
import { QueueFSError } from "../../core/errors.ts";
import type { EnqueueAnswer, NewMessage } from "../../core/message.ts";
import { parseChosenMessageId, type QueueName } from "../../core/names.ts";
import { durationOption, readQueue, usageError } from "../arguments.ts";
import { BatchSender } from "../batch-sender.ts";
import type { CommandRow } from "../command.ts";
import { inputPieces, readInput, readMessageFile, splitLines } from "../input.ts";
import { OutputClosedError } from "../output.ts";
import type { Session } from "../session.ts";

interface EnqueueCommandOptions {
  readonly lines?: boolean;
  readonly file?: readonly string[];
  readonly id?: string;
  readonly delay?: number;
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

/** Sends what the command line asks for. */
async function send(
  session: Session,
  backend: Backend,
  sender: BatchSender,
  texts: readonly string[],
  options: EnqueueCommandOptions,
): Promise<void> {
  const { maxMessageBytes } = backend.description;
  const message = (data: Uint8Array): NewMessage => ({
    data,
    ...(options.id === undefined ? {} : { id: parseChosenMessageId(options.id) }),
    ...(options.delay === undefined ? {} : { delayMs: options.delay }),
  });
  if (options.lines === true) {
    for await (const line of splitLines(inputPieces(session), maxMessageBytes)) {
      if (line === undefined) sender.offer();
      else await sender.add(message(line));
    }
  } else if (options.file !== undefined) {
    for (const path of options.file) {
      session.signal.throwIfAborted();
      await sender.add(message(await readMessageFile(path, maxMessageBytes)));
    }
  } else if (texts.length > 0) {
    for (const text of texts) await sender.add(message(new TextEncoder().encode(text)));
  } else {
    await sender.add(message(await readInput(session, maxMessageBytes)));
  }
}

function checkSources(texts: readonly string[], options: EnqueueCommandOptions): void {
  const sources = [texts.length > 0, options.lines === true, options.file !== undefined].filter(Boolean).length;
  if (sources > 1) throw usageError("give messages as arguments, with --file or with --lines: one of the three");
  const many = texts.length > 1 || options.lines === true || (options.file?.length ?? 0) > 1;
  if (options.id !== undefined && many) throw usageError("--id names one message; enqueue the others by themselves");
  if (options.id !== undefined) parseChosenMessageId(options.id);
}

async function enqueueAll(session: Session, queue: QueueName, texts: readonly string[], options: EnqueueCommandOptions): Promise<number> {
  const backend = await session.openStore();
  // A missing queue is told before anybody has typed or piped a message.
  await backend.status(queue);
  const printer = new AnswerPrinter(session);
  const sender = new BatchSender(backend, queue, (answers) => printer.print(answers));
  let failure: { readonly error: unknown } | undefined;
  try {
    await send(session, backend, sender, texts, options);
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
    "sent while they come. A message that begins with a dash goes after --.",
  examples: [
    { title: "Two messages", lines: ["queuefs mkdir jobs", "queuefs enqueue jobs 'parse a.txt' 'parse b.txt'"] },
    { title: "One message for each line of another program", lines: ["queuefs mkdir files", "ls / | queuefs enqueue files --lines"] },
    {
      title: "A file, with an id that makes a repeat harmless",
      lines: ["queuefs mkdir docs", "echo hello > note.txt", "queuefs enqueue docs --file note.txt --id note-1"],
    },
  ],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("[message...]", "messages; standard input if there are none")
      .option("--lines", "one message for each line of standard input")
      .option("--file <file...>", "one message for each file")
      .option("--id <id>", "id of the message; the same again stores nothing")
      .option("--delay <duration>", "not to be delivered before, such as 30s or 2h", durationOption)
      .action((name: string, texts: string[], options: EnqueueCommandOptions) =>
        run(async (session) => {
          const queue = readQueue(name);
          checkSources(texts, options);
          return enqueueAll(session, queue, texts, options);
        }),
      );
  },
};
