/** `queuefs status` */

import type { Backend } from "../../backend/contract.ts";
import { formatTimestamp } from "../../core/codec.ts";
import { isComplete, type QueueSelection, type QueueStatus } from "../../core/message.ts";
import { readSelection } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import type { Session } from "../session.ts";
import { statusLines, totalOf, writeStatuses } from "../status-table.ts";
import { visible } from "../visible.ts";
import { watchStatuses } from "../watch-statuses.ts";

const UP_AND_ERASE = (lines: number): string => (lines > 0 ? `\u001b[${lines}A\u001b[J` : "");
// Without a cursor, and with long lines cut: a line that took two rows would not be drawn over again.
const BEGIN = "\u001b[?25l\u001b[?7l";
const END = "\u001b[?7h\u001b[?25h";

/** At most as many lines as the terminal has, since only those can be drawn over again. The verdict, the last line, stays. */
function fitted(lines: readonly string[], rows: number): readonly string[] {
  const room = Math.max(4, rows - 1);
  if (lines.length <= room) return lines;
  const hidden = lines.length - room + 1;
  return [...lines.slice(0, room - 3), `… ${hidden} more`, ...lines.slice(-2)];
}

/** Draws each snapshot over the one before. */
async function watchOnTerminal(session: Session, backend: Backend, selection: QueueSelection): Promise<never> {
  const { output } = session;
  let drawn = 0;
  let failure = "";
  await output.text(BEGIN);
  try {
    return await watchStatuses(backend, selection, session.signal, {
      async onSnapshot(statuses) {
        failure = "";
        const lines = fitted([...(await statusLines(session, statuses))], output.rows);
        await output.text(`${UP_AND_ERASE(drawn)}${lines.join("\n")}\n`);
        await output.flush();
        drawn = lines.length;
      },
      onFailure(error) {
        // Said once, below the last snapshot, which stays as what was known.
        if (failure === error.message) return;
        failure = error.message;
        session.note(error.message);
        drawn = 0;
      },
    });
  } finally {
    await output
      .text(END)
      .then(() => output.flush())
      .catch(() => {});
  }
}

/** Writes a line for each snapshot that differs from the one before. */
async function watchInPipe(session: Session, backend: Backend, selection: QueueSelection): Promise<never> {
  let last = "";
  return watchStatuses(backend, selection, session.signal, {
    async onSnapshot(statuses) {
      const queues = statuses.map(({ queue, pending, processing }) => ({ queue, pending, processing }));
      const text = JSON.stringify(queues);
      if (text === last) return;
      last = text;
      const at = formatTimestamp(Date.now());
      if (session.json) await session.jsonLine({ at, complete: isComplete(statuses), queues });
      else await session.output.line(lineOf(at, statuses));
      await session.output.flush();
    },
    onFailure: (error) => session.note(error.message),
  });
}

function lineOf(at: string, statuses: readonly QueueStatus[]): string {
  const { pending, processing } = totalOf(statuses);
  const each =
    statuses.length > 1 ? `  ${statuses.map((status) => `${visible(status.queue)}=${status.pending}/${status.processing}`).join(" ")}` : "";
  return `${at}  pending ${pending}  processing ${processing}${isComplete(statuses) ? "  complete" : ""}${each}`;
}

/** Shows the status of queues in one snapshot. */
export const status: CommandRow = {
  name: "status",
  summary: "show pending and processing of queues, all read in one step",
  description: "Complete means that both are zero in all of them at one moment. Without names it shows all queues.",
  examples: [
    {
      title: "Two queues in one snapshot",
      lines: ["queuefs mkdir parse index", "queuefs enqueue parse a b c", "queuefs status parse index"],
    },
    { title: "All queues under a path, as JSON", lines: ["queuefs mkdir imports/a imports/b", "queuefs status --under imports --json"] },
  ],
  define(command, run) {
    command
      .argument("[queue...]", "queues; all if there are none")
      .option("--under <path>", "all queues at and under a path")
      .option("-w, --watch", "go on, showing each change, until Ctrl-C")
      .action((names: string[], options: { readonly under?: string; readonly watch?: boolean }) =>
        run(async (session) => {
          const selection = readSelection(names, options.under);
          const backend = await session.openStore();
          if (options.watch === true) {
            return session.output.isTerminal && !session.json
              ? watchOnTerminal(session, backend, selection)
              : watchInPipe(session, backend, selection);
          }
          await writeStatuses(session, await backend.statuses(selection));
          return 0;
        }),
      );
  },
};
