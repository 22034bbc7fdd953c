/** Dequeue, as a part of a script call, and how messages are read from what the scripts answer. */

import { QueueFSError, quote } from "../../core/errors.ts";
import type { DeliveredMessage, Message } from "../../core/message.ts";
import type { MessageId, QueueName, TaskId } from "../../core/names.ts";
import type { DequeueRequest } from "../../core/request.ts";
import { ByteReader, type ByteWriter } from "./bytes.ts";
import { KIND, type OperationState, Part } from "./part.ts";
import { makeDeliveryReceipt } from "./receipt.ts";
import type { QueueLife } from "./registry.ts";

const HAS_CHOSEN_ID = 1;
const HAS_TASK = 2;
const HAS_REQUEST_ID = 1;
const OWNER_RECEIPT = 2;
/** What an item of a dequeue's answer begins with. */
const ITEM = { done: 0, conflict: 1, again: 2 } as const;

/** A message as it lies in the store. */
export interface StoredMessage extends Omit<Message, "deliveryCount"> {
  readonly sequence: number;
  /** Number of its task; 0 for none. */
  readonly taskNumber: number;
}

/** Reads one entry (scripts/queue.lua says what it is made of). */
export function readEntry(reader: ByteReader, bytes: number, life: QueueLife): StoredMessage {
  reader.u8();
  const sequence = reader.u48();
  const enqueuedAtMs = reader.u48();
  let left = bytes - 14;
  let id: MessageId;
  const flags = reader.u8();
  const hasTask = (flags & HAS_TASK) !== 0;
  const taskNumber = hasTask ? reader.u48() : 0;
  if ((flags & HAS_CHOSEN_ID) !== 0) {
    const length = reader.u8();
    id = reader.text(length) as MessageId;
    left -= 1 + length;
  } else {
    id = (life.idPrefix + sequence.toString(36)) as MessageId;
  }
  if (!hasTask) return { sequence, taskNumber, id, enqueuedAtMs, data: reader.copy(left) };
  const length = reader.u8();
  const task = reader.text(length) as TaskId;
  return { sequence, taskNumber, id, enqueuedAtMs, data: reader.copy(left - 7 - length), task };
}

/** One dequeue. */
export class DequeuePart extends Part<DeliveredMessage[]> {
  readonly kind = KIND.dequeue;
  override readonly isAlone: boolean;
  readonly items: number;
  readonly #request: DequeueRequest;
  readonly #token: number;

  constructor(name: QueueName, request: DequeueRequest, token: number) {
    super(name);
    this.#request = request;
    this.#token = token;
    this.items = request.limit;
    this.isAlone = request.requestId !== undefined;
  }

  write(writer: ByteWriter, _life: QueueLife, state: OperationState): void {
    const { limit, leaseMs, owner, requestId } = this.#request;
    state.wanted += limit;
    writer.u48(this.#token);
    writer.u16(limit);
    writer.u32(leaseMs);
    writer.u8((requestId === undefined ? 0 : HAS_REQUEST_ID) + (owner === "receipt" ? OWNER_RECEIPT : 0));
    if (requestId === undefined) return;
    const lengthAt = writer.length;
    writer.u8(0);
    writer.setU8(lengthAt, writer.text(requestId));
  }

  read(reader: ByteReader, life: QueueLife, state: OperationState): DeliveredMessage[] | undefined {
    const status = reader.u8();
    // Of a remembered answer it is the token of the first request.
    const token = reader.u48();
    const count = reader.u16();
    if (status === ITEM.again) return undefined;
    if (status === ITEM.conflict) {
      const requestId = quote(this.#request.requestId);
      this.reject(
        new QueueFSError("id-conflict", `request id ${requestId} was used before with other arguments; use a new one for a new request`),
      );
      return [];
    }
    const messages: DeliveredMessage[] = [];
    const { leaseMs } = this.#request;
    for (let index = 0; index < count; index += 1) {
      const alone = state.entries?.[state.next++];
      const deliveryCount = alone === undefined ? reader.u32() : 1;
      const stored = alone === undefined ? readEntry(reader, reader.u32(), life) : readEntry(new ByteReader(alone), alone.length, life);
      const { sequence, taskNumber, id, enqueuedAtMs, data, task } = stored;
      const receipt = makeDeliveryReceipt(life.life, sequence, token, taskNumber);
      if (task === undefined) messages.push({ id, data, enqueuedAtMs, deliveryCount, receipt, leaseMs });
      else messages.push({ id, data, enqueuedAtMs, deliveryCount, receipt, leaseMs, task });
    }
    return messages;
  }
}
