/** Handing out messages: pending -> processing, in one step with owner, lease and receipt. */

import { QueueFSError, queueNotFound } from "../../core/errors.ts";
import { MAX_DEQUEUE_LIMIT } from "../../core/limits.ts";
import type { DeliveredMessage } from "../../core/message.ts";
import { makeReceipt, type QueueName } from "../../core/names.ts";
import type { DequeueRequest } from "../../core/request.ts";
import { AGAIN, type Answer } from "./answer.ts";
import { buryMessage } from "./dead-letters.ts";
import { idOf, READY } from "./place.ts";
import { recoverForDequeue } from "./recovery.ts";
import { decodeAnswer, encodeAnswer } from "./request-answer.ts";
import type { Prepared } from "./statements.ts";
import type { QueueRow, Step } from "./step.ts";
import { withdraw } from "./task-cancelling.ts";

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

/** What is available in one queue, read ahead for the calls of one transaction. Nothing else may change the queue while it is used. */
class Supply {
  readonly #step: Step;
  readonly #queue: QueueRow;
  #wanted: number;
  #candidates: Candidate[] = [];
  #next = 0;

  /** @param wanted messages that all its calls want together */
  constructor(step: Step, queue: QueueRow, wanted: number) {
    this.#step = step;
    this.#queue = queue;
    this.#wanted = wanted;
    recoverForDequeue(step, queue);
  }

  /** The next one, which stays the next until it is taken, or `undefined` when none is available. */
  peek(): Candidate | undefined {
    if (this.#next < this.#candidates.length) return this.#candidates[this.#next];
    const { pending, delayed, name } = this.#queue;
    // What was due beyond the bound of one recovery may be all that is left.
    if (pending === delayed && this.#candidates.length > 0) recoverForDequeue(this.#step, this.#queue);
    if (this.#queue.pending === this.#queue.delayed) return undefined;
    this.#candidates = findCandidates(this.#step, this.#queue, Math.min(Math.max(this.#wanted, 1), MAX_DEQUEUE_LIMIT));
    this.#next = 0;
    if (this.#candidates.length > 0) return this.#candidates[0];
    throw new QueueFSError(
      "store-corrupt",
      `queue "${name}" counts ${pending - delayed} messages that are not in the file; run queuefs doctor, restore a backup`,
    );
  }

  /** Says that the next one was taken, and whether it was handed out. */
  took(isHandedOut: boolean): void {
    this.#next += 1;
    if (isHandedOut) this.#wanted -= 1;
  }
}

/** One dequeue without a request id. */
export interface DequeueCall {
  readonly queue: QueueName;
  readonly request: DequeueRequest;
  /** Who holds the deliveries, `null` for whoever knows the receipt. */
  readonly session: (step: Step) => number | null;
}

/** Several dequeues of one transaction: what they take is read once for all of them. */
export function dequeueTogether(step: Step, calls: readonly DequeueCall[]): Answer<DeliveredMessage[] | typeof AGAIN>[] {
  const wanted = new Map<QueueName, number>();
  for (const { queue, request } of calls) wanted.set(queue, (wanted.get(queue) ?? 0) + request.limit);
  const supplies = new Map<QueueName, Supply>();
  return calls.map(({ queue: name, request, session }) => {
    const queue = step.findQueue(name);
    if (queue === undefined) return { error: queueNotFound(name) };
    let supply = supplies.get(name);
    if (supply === undefined) {
      supply = new Supply(step, queue, wanted.get(name) as number);
      supplies.set(name, supply);
    }
    return { value: deliver(step, queue, supply, request, () => session(step)) };
  });
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
  const deliveries = deliver(step, queue, new Supply(step, queue, request.limit), request, session);
  if (requestId !== undefined && deliveries !== AGAIN && deliveries.length > 0) {
    step.sql.rememberRequest.run(
      queue.life,
      requestId,
      Math.ceil(step.nowMs + step.context.rememberMs),
      requestArguments,
      encodeAnswer(deliveries),
    );
  }
  return deliveries;
}

function deliver(
  step: Step,
  queue: QueueRow,
  supply: Supply,
  request: DequeueRequest,
  session: () => number | null,
): DeliveredMessage[] | typeof AGAIN {
  const deliveries: DeliveredMessage[] = [];
  let bytes = 0;
  let passed = 0;
  while (deliveries.length < request.limit) {
    const candidate = supply.peek();
    if (candidate === undefined) break;
    const size = sizeOf(candidate.data);
    if (deliveries.length > 0 && bytes + size > ANSWER_BYTES) break;
    bytes += size;
    const delivery = handOut(step, queue, candidate, request, session);
    supply.took(delivery !== undefined);
    if (delivery !== undefined) {
      deliveries.push(delivery);
      continue;
    }
    passed += 1;
    // A queue full of messages of cancelled tasks must not hold the store for long; empty would be the wrong answer.
    if (passed < PASSED_PER_STEP && bytes < ANSWER_BYTES) continue;
    if (deliveries.length === 0) return AGAIN;
    break;
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
  if (ready.length === 0) return untouchedCandidates(step, queue, limit);
  const both = [...ready, ...untouchedCandidates(step, queue, limit).filter(({ sequence }) => !isCut || sequence < last)];
  both.sort((left, right) => left.sequence - right.sequence);
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

// The statement leaves out large payloads, so that a large batch of them is not read whole only to be cut afterwards.
function untouchedCandidates(step: Step, queue: QueueRow, limit: number): Candidate[] {
  const { slot, head } = queue;
  const { untouchedMessages, messageAt } = step.sql;
  if (limit === 1) {
    const row = untouchedMessages.get(slot, head, slot, 1) as UntouchedColumns | undefined;
    return row === undefined ? [] : [untouchedCandidate(row, messageAt, slot)];
  }
  const candidates: Candidate[] = [];
  let bytes = 0;
  for (const row of untouchedMessages.all(slot, head, slot, limit) as UntouchedColumns[]) {
    const candidate = untouchedCandidate(row, messageAt, slot);
    candidates.push(candidate);
    bytes += sizeOf(candidate.data);
    if (bytes >= ANSWER_BYTES) break;
  }
  return candidates;
}

type UntouchedColumns = [sequence: number, enqueuedAt: unknown, id: unknown, task: number | null, data: unknown];

function untouchedCandidate([sequence, enqueuedAt, id, task, small]: UntouchedColumns, messageAt: Prepared, slot: number): Candidate {
  const data = small ?? (messageAt.get(slot, sequence) as unknown[] | undefined)?.[2];
  return { sequence, untouched: true, deliveryCount: 0, enqueuedAt, id, task, data };
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
  if (candidate.untouched) step.newPlaces.add(queue.slot, sequence, due, token, session(), kept === null ? 0 : 1, task);
  else step.sql.handOutAgain.run(due, token, session(), queue.slot, sequence);
  queue.processing += 1;
  queue.delivered += 1;
  const { data, enqueuedAt } = candidate;
  const id = idOf(step, queue.slot, sequence, kept);
  const deliveryCount = candidate.deliveryCount + 1;
  const receipt = makeReceipt(queue.slot, sequence, token);
  const { leaseMs } = request;
  const owner = task === null ? undefined : step.tasks.start(task);
  // Two literals: copying objects by spreading takes as long as a statement.
  return owner === undefined
    ? { id, data, enqueuedAtMs: enqueuedAt, deliveryCount, receipt, leaseMs }
    : { id, data, enqueuedAtMs: enqueuedAt, deliveryCount, task: owner, receipt, leaseMs };
}
