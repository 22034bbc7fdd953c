/** The receipts of this store. Those of messages of a task also carry its number, so that an ack finds its counts without a search. */

import { makeReceipt, type Receipt } from "../../core/names.ts";

/** What a receipt names. */
export interface Delivery {
  readonly slot: number;
  readonly sequence: number;
  readonly token: number;
  /** Number of the task; 0 for none. */
  readonly task: number;
}

const MARK = "r-";
const HYPHEN = 45;
const ZERO = 48;
const SMALL_A = 97;

/** The receipt of one delivery. @param task number of the task, 0 for none */
export function makeDeliveryReceipt(slot: number, sequence: number, token: number, task: number): Receipt {
  const receipt = makeReceipt(slot, sequence, token);
  return task === 0 ? receipt : (`${receipt}-${task.toString(36)}` as Receipt);
}

/** The delivery that a receipt names, or `undefined` when no store can have made it. */
export function deliveryOf(receipt: string): Delivery | undefined {
  if (!receipt.startsWith(MARK)) return undefined;
  const { length } = receipt;
  const numbers = [0, 0, 0, 0];
  let count = 0;
  let digits = 0;
  let value = 0;
  for (let at = MARK.length; at <= length; at += 1) {
    const code = at === length ? HYPHEN : receipt.charCodeAt(at);
    if (code === HYPHEN) {
      if (digits === 0 || count === numbers.length || !Number.isSafeInteger(value)) return undefined;
      numbers[count++] = value;
      digits = 0;
      value = 0;
      continue;
    }
    const digit = code < SMALL_A ? code - ZERO : code - SMALL_A + 10;
    // Without leading zeros each delivery has one name.
    if (digit < 0 || digit > 35 || (code > ZERO + 9 && code < SMALL_A) || (digits > 0 && value === 0)) return undefined;
    value = value * 36 + digit;
    digits += 1;
  }
  const [slot, sequence, token, task] = numbers as [number, number, number, number];
  if (count < 3 || (count === 4 && task === 0)) return undefined;
  return { slot, sequence, token, task };
}
