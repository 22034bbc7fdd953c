/** The control files as a table: each row of core/control-files.ts with what its read and write do. */

import { CONTROL_FILES, type ControlFile, type ControlFileName } from "../core/control-files.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import {
  type ReadHandler,
  readDead,
  readDequeue,
  readMessages,
  readPeek,
  readSize,
  readStats,
  readStatus,
  readWait,
} from "./control-reads.ts";
import { type WriteHandler, writeAck, writeClear, writeDead, writeEnqueue, writeExtend, writeNack } from "./control-writes.ts";

/** A row: a handler for each way that the file's row of the core table has words for, and none for the other. */
type Handlers<File> = (File extends { readonly read: string } ? { readonly read: ReadHandler } : { readonly read?: never }) &
  (File extends { readonly write: string } ? { readonly write: WriteHandler } : { readonly write?: never });

const HANDLERS: { readonly [Name in ControlFileName]: Handlers<(typeof CONTROL_FILES)[Name]> } = {
  enqueue: { write: writeEnqueue },
  dequeue: { read: readDequeue },
  peek: { read: readPeek },
  size: { read: readSize },
  status: { read: readStatus },
  messages: { read: readMessages },
  clear: { write: writeClear },
  ack: { write: writeAck },
  ".nack": { write: writeNack },
  ".extend": { write: writeExtend },
  ".wait": { read: readWait },
  ".dead": { read: readDead, write: writeDead },
  ".stats": { read: readStats },
};

/** How a control file is read. @throws QueueFSError `wrong-mode` */
export function readHandler(file: ControlFileName, shown: string): ReadHandler {
  const { read } = HANDLERS[file];
  if (read === undefined) throw wrongMode(file, shown, "write");
  return read;
}

/** How a control file is written. @throws QueueFSError `wrong-mode` */
export function writeHandler(file: ControlFileName, shown: string): WriteHandler {
  const { write } = HANDLERS[file];
  if (write === undefined) throw wrongMode(file, shown, "read");
  return write;
}

function wrongMode(file: ControlFileName, shown: string, way: "read" | "write"): QueueFSError {
  const row: ControlFile = CONTROL_FILES[file];
  const does = way === "read" ? `a read gives ${row.read}` : `a write ${row.write}`;
  return new QueueFSError("wrong-mode", `permission denied: ${quote(shown)} can only be ${way === "read" ? "read" : "written"} (${does})`);
}
