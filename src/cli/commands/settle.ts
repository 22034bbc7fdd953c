/** `queuefs ack`, `nack`, `release` and `extend`: what a consumer says of its deliveries. */

import { QueueFSError } from "../../core/errors.ts";
import { DEFAULT_PLAIN_LEASE_MS } from "../../core/limits.ts";
import { type MessageId, parseMessageId, parseReceipt, type Receipt } from "../../core/names.ts";
import { durationOption, readQueue } from "../arguments.ts";
import type { CommandRow, Example } from "../command.ts";
import { formatDuration } from "../duration.ts";
import type { Session } from "../session.ts";
import { visible } from "../visible.ts";

type Settled = { readonly receipt: Receipt; readonly outcome: string } | { readonly id: MessageId; readonly outcome: string };

const FAILED: ReadonlySet<string> = new Set(["stale", "not-in-processing"]);

/** Prints what became of each, and fails when any of them was not current. */
async function report(session: Session, settled: readonly Settled[]): Promise<number> {
  const failed: string[] = [];
  for (const item of settled) {
    const name = "receipt" in item ? item.receipt : item.id;
    if (FAILED.has(item.outcome)) failed.push(name);
    if (session.json) await session.jsonLine(item);
    else await session.output.line(`${item.outcome} ${visible(name)}`);
  }
  if (failed.length === 0) return 0;
  await session.output.flush();
  throw new QueueFSError(
    "not-in-processing",
    `${failed.length} of ${settled.length} changed nothing (${failed
      .slice(0, 3)
      .map((name) => JSON.stringify(name))
      .join(", ")}${failed.length > 3 ? ", …" : ""}): ` +
      "the receipt is stale, or no message of that id is in processing; it was settled before, its lease ended, or it was never taken",
  );
}

function delivered(...lines: string[]): readonly string[] {
  return ["queuefs mkdir jobs", "queuefs enqueue jobs 'parse a.txt'", "queuefs dequeue jobs --receipt-file receipt", ...lines];
}

const ACK_EXAMPLES: readonly Example[] = [
  { title: "By the receipt of the delivery", lines: delivered('queuefs ack jobs "$(cat receipt)"') },
  {
    title: "By the id of the message",
    lines: ["queuefs mkdir notes", "queuefs enqueue notes hello --id note-1", "queuefs dequeue notes", "queuefs ack notes note-1"],
  },
];

/** Acknowledges messages. */
export const ack: CommandRow = {
  name: "ack",
  summary: "acknowledge messages: they are done and removed",
  description:
    "A receipt removes the message only if that delivery is the current one, an id only if the message is in processing; a pending message is never removed.",
  examples: ACK_EXAMPLES,
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("<receipt-or-id...>", "receipts (r-…) or message ids")
      .action((name: string, names: string[]) =>
        run(async (session) => {
          const queue = readQueue(name);
          // No id begins like a receipt, so each text is one or the other.
          const receipts = names.filter((text) => text.startsWith("r-")).map(parseReceipt);
          const ids = names.filter((text) => !text.startsWith("r-")).map(parseMessageId);
          const backend = await session.openStore();
          const acked =
            receipts.length > 0
              ? await backend.ack(
                  queue,
                  receipts.map((receipt) => ({ receipt })),
                )
              : [];
          const ackedById = ids.length > 0 ? await backend.ackById(queue, ids) : [];
          return report(session, [
            ...acked.map((answer, index): Settled => ({ receipt: receipts[index] as Receipt, outcome: answer.outcome })),
            ...ackedById.map((outcome, index): Settled => ({ id: ids[index] as MessageId, outcome })),
          ]);
        }),
      );
  },
};

interface NackCommandOptions {
  readonly delay?: number;
  readonly reason?: string;
  readonly giveUp?: boolean;
}

/** Gives messages back after a failure. */
export const nack: CommandRow = {
  name: "nack",
  summary: "give messages back after a failure, to be tried again",
  examples: [
    { title: "Try again in five minutes", lines: delivered("queuefs nack jobs \"$(cat receipt)\" --delay 5m --reason 'server was busy'") },
  ],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("<receipt...>", "receipts of deliveries")
      .option("--delay <duration>", "not to be delivered again before, such as 30s or 2h", durationOption)
      .option("--reason <text>", "why it failed, kept with the message")
      .option("--give-up", "do not try again: move to the dead letters")
      .action((name: string, names: string[], options: NackCommandOptions) =>
        run(async (session) => {
          const queue = readQueue(name);
          const receipts = names.map(parseReceipt);
          const backend = await session.openStore();
          const outcomes = await backend.nack(
            queue,
            receipts.map((receipt) => ({
              receipt,
              giveUp: options.giveUp === true,
              ...(options.delay === undefined ? {} : { delayMs: options.delay }),
              ...(options.reason === undefined ? {} : { reason: options.reason }),
            })),
          );
          return report(
            session,
            outcomes.map((outcome, index) => ({ receipt: receipts[index] as Receipt, outcome })),
          );
        }),
      );
  },
};

/** Gives messages back without a failure. */
export const release: CommandRow = {
  name: "release",
  summary: "give messages back as if they had not been taken",
  examples: [{ title: "Give a message back", lines: delivered('queuefs release jobs "$(cat receipt)"') }],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("<receipt...>", "receipts of deliveries")
      .action((name: string, names: string[]) =>
        run(async (session) => {
          const queue = readQueue(name);
          const receipts = names.map(parseReceipt);
          const backend = await session.openStore();
          const outcomes = await backend.release(queue, receipts);
          return report(
            session,
            outcomes.map((outcome, index) => ({ receipt: receipts[index] as Receipt, outcome })),
          );
        }),
      );
  },
};

/** Renews leases. */
export const extend: CommandRow = {
  name: "extend",
  summary: "hold messages for longer",
  examples: [{ title: "Another hour from now", lines: delivered('queuefs extend jobs "$(cat receipt)" --lease 1h') }],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .argument("<receipt...>", "receipts of deliveries")
      .option("--lease <duration>", `how long from now (default: ${formatDuration(DEFAULT_PLAIN_LEASE_MS)})`, durationOption)
      .action((name: string, names: string[], options: { readonly lease?: number }) =>
        run(async (session) => {
          const queue = readQueue(name);
          const receipts = names.map(parseReceipt);
          const backend = await session.openStore();
          const leaseMs = options.lease ?? DEFAULT_PLAIN_LEASE_MS;
          const outcomes = await backend.extend(
            queue,
            receipts.map((receipt) => ({ receipt, leaseMs })),
          );
          return report(
            session,
            outcomes.map((outcome, index) => ({ receipt: receipts[index] as Receipt, outcome })),
          );
        }),
      );
  },
};
