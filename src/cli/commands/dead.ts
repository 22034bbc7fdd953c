/** `queuefs dead` */

import type { Backend } from "../../backend/contract.ts";
import { formatTimestamp, messageJsonChunks } from "../../core/codec.ts";
import { QueueFSError } from "../../core/errors.ts";
import type { DeadLetter } from "../../core/message.ts";
import { type MessageId, parseMessageId, type QueueName } from "../../core/names.ts";
import { readQueue, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { writeMessageTable } from "../message-table.ts";
import type { Session } from "../session.ts";
import type { Column } from "../table.ts";
import { preview, visible } from "../visible.ts";

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "DELIVERIES", align: "right" },
  { title: "DIED" },
  { title: "REASON" },
  { title: "DATA" },
];
const REASON_WIDTH = 60;
const DATA_WIDTH = 30;
const ALL = "all";

type Step = (ids: readonly MessageId[]) => Promise<readonly string[]>;

function row(letter: DeadLetter): string[] {
  const reason = preview(new TextEncoder().encode(letter.reason), REASON_WIDTH);
  return [visible(letter.id), String(letter.deliveryCount), formatTimestamp(letter.diedAtMs), reason, preview(letter.data, DATA_WIDTH)];
}

async function* pages(session: Session, backend: Backend, queue: QueueName): AsyncGenerator<readonly DeadLetter[], void, void> {
  let after: string | undefined;
  do {
    session.signal.throwIfAborted();
    const page = await backend.deadLetters(queue, after === undefined ? {} : { after });
    yield page.items;
    after = page.next;
  } while (after !== undefined);
}

async function list(session: Session, backend: Backend, queue: QueueName): Promise<number> {
  let count = 0;
  for await (const letters of pages(session, backend, queue)) {
    count += letters.length;
    if (session.json) for (const letter of letters) await session.output.json(messageJsonChunks(letter));
    else await writeMessageTable(session, COLUMNS, letters, row);
    await session.output.flush();
  }
  if (count === 0 && !session.json) session.note(`queue ${JSON.stringify(queue)} has no dead letters`);
  return 0;
}

/** Does a step with the letters named, or with all, and prints what became of each. */
async function change(session: Session, backend: Backend, queue: QueueName, names: readonly string[], step: Step): Promise<number> {
  const missing: string[] = [];
  let count = 0;
  const doStep = async (ids: readonly MessageId[], mayBeMissing: boolean): Promise<void> => {
    if (ids.length === 0) return;
    for (const [index, outcome] of (await step(ids)).entries()) {
      const id = ids[index] as MessageId;
      // Another command may have dealt with it since the list was read.
      if (outcome === "not-found" && mayBeMissing) continue;
      if (outcome === "not-found") missing.push(id);
      count += 1;
      if (session.json) await session.jsonLine({ id, outcome });
      else await session.output.line(`${outcome} ${visible(id)}`);
    }
  };
  if (names.includes(ALL)) {
    if (names.length > 1) throw usageError(`name dead letters, or "${ALL}"`);
    for await (const letters of pages(session, backend, queue))
      await doStep(
        letters.map((letter) => letter.id),
        true,
      );
  } else {
    await doStep(names.map(parseMessageId), false);
  }
  if (missing.length === 0) return 0;
  await session.output.flush();
  throw new QueueFSError(
    "message-not-found",
    `${missing.length} of ${count} are no dead letters of queue ${JSON.stringify(queue)}: ${missing
      .slice(0, 3)
      .map((id) => JSON.stringify(id))
      .join(", ")}${missing.length > 3 ? ", …" : ""}`,
  );
}

/** Lists, redrives and drops dead letters. */
export const dead: CommandRow = {
  name: "dead",
  summary: "list the messages that were given up on, try them again or drop them",
  examples: [
    {
      title: "Give a message up, look at it, try it again",
      lines: [
        "queuefs mkdir jobs",
        "queuefs enqueue jobs 'parse a.txt'",
        "queuefs dequeue jobs --receipt-file receipt",
        "queuefs nack jobs \"$(cat receipt)\" --give-up --reason 'no such file'",
        "queuefs dead jobs",
        "queuefs dead jobs --redrive all",
      ],
    },
  ],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .option("--redrive <id...>", "make these pending again, at their old places; all for all")
      .option("--drop <id...>", "remove these for good; all for all")
      .action((name: string, options: { readonly redrive?: string[]; readonly drop?: string[] }) =>
        run(async (session) => {
          const queue = readQueue(name);
          if (options.redrive !== undefined && options.drop !== undefined) throw usageError("choose --redrive or --drop");
          const backend = await session.openStore();
          if (options.redrive !== undefined) return change(session, backend, queue, options.redrive, (ids) => backend.redrive(queue, ids));
          if (options.drop !== undefined) return change(session, backend, queue, options.drop, (ids) => backend.drop(queue, ids));
          return list(session, backend, queue);
        }),
      );
  },
};
