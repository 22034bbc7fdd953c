/** `queuefs messages` */

import { messageJsonChunks } from "../../core/codec.ts";
import type { ListedMessage, Page } from "../../core/message.ts";
import { integerOption, readQueue } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { writeMessageTable } from "../message-table.ts";
import type { Session } from "../session.ts";
import type { Column } from "../table.ts";
import { preview, visible } from "../visible.ts";

const COLUMNS: readonly Column[] = [
  { title: "ID" },
  { title: "STATE" },
  { title: "DELIVERIES", align: "right" },
  { title: "AGE", align: "right" },
  { title: "BYTES", align: "right" },
  { title: "DATA" },
];
const DATA_WIDTH = 40;

function row(message: ListedMessage): string[] {
  return [
    visible(message.id),
    message.state,
    String(message.deliveryCount),
    formatDuration(Date.now() - message.enqueuedAtMs),
    String(message.data.byteLength),
    preview(message.data, DATA_WIDTH),
  ];
}

async function printPage(session: Session, page: Page<ListedMessage>): Promise<void> {
  if (session.json) for (const message of page.items) await session.output.json(messageJsonChunks(message));
  else await writeMessageTable(session, COLUMNS, page.items, row);
  await session.output.flush();
}

/** Lists the unacked messages. */
export const messages: CommandRow = {
  name: "messages",
  summary: "list the unacknowledged messages in their order",
  description: "Nothing changes. The list is read page by page, each page as of one moment.",
  examples: [{ title: "The first two", lines: ["queuefs mkdir jobs", "queuefs enqueue jobs a b c", "queuefs messages jobs -n 2"] }],
  define(command, run) {
    command
      .argument("<queue>", "the queue")
      .option("-n, --limit <n>", "messages at most (default: all)", integerOption)
      .action((name: string, options: { readonly limit?: number }) =>
        run(async (session) => {
          const queue = readQueue(name);
          const backend = await session.openStore();
          let left = options.limit ?? Number.POSITIVE_INFINITY;
          let after: string | undefined;
          do {
            session.signal.throwIfAborted();
            const page = await backend.messages(queue, {
              limit: Math.max(1, Math.min(100, left)),
              ...(after === undefined ? {} : { after }),
            });
            if (left > 0) await printPage(session, page);
            left -= page.items.length;
            after = page.next;
          } while (after !== undefined && left > 0);
          return 0;
        }),
      );
  },
};
