/** Reads dead letters as they lie in the store. */

import type { DeadLetter, Message } from "../../core/message.ts";
import { usedUpReason } from "../../core/request.ts";
import type { ByteReader } from "./bytes.ts";
import { readEntry, type StoredMessage } from "./dequeue-part.ts";
import type { QueueLife } from "./registry.ts";

/** Why a message died, as scripts/queue.lua numbers it. */
const CAUSE = { reason: 0, usedUp: 1, unreadable: 2, missing: 3 } as const;
/** Added to the cause of a dead letter that a task has, with the bytes that say which failure of which task it is. */
const HAS_TASK = 16;
const FAILURE_MARK_BYTES = 12;

/** A stored message as callers see it. */
export function messageOf({ id, data, enqueuedAtMs, task }: StoredMessage, deliveryCount: number): Message {
  return { id, data, enqueuedAtMs, deliveryCount, ...(task === undefined ? {} : { task }) };
}

/** Reads a dead letter (scripts/queue.lua says what it is made of). @param isOwned whether its task is still there */
export function readLetter(reader: ByteReader, sequence: number, life: QueueLife, isOwned: boolean): DeadLetter {
  if (reader.isAtEnd) {
    // Somebody took the letter away and left its place: it can still be seen, and dropped.
    const id = (life.idPrefix + sequence.toString(36)) as DeadLetter["id"];
    return {
      id,
      data: new Uint8Array(0),
      enqueuedAtMs: 0,
      deliveryCount: 0,
      diedAtMs: 0,
      reason: "the record of this dead letter is missing",
    };
  }
  const flags = reader.u8();
  const diedAtMs = reader.u48();
  const deliveryCount = reader.u32();
  if (flags >= HAS_TASK) reader.part(FAILURE_MARK_BYTES);
  const reason = reader.text(reader.u16());
  const { task, ...entry } = readEntry(reader, reader.left, life);
  const message = messageOf(isOwned && task !== undefined ? { ...entry, task } : entry, deliveryCount);
  return { ...message, diedAtMs, reason: wordsOf(flags % HAS_TASK, reason, deliveryCount) };
}

/** Why a message died. */
export function wordsOf(cause: number, reason: string, deliveryCount: number): string {
  if (cause === CAUSE.usedUp) return usedUpReason(deliveryCount, reason);
  if (cause === CAUSE.unreadable)
    return "the record could not be read: it is not one that QueueFS wrote; its bytes are the data of this dead letter";
  if (cause === CAUSE.missing) return "the payload of this message was missing from the store";
  return reason === "" ? "given up by its consumer, without a reason" : reason;
}
