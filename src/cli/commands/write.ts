/** `queuefs write` */

import type { FileHandle, WriteAnswer } from "../../fs/port.ts";
import { readPath } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { inputPieces } from "../input.ts";
import type { Session } from "../session.ts";

async function copyIn(session: Session, handle: FileHandle, text: string | undefined): Promise<WriteAnswer> {
  try {
    if (text !== undefined) {
      await handle.write(new TextEncoder().encode(text));
    } else {
      // A write of nothing is a write too: it stores an empty message.
      await handle.write(new Uint8Array());
      for await (const piece of inputPieces(session)) await handle.write(piece);
    }
  } catch (error) {
    await handle.discard();
    throw error;
  }
  return handle.close();
}

/** Writes a control file. */
export const write: CommandRow = {
  name: "write",
  summary: "write a control file of a queue, such as /jobs/enqueue",
  description: "Without a text, all of standard input is written, byte for byte.",
  examples: [
    {
      title: "A message through the file face",
      lines: ["queuefs mkdir jobs", "printf 'parse a.txt' | queuefs write /jobs/enqueue", "queuefs write /jobs/clear ''"],
    },
  ],
  define(command, run) {
    command
      .argument("<path>", "path of a control file")
      .argument("[text]", "what to write; standard input if absent")
      .action((path: string, text: string | undefined) =>
        run(async (session) => {
          const backend = await session.openStore();
          const { QueueFS } = await import("../../fs/queue-fs.ts");
          await using files = new QueueFS(backend, { onError: (error) => session.note(String(error)) });
          const answer = await copyIn(session, await files.open(readPath(path), { mode: "write" }), text);
          if (session.json) await session.jsonLine({ path: readPath(path), ...(answer.id === undefined ? {} : { id: answer.id }) });
          else if (answer.id !== undefined) await session.output.line(answer.id);
          return 0;
        }),
      );
  },
};
