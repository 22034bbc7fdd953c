/** Keys and words of the place table that several operations share. */

import { type MessageId, makeMessageId, placeOfReceipt, type Receipt } from "../../core/names.ts";
import type { QueueRow, Step } from "./step.ts";

/** In a consumer's hands. */
export const PROCESSING = 1;
/** Given back and available, at its old place. */
export const READY = 2;
/** Not available before its time. */
export const DELAYED = 3;

/** One slot more than there are: 2^17, since key = slot << 46 | sequence must stay below 2^63. */
export const SLOT_BOUND = 131_072;

/** The id of a message: the one kept with it, or the one made from where it lies. */
export function idOf(
  step: { readonly context: { readonly storeId: string } },
  slot: number,
  sequence: number,
  kept: string | null,
): MessageId {
  return kept === null ? makeMessageId(step.context.storeId, slot, sequence) : (kept as MessageId);
}

/** The delivery that a receipt names, if it can be one of this queue's present slot. */
export function deliveryOf(queue: QueueRow, receipt: Receipt): { sequence: number; token: number } | undefined {
  const place = placeOfReceipt(receipt);
  return place === undefined || place.slot !== queue.slot ? undefined : place;
}

/** Removes the message of an ended delivery for good, and what is remembered of its id if its time is over. */
export function removeMessage(step: Step, queue: QueueRow, sequence: number, chosen: number): void {
  if (chosen === 1) forgetChosenId(step, queue, sequence);
  step.sql.deleteMessage.run(queue.slot, sequence);
}

/** Forgets the chosen id of a message that is about to be removed, if its time is over. */
export function forgetChosenId(step: Step, queue: QueueRow, sequence: number): void {
  const [id] = (step.sql.idAt.get(queue.slot, sequence) ?? [null]) as [string | null];
  if (id !== null) step.sql.forgetChosenIdIfDue.run(queue.life, id, step.nowMs);
}
