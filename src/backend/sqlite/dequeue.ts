/** Handing out messages: pending -> processing, in one step with owner, lease and receipt. */

import { QueueFSError } from "../../core/errors.ts";
import type { DeliveredMessage } from "../../core/message.ts";
import { makeReceipt } from "../../core/names.ts";
import type { DequeueRequest } from "../../core/request.ts";
import { buryMessage } from "./dead-letters.ts";
import { idOf, PROCESSING, READY } from "./place.ts";
import { recoverForDequeue } from "./recovery.ts";
import { decodeAnswer, encodeAnswer } from "./request-answer.ts";
import type { QueueRow, Step } from "./step.ts";
import { withdraw } from "./task-cancelling.ts";
import { AGAIN } from "./writer.ts";

/** Payload bytes of one answer at most, unless its first message alone has more: 64 MiB. */
const ANSWER_BYTES = 64 * 1024 * 1024;
/** Messages of cancelled tasks, and unreadable ones, that one transaction removes on the way to those it hands out. */
const PASSED_PER_STEP = 500;

/** A message that could be handed out: untouched (delivery count 0, not in the place table) or ready. */
interface Candidate {
  readonly sequence: number;
  readonly untouched: boolean;
  readonly deliveryCount: number;
  readonly enqueuedAt: unknown;
  readonly id: unknown;
  readonly task: number | null;
  readonly data: unknown;
}

/** Hands out the oldest available messages of a queue. @param session who holds them, `null` for whoever knows the receipt */
export function dequeueFrom(
  step: Step,
  queue: QueueRow,
  request: DequeueRequest,
  session: () => number | null,
): DeliveredMessage[] | typeof AGAIN {
  const { requestId } = request;
  const requestArguments = requestId === undefined ? "" : `${request.limit} ${request.leaseMs} ${request.owner}`;
  if (requestId !== undefined) {
    const known = step.sql.request.get(queue.life, requestId) as [number, string, Buffer] | undefined;
    if (known !== undefined && known[0] > step.nowMs) {
      if (known[1] !== requestArguments)
        throw new QueueFSError("id-conflict", `request id "${requestId}" was used for another dequeue (${known[1]}); choose a new one`);
      return decodeAnswer(known[2]);
    }
  }
  recoverForDequeue(step, queue);
  const deliveries: DeliveredMessage[] = [];
  let bytes = 0;
  let passed = 0;
  while (deliveries.length < request.limit && queue.pending > queue.delayed) {
    const candidates = findCandidates(step, queue, request.limit - deliveries.length);
    if (candidates.length === 0) {
      if (deliveries.length > 0) break;
      throw new QueueFSError(
        "store-corrupt",
        `queue "${queue.name}" counts ${queue.pending - queue.delayed} messages that are not in the file; run queuefs doctor, restore a backup`,
      );
    }
    for (const candidate of candidates) {
      const size = sizeOf(candidate.data);
      if (deliveries.length > 0 && bytes + size > ANSWER_BYTES) return remember(step, queue, request, requestArguments, deliveries);
      bytes += size;
      const delivery = handOut(step, queue, candidate, request, session);
      if (delivery !== undefined) deliveries.push(delivery);
      else passed += 1;
    }
    // A queue full of messages of cancelled tasks must not hold the store for long; empty would be the wrong answer.
    if (passed >= PASSED_PER_STEP || (passed > 0 && bytes >= ANSWER_BYTES)) {
      if (deliveries.length === 0) return AGAIN;
      break;
    }
  }
  return remember(step, queue, request, requestArguments, deliveries);
}

function remember(
  step: Step,
  queue: QueueRow,
  request: DequeueRequest,
  requestArguments: string,
  deliveries: DeliveredMessage[],
): DeliveredMessage[] {
  if (request.requestId !== undefined && deliveries.length > 0) {
    step.sql.rememberRequest.run(
      queue.life,
      request.requestId,
      Math.ceil(step.nowMs + step.context.rememberMs),
      requestArguments,
      encodeAnswer(deliveries),
    );
  }
  return deliveries;
}

/** The oldest available ones, in queue order. Ready ones are few and mostly older than the head, but a delay that is over may lie behind it. */
function findCandidates(step: Step, queue: QueueRow, limit: number): Candidate[] {
  const ready = queue.ready > 0 ? readyCandidates(step, queue, limit) : [];
  const last = ready.at(-1)?.sequence ?? 0;
  const untouched = queue.pending - queue.ready - queue.delayed;
  // Where the ready ones were cut, only what is older than the last of them may go along.
  const isCut = ready.length > 0 && ready.length < queue.ready;
  if (untouched === 0 || (isCut && last <= queue.head)) return ready;
  const both = [...ready, ...untouchedCandidates(step, queue, limit).filter(({ sequence }) => !isCut || sequence < last)];
  if (ready.length > 0) both.sort((left, right) => left.sequence - right.sequence);
  return both.length > limit ? both.slice(0, limit) : both;
}

function readyCandidates(step: Step, queue: QueueRow, limit: number): Candidate[] {
  const candidates: Candidate[] = [];
  let bytes = 0;
  for (const [sequence, deliveryCount, task] of step.sql.readyPlaces.all(queue.slot, queue.slot, limit) as [
    number,
    number,
    number | null,
  ][]) {
    const [enqueuedAt, id, data] = (step.sql.messageAt.get(queue.slot, sequence) ?? [undefined, undefined, undefined]) as unknown[];
    candidates.push({ sequence, untouched: false, deliveryCount, enqueuedAt, id, task, data });
    bytes += sizeOf(data);
    if (bytes >= ANSWER_BYTES) break;
  }
  return candidates;
}

// Read one after the other, so that a large batch of large messages is not read whole only to be cut afterwards.
function untouchedCandidates(step: Step, queue: QueueRow, limit: number): Candidate[] {
  const candidates: Candidate[] = [];
  let bytes = 0;
  const rows = step.sql.untouchedMessages.iterate(queue.slot, queue.head, queue.slot, limit) as Iterable<
    [number, unknown, unknown, number | null, unknown]
  >;
  for (const [sequence, enqueuedAt, id, task, data] of rows) {
    candidates.push({ sequence, untouched: true, deliveryCount: 0, enqueuedAt, id, task, data });
    bytes += sizeOf(data);
    if (bytes >= ANSWER_BYTES) break;
  }
  return candidates;
}

function sizeOf(data: unknown): number {
  return data instanceof Uint8Array ? data.byteLength : 0;
}

function handOut(
  step: Step,
  queue: QueueRow,
  candidate: Candidate,
  request: DequeueRequest,
  session: () => number | null,
): DeliveredMessage | undefined {
  const { sequence, task } = candidate;
  if (candidate.untouched) queue.head = sequence;
  if (task !== null && step.tasks.isCancelling(task)) {
    withdraw(step, queue, sequence, candidate.untouched ? 0 : READY, typeof candidate.id === "string" ? 1 : 0, task);
    return undefined;
  }
  queue.pending -= 1;
  if (!candidate.untouched) queue.ready -= 1;
  step.touch(queue);
  if (!(candidate.data instanceof Uint8Array) || typeof candidate.enqueuedAt !== "number") {
    buryMessage(
      step,
      queue,
      sequence,
      candidate.deliveryCount,
      typeof candidate.id === "string" ? 1 : 0,
      task,
      "the record of this message is missing or unreadable",
    );
    return undefined;
  }
  const token = step.context.random.token();
  const due = Math.ceil(step.nowMs + request.leaseMs);
  const kept = typeof candidate.id === "string" ? candidate.id : null;
  if (candidate.untouched)
    step.sql.insertPlace.run(queue.slot, sequence, PROCESSING, due, 1, token, session(), null, kept === null ? 0 : 1, task);
  else step.sql.handOutAgain.run(due, token, session(), queue.slot, sequence);
  queue.processing += 1;
  queue.delivered += 1;
  const owner = task === null ? undefined : step.tasks.start(task);
  return {
    id: idOf(step, queue.slot, sequence, kept),
    data: candidate.data,
    enqueuedAtMs: candidate.enqueuedAt,
    deliveryCount: candidate.deliveryCount + 1,
    ...(owner === undefined ? undefined : { task: owner }),
    receipt: makeReceipt(queue.slot, sequence, token),
    leaseMs: request.leaseMs,
  };
}
