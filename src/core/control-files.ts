/** The control files of a queue as a table: the file face, the mount, the HTTP file API and the documentation follow it. */

/** Permission bits of a file that can only be written. */
export const WRITE_ONLY = 0o222;
/** Permission bits of a file that can only be read. */
export const READ_ONLY = 0o444;
/** Permission bits of a file that can be read and written. */
export const READ_WRITE = 0o666;

/** One control file. */
export interface ControlFile {
  /** Permission bits. */
  readonly mode: typeof WRITE_ONLY | typeof READ_ONLY | typeof READ_WRITE;
  /** What a read gives, for people; absent when it cannot be read. */
  readonly read?: string;
  /** What a write does, for people; absent when it cannot be written. */
  readonly write?: string;
}

/** The control files under each queue directory, in the order a listing shows them: the eight, then the dot files. */
export const CONTROL_FILES = {
  enqueue: { mode: WRITE_ONLY, write: "stores one message: exactly the bytes written between open and close" },
  dequeue: { mode: READ_ONLY, read: "takes one message: id, data, receipt, timestamp, deliveries; {} when none is available" },
  peek: { mode: READ_ONLY, read: "the message that a dequeue would take, which stays; {} when there is none" },
  size: { mode: READ_ONLY, read: "the number of pending messages, in decimal" },
  status: { mode: READ_ONLY, read: '{"pending":p,"processing":q}, one snapshot' },
  messages: { mode: READ_ONLY, read: "a JSON array of all unacked messages in queue order, nothing changes" },
  clear: { mode: WRITE_ONLY, write: "removes all unacked messages, whatever was written" },
  ack: { mode: WRITE_ONLY, write: "removes the message in processing with that receipt or id; white space around it is ignored" },
  ".nack": { mode: WRITE_ONLY, write: 'gives a message back: a receipt, or {"receipt","delayMs","reason","giveUp"}' },
  ".extend": { mode: WRITE_ONLY, write: 'renews a lease: {"receipt","leaseMs"}, or a receipt for the default lease' },
  ".wait": { mode: READ_ONLY, read: "returns the status once the queue is complete, not before" },
  ".dead": {
    mode: READ_WRITE,
    read: "a JSON array of the dead letters with their reasons",
    write: '{"redrive":[ids]} or {"drop":[ids]}; "all" instead of the ids takes all',
  },
  ".stats": { mode: READ_ONLY, read: "statistics and settings of the queue as JSON" },
} as const satisfies Record<string, ControlFile>;

/** The name of a control file. */
export type ControlFileName = keyof typeof CONTROL_FILES;

/** Whether `name` is the name of a control file. */
export function isControlFileName(name: string): name is ControlFileName {
  return Object.hasOwn(CONTROL_FILES, name);
}
