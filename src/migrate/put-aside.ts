/** Makes dead letters of records that could not be decoded. */

import type { Backend } from "../backend/contract.ts";
import type { EnqueueAnswer } from "../core/message.ts";
import type { MessageId, QueueName, Receipt } from "../core/names.ts";

/** How many of the records are dead letters now, and how many are in the queue still. */
export interface AsideCounts {
  readonly dead: number;
  readonly left: number;
}

/** Messages of others that are held for a moment on the way to the records, at most; and their bytes. */
const MAX_HELD_ITEMS = 10_000;
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** The lease of that moment, in milliseconds: long enough for the way, short enough when this process dies on it. */
const LEASE_MS = 10_000;
const TAKEN_AT_ONCE = 100;

/** Which of these messages are unacked in the queue. */
async function unacked(backend: Backend, queue: QueueName, ids: ReadonlySet<MessageId>): Promise<Set<MessageId>> {
  const found = new Set<MessageId>();
  let after: string | undefined;
  do {
    const page = await backend.messages(queue, after === undefined ? {} : { after });
    for (const message of page.items) if (ids.has(message.id)) found.add(message.id);
    after = page.next;
  } while (after !== undefined && found.size < ids.size);
  return found;
}

/**
 * Moves stored records to the dead letters of their queue. The contract has one way there, a delivery that is given up, so the head of
 * the queue is taken until the records have come; what belongs to others is released to its old place and the delivery does not count.
 *
 * @param answers what the enqueue of the records answered
 * @param faults why each could not be decoded
 */
export async function putAside(
  backend: Backend,
  queue: QueueName,
  answers: readonly EnqueueAnswer[],
  faults: readonly string[],
): Promise<AsideCounts> {
  const reasons = new Map(answers.map((answer, index) => [answer.id, `taken over from an older store as it was: ${faults[index] ?? ""}`]));
  const repeated = new Set(answers.filter((answer) => answer.outcome === "repeated").map((answer) => answer.id));
  if (repeated.size > 0) {
    // An earlier run has made most of them dead letters already; the queue is searched for those it had not reached.
    const here = await unacked(backend, queue, repeated);
    for (const id of repeated) if (!here.has(id)) reasons.delete(id);
  }
  const settled = answers.length - reasons.size;
  const held: Receipt[] = [];
  let heldBytes = 0;
  let dead = 0;
  try {
    while (reasons.size > 0 && held.length < MAX_HELD_ITEMS && heldBytes < MAX_HELD_BYTES) {
      const deliveries = await backend.dequeue(queue, { limit: TAKEN_AT_ONCE, leaseMs: LEASE_MS });
      if (deliveries.length === 0) break;
      const given = deliveries.filter((delivery) => reasons.has(delivery.id));
      for (const delivery of deliveries) {
        if (reasons.has(delivery.id)) continue;
        held.push(delivery.receipt);
        heldBytes += delivery.data.byteLength;
      }
      const items = given.map((delivery) => ({ receipt: delivery.receipt, giveUp: true, reason: reasons.get(delivery.id) ?? "" }));
      const outcomes = await backend.nack(queue, items);
      dead += outcomes.filter((outcome) => outcome === "dead").length;
      for (const delivery of given) reasons.delete(delivery.id);
    }
  } finally {
    if (held.length > 0) await backend.release(queue, held);
  }
  return { dead: settled + dead, left: answers.length - settled - dead };
}
