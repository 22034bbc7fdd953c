/** `queuefs dequeue` */

import { writeFile } from "node:fs/promises";
import type { Backend } from "../../backend/contract.ts";
import { EMPTY_JSON, messageJsonChunks } from "../../core/codec.ts";
import { EXIT_CODE_EMPTY, quote } from "../../core/errors.ts";
import { DEFAULT_PLAIN_LEASE_MS } from "../../core/limits.ts";
import type { DeliveredMessage } from "../../core/message.ts";
import type { QueueName } from "../../core/names.ts";
import { durationOption, integerOption, readQueue, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { messageLines } from "../message-lines.ts";
import type { Session } from "../session.ts";

interface DequeueCommandOptions {
  readonly limit?: number;
  readonly lease?: number;
  readonly requestId?: string;
  readonly raw?: boolean;
  readonly receiptFile?: string;
}

async function print(session: Session, deliveries: readonly DeliveredMessage[], options: DequeueCommandOptions): Promise<void> {
  // The receipts come first: with them the bytes can be had again or given back, without them not.
  if (options.receiptFile !== undefined)
    await writeFile(options.receiptFile, deliveries.map((delivery) => `${delivery.receipt}\n`).join(""), { mode: 0o600 });
  for (const [index, delivery] of deliveries.entries()) {
    if (options.raw === true) {
      if (options.receiptFile === undefined) session.note(`receipt ${delivery.receipt}`);
      await session.output.bytes(delivery.data);
    } else if (session.json) {
      await session.output.json(messageJsonChunks(delivery));
    } else {
      if (index > 0) await session.output.line("");
      for (const line of messageLines(session, delivery, [
        ["receipt", delivery.receipt],
        ["lease", formatDuration(delivery.leaseMs)],
      ]))
        await session.output.line(line);
    }
  }
  await session.output.flush();
}

/** Hands the deliveries over, and releases them when they cannot be. */
async function handOver(
  session: Session,
  backend: Backend,
  queue: QueueName,
  deliveries: readonly DeliveredMessage[],
  options: DequeueCommandOptions,
): Promise<void> {
  try {
    session.signal.throwIfAborted();
    await print(session, deliveries, options);
  } catch (error) {
    await backend.release(
      queue,
      deliveries.map((delivery) => delivery.receipt),
    );
    throw error;
  }
}

/** Takes messages. */
export const dequeue: CommandRow = {
  name: "dequeue",
  summary: "take messages, to be acknowledged with their receipts",
  description: `A message that is not acknowledged before its lease ends is delivered again. Exit code ${EXIT_CODE_EMPTY}: there is nothing to take now.`,
  examples: [
    {
      title: "Take a message, work on it, acknowledge it",
      lines: [
        "queuefs mkdir jobs",
        "queuefs enqueue jobs 'parse a.txt'",
        "queuefs dequeue jobs --raw --receipt-file receipt > message",
        "wc -c < message",
        'queuefs ack jobs "$(cat receipt)"',
      ],
    },
    {
      title: "Up to ten at once, as JSON lines, for an hour",
      lines: ["queuefs mkdir many", "seq 20 | queuefs enqueue many --lines", "queuefs dequeue many -n 10 --lease 1h --json"],
    },
  ],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .option("-n, --limit <n>", "messages at most, up to 1000 (default: 1)", integerOption)
      .option("--lease <duration>", `how long they may be held (default: ${formatDuration(DEFAULT_PLAIN_LEASE_MS)})`, durationOption)
      .option("--request-id <id>", "the same id again gets the same messages: for a repeat after a lost answer")
      .option("--raw", "write the bytes of the message and nothing else; the receipt goes to standard error")
      .option("--receipt-file <file>", "write the receipts to a file, one on each line")
      .action((name: string, options: DequeueCommandOptions) =>
        run(async (session) => {
          const queue = readQueue(name);
          if (options.raw === true && (options.limit ?? 1) !== 1)
            throw usageError("--raw writes one message, without any mark where it ends; leave out -n, or use --json");
          if (options.raw === true && session.json) throw usageError("choose --raw or --json");
          const backend = await session.openStore();
          const deliveries = await backend.dequeue(queue, {
            owner: "receipt",
            limit: options.limit ?? 1,
            leaseMs: options.lease ?? DEFAULT_PLAIN_LEASE_MS,
            ...(options.requestId === undefined ? {} : { requestId: options.requestId }),
          });
          if (deliveries.length === 0) {
            if (session.json) await session.output.line(EMPTY_JSON);
            session.note(`queue ${quote(queue)} has nothing to take now`);
            return EXIT_CODE_EMPTY;
          }
          await handOver(session, backend, queue, deliveries, options);
          return 0;
        }),
      );
  },
};
