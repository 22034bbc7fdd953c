/** Looks through an old file before anything is written: what there is, what it will be called, what cannot be read. */

import { QueueFSError, quote } from "../core/errors.ts";
import { type MessageId, parseChosenMessageId } from "../core/names.ts";
import { type RenamedQueue, renameQueues } from "./queue-names.ts";
import { type DecodedRecord, decodeRecord } from "./record.ts";
import type { ReferenceFile, ReferenceRow } from "./reference-file.ts";

/** One queue to be taken over. */
export interface PlannedQueue extends RenamedQueue {
  /** Messages whose bytes can be read. */
  readonly messages: number;
  /** Records that cannot be decoded; they become dead letters with their raw bytes. */
  readonly unreadable: number;
  /** Messages that get a new id, since theirs is missing, malformed, kept for the store, or another message's too. */
  readonly newIds: number;
}

/** What a takeover will do. */
export interface TakeoverPlan {
  readonly queues: readonly PlannedQueue[];
  readonly messages: number;
  readonly unreadable: number;
  /** Messages that the old file says are in processing; they become pending. */
  readonly processing: number;
}

/** One old message, ready for the target. */
export interface PlannedMessage {
  readonly queueKey: string;
  readonly id: MessageId;
  /** The id that is used where the target already has `id` for something else. */
  readonly otherId: MessageId;
  /** Whether `id` is not the old one. */
  readonly newId: boolean;
  /** The message's bytes, or those of the whole record when `fault` says why it could not be decoded. */
  readonly data: Uint8Array;
  readonly fault?: string;
}

const MADE_ID = "migrated-";

/** The old id, where it can stay. Those that look like ids made here cannot, so that the ones made here are nobody else's. */
function legalId(id: string | null): MessageId | undefined {
  if (id === null || id.startsWith(MADE_ID)) return undefined;
  try {
    return parseChosenMessageId(id);
  } catch {
    return undefined;
  }
}

/** The messages of the old file in their order; each is read when it is asked for. */
export function* plannedMessages(file: ReferenceFile): Generator<PlannedMessage, void, void> {
  const shared = file.sharedIds();
  const seen = new Set<string>();
  let row: ReferenceRow | undefined;
  for (row = file.nextRow(undefined); row !== undefined; row = file.nextRow(row.rowId)) {
    const otherId = parseChosenMessageId(MADE_ID + row.rowId);
    const key = `${row.queueKey}\0${row.messageId}`;
    // The first of several with one id keeps it, so that a repeat of the takeover gives the same ids.
    const taken = seen.has(key);
    if (shared.has(key)) seen.add(key);
    const id = taken ? undefined : legalId(row.messageId);
    const decoded: DecodedRecord = decodeRecord(row.record);
    yield {
      queueKey: row.queueKey,
      id: id ?? otherId,
      otherId,
      newId: id === undefined,
      ...("data" in decoded ? decoded : { data: row.record ?? new Uint8Array(), fault: decoded.fault }),
    };
  }
}

interface Counts {
  messages: number;
  unreadable: number;
  newIds: number;
}

/**
 * Reads the whole file once and says what a takeover will do.
 *
 * @param maxMessageBytes what the target store takes as one message
 * @throws QueueFSError `message-too-large` when a message would not fit; nothing has been written then
 */
export function planTakeover(file: ReferenceFile, maxMessageBytes: number): TakeoverPlan {
  const counts = new Map<string, Counts>();
  const countsOf = (key: string): Counts => {
    const found = counts.get(key) ?? { messages: 0, unreadable: 0, newIds: 0 };
    counts.set(key, found);
    return found;
  };
  for (const key of file.queueKeys()) countsOf(key);
  for (const message of plannedMessages(file)) {
    if (message.data.byteLength > maxMessageBytes) {
      throw new QueueFSError(
        "message-too-large",
        `message ${quote(message.id)} of ${quote(file.path)} has ${message.data.byteLength} bytes and the target store takes ${maxMessageBytes}; ` +
          "nothing was taken over: open the target with a greater maxMessageBytes (queuefs migrate --max-message-bytes)",
      );
    }
    const queue = countsOf(message.queueKey);
    if (message.fault === undefined) queue.messages += 1;
    else queue.unreadable += 1;
    if (message.newId) queue.newIds += 1;
  }
  const queues = renameQueues(counts.keys()).map((queue) => ({ ...queue, ...countsOf(queue.key) }));
  return {
    queues,
    messages: queues.reduce((sum, queue) => sum + queue.messages, 0),
    unreadable: queues.reduce((sum, queue) => sum + queue.unreadable, 0),
    processing: file.processingCount(),
  };
}
