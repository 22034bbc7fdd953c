/** Storing messages, and remembering the ids that callers chose. */

import { createHash } from "node:crypto";
import { QueueFSError } from "../../core/errors.ts";
import type { EnqueueAnswer, NewMessage } from "../../core/message.ts";
import type { MessageId } from "../../core/names.ts";
import { DELAYED, idOf } from "./place.ts";
import type { QueueRow, Step } from "./step.ts";

/** The last sequence a slot can have: 2^46 - 1. */
const LAST_SEQUENCE = 2 ** 46 - 1;

/** Copies the payloads, so that the caller may reuse its arrays as soon as the call returns. */
export function copyMessages(messages: readonly NewMessage[]): NewMessage[] {
  // One shape for all, and no spreading: that would take longer than copying the bytes.
  return messages.map(({ id, data, delayMs, task }) => ({ id, data: Buffer.from(data), delayMs, task })) as NewMessage[];
}

/** Payload bytes of some messages. */
export function payloadBytes(messages: readonly NewMessage[]): number {
  let total = 0;
  for (const message of messages) total += message.data.byteLength;
  return total;
}

function fingerprintOf(data: Uint8Array): Buffer {
  return createHash("sha256").update(data).digest().subarray(0, 16);
}

/** Stores messages at the end of a queue, each with its own answer. Their tasks were admitted before. */
export function enqueueInto(step: Step, queue: QueueRow, messages: readonly NewMessage[]): EnqueueAnswer[] {
  if (queue.tail + messages.length > LAST_SEQUENCE) {
    throw new QueueFSError("store-full", `queue "${queue.name}" has no places left in its slot; clear it once it is complete`);
  }
  const answers: EnqueueAnswer[] = [];
  for (const message of messages) {
    answers.push(message.id === undefined ? storeMessage(step, queue, message, null) : enqueueChosen(step, queue, message, message.id));
  }
  step.touch(queue);
  return answers;
}

/**
 * Checks that the tasks of the messages that are going to be stored take more work, before anything is written. What is not stored needs none: a
 * repeat gets the first answer, also after the end of its task.
 *
 * @throws QueueFSError `task-not-found`, `task-ended`
 */
export function admitTasks(step: Step, queue: QueueRow, messages: readonly NewMessage[]): void {
  let admitted: Set<MessageId> | undefined;
  for (const { task, id } of messages) {
    if (id !== undefined) {
      if (admitted?.has(id) || (task !== undefined && isKnown(step, queue, id))) continue;
      admitted ??= new Set();
      admitted.add(id);
    }
    if (task !== undefined) step.tasks.open(task);
  }
}

function isKnown(step: Step, queue: QueueRow, id: MessageId): boolean {
  return knownFingerprint(step, queue, id) !== undefined;
}

/** What was stored under a chosen id, while that is remembered or its message is there. */
function knownFingerprint(step: Step, queue: QueueRow, id: MessageId): Buffer | undefined {
  const known = step.sql.chosenId.get(queue.life, id) as [number, number, Buffer, number] | undefined;
  if (known === undefined) return undefined;
  const [slot, sequence, fingerprint, forgetDue] = known;
  return forgetDue > step.nowMs || messageExists(step, queue, slot, sequence, id) ? fingerprint : undefined;
}

function storeMessage(step: Step, queue: QueueRow, message: NewMessage, id: MessageId | null): EnqueueAnswer {
  queue.tail += 1;
  const sequence = queue.tail;
  const delayMs = message.delayMs ?? 0;
  const task = message.task === undefined ? null : step.tasks.get(message.task).number;
  if (id === null) step.newMessages.add(queue.slot, sequence, step.wallMs, delayMs > 0 ? 1 : 0, task, message.data);
  // Whether it is there is asked when its id comes again, maybe in this very call.
  else step.sql.insertMessage.run(queue.slot, sequence, step.wallMs, delayMs > 0 ? 1 : 0, id, task, message.data);
  if (delayMs > 0) {
    step.sql.insertPlace.run(
      queue.slot,
      sequence,
      DELAYED,
      Math.ceil(step.nowMs + delayMs),
      0,
      null,
      null,
      Math.ceil(step.wallMs + delayMs),
      id === null ? 0 : 1,
      task,
    );
    queue.delayed += 1;
  }
  queue.pending += 1;
  queue.enqueued += 1;
  if (task !== null) step.tasks.stored(task, queue.slot);
  return { outcome: "enqueued", id: idOf(step, queue.slot, sequence, id) };
}

function enqueueChosen(step: Step, queue: QueueRow, message: NewMessage, id: MessageId): EnqueueAnswer {
  const fingerprint = fingerprintOf(message.data);
  const known = knownFingerprint(step, queue, id);
  if (known !== undefined) return { outcome: known.equals(fingerprint) ? "repeated" : "conflict", id };
  const answer = storeMessage(step, queue, message, id);
  const forgetDue = Math.ceil(step.nowMs + step.context.rememberMs);
  step.sql.rememberChosenId.run(queue.life, id, queue.slot, queue.tail, fingerprint, forgetDue, forgetDue);
  return answer;
}

/** Whether a message with a chosen id is unacked or a dead letter: as long as it is, its id is taken. */
function messageExists(step: Step, queue: QueueRow, slot: number, sequence: number, id: string): boolean {
  if (slot === queue.slot && step.sql.idAt.get(slot, sequence) !== undefined) return true;
  return step.sql.isDead.get(queue.life, id) !== undefined;
}
