/** `queuefs cat` */

import type { FileHandle } from "../../fs/port.ts";
import { readPath } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import type { Session } from "../session.ts";

const PIECE_BYTES = 1024 * 1024;

async function copyOut(session: Session, handle: FileHandle): Promise<void> {
  try {
    for (;;) {
      const piece = await handle.read({ length: PIECE_BYTES, signal: session.signal });
      if (piece.byteLength === 0) break;
      await session.output.bytes(piece);
    }
    await session.output.flush();
  } catch (error) {
    // A message whose bytes did not arrive must not stay claimed.
    await handle.discard();
    throw error;
  }
  await handle.close();
}

/** Reads a control file. */
export const cat: CommandRow = {
  name: "cat",
  summary: "read a control file of a queue, such as /jobs/status",
  description: "A read of dequeue takes a message, as the command dequeue does. What the files give is always JSON or a number.",
  examples: [{ title: "The status as a file", lines: ["queuefs mkdir jobs", "queuefs cat /jobs/status"] }],
  define(command, run) {
    command.argument("<path>", "path of a control file").action((path: string) =>
      run(async (session) => {
        const backend = await session.openStore();
        const { QueueFS } = await import("../../fs/queue-fs.ts");
        await using files = new QueueFS(backend, { onError: (error) => session.note(String(error)) });
        await copyOut(session, await files.open(readPath(path), { mode: "read" }));
        return 0;
      }),
    );
  },
};
