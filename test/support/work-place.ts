/** Where programs of `queuefs work` are watched: gates that hold them without any sleeping, and pipes that tell when the last has gone. */

import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import type { ListedMessage, Status } from "../../src/core/message.ts";
import { parseMessageId, parseQueueName } from "../../src/core/names.ts";
import { type CommandLine, openCommandLine, PROGRAM } from "./command-line.ts";

/** `queuefs` for lines of a shell. */
export const QUEUEFS = `'${process.execPath}' '${PROGRAM}'`;

/** A named pipe that holds programs: `read go < NAME` ends once somebody is let pass. */
export interface Gate {
  /** Lets so many programs pass, those that come later included. */
  pass(programs: number): void;
}

/** A folder with a store, which has one queue, `q`. */
export interface WorkPlace {
  readonly cli: CommandLine;
  /** The same store, opened by the test. */
  readonly backend: Backend;
  /** Stores messages with the ids 0, 1, 2, … */
  enqueue(...payloads: readonly (string | Uint8Array)[]): Promise<void>;
  status(queue?: string): Promise<Status>;
  messages(): Promise<readonly ListedMessage[]>;
  /** Makes a gate. When the test is over, programs that are still before it find that reading fails. */
  gate(name: string): Gate;
  /** Makes a named pipe; resolves once programs had it open (`exec 9> NAME`) and the last of them has gone. */
  gone(name: string): Promise<void>;
  dispose(): Promise<void>;
}

const Q = parseQueueName("q");

/** Makes a folder with a store and a queue. The caller must `dispose` it. */
export async function openWorkPlace(options: { readonly maxDeliveries?: number } = {}): Promise<WorkPlace> {
  const cli = openCommandLine();
  const backend = await openSqlite({ path: cli.store.slice("sqlite:".length) });
  await backend.createQueue(Q, options);
  const opened: number[] = [];
  const awaited: string[] = [];
  const makePipe = (name: string): string => {
    const path = join(cli.folder, name);
    const { status, stderr } = spawnSync("mkfifo", [path], { encoding: "utf8" });
    if (status !== 0) throw new Error(`mkfifo failed: ${stderr}`);
    return path;
  };
  let stored = 0;
  return {
    cli,
    backend,
    async enqueue(...payloads) {
      const messages = payloads.map((payload) => ({ data: Buffer.from(payload as string), id: parseMessageId(String(stored++)) }));
      await backend.enqueue(Q, messages);
    },
    status: (queue = "q") => backend.status(parseQueueName(queue)),
    messages: async () => (await backend.messages(Q, { limit: 1_000 })).items,
    gate(name) {
      // Open for both, it neither blocks here nor breaks while no program is before it.
      const descriptor = openSync(makePipe(name), "r+");
      opened.push(descriptor);
      return { pass: (programs) => void writeSync(descriptor, "\n".repeat(programs)) };
    },
    async gone(name) {
      const path = makePipe(name);
      awaited.push(path);
      await readFile(path);
    },
    async dispose() {
      for (const descriptor of opened) closeSync(descriptor);
      // Reads that no program ever came for would wait for ever.
      for (const path of awaited) if (existsSync(path)) closeSync(openSync(path, "r+"));
      await backend.close();
      await cli.dispose();
    },
  };
}
