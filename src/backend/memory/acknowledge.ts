/** Acknowledge and forward as one step. */

import { QueueFSError, quote } from "../../core/errors.ts";
import type { AckAnswer, AckItem } from "../../core/message.ts";
import type { Receipt } from "../../core/names.ts";
import { checkMessages } from "../../core/request.ts";
import { Admission, type Plan, type Step } from "./admission.ts";
import { acknowledge } from "./deliveries.ts";
import type { Entry } from "./entry.ts";
import type { QueueState } from "./queue-state.ts";
import type { MemoryStore } from "./store.ts";

/**
 * Removes messages and stores what they forward. All is checked and decided before the first change, so that the step happens as a
 * whole or not at all. Forwards of stale receipts are checked too, but not stored.
 *
 * @throws QueueFSError `queue-not-found` for a queue to forward to, `task-not-found`, `task-ended`, `invalid-argument`, `invalid-name`, `message-too-large`, `store-full`
 */
export function acknowledgeAndForward(store: MemoryStore, queue: QueueState, items: readonly AckItem[], step: Step): AckAnswer[] {
  checkForwards(store, items, step.bounds.maxMessageBytes);
  const admission = new Admission(store.resources, step);
  const seen = new Set<Receipt>();
  const decided = items.map((item): { entry: Entry; plans: Plan[] } | undefined => {
    const entry = seen.has(item.receipt) ? undefined : queue.processing.find(item.receipt);
    if (entry === undefined) return undefined;
    seen.add(item.receipt);
    admission.removes(entry);
    return { entry, plans: (item.forward ?? []).map((forward) => admission.plan(store.queue(forward.queue), forward.messages)) };
  });
  admission.check();
  const answers = decided.map((item): AckAnswer => {
    if (item === undefined) return { outcome: "stale" };
    acknowledge(queue, item.entry);
    return { outcome: "acked", forwarded: item.plans.map((plan) => admission.store(plan)) };
  });
  for (const item of decided) {
    for (const plan of item?.plans ?? []) store.changed(plan.queue.name);
  }
  return answers;
}

function checkForwards(store: MemoryStore, items: readonly AckItem[], maxMessageBytes: number): void {
  let bytes = 0;
  for (const { forward = [] } of items) {
    if (!Array.isArray(forward)) throw new QueueFSError("invalid-argument", `forward must be an array, got ${quote(forward)}`);
    for (const { queue, messages } of forward as NonNullable<AckItem["forward"]>) {
      store.queue(queue);
      checkMessages(messages, maxMessageBytes);
      for (const message of messages) bytes += message.data.length;
    }
  }
  if (bytes > maxMessageBytes) {
    throw new QueueFSError(
      "message-too-large",
      `the messages forwarded by one call have ${bytes} bytes together, which exceeds the limit of ${maxMessageBytes}; split the call`,
    );
  }
}

/** Answers without content are shared, and frozen. */
const ACKED: AckAnswer = Object.freeze({ outcome: "acked", forwarded: Object.freeze([]) });
const STALE: AckAnswer = Object.freeze({ outcome: "stale" });

/** Removes messages that forward nothing. */
export function acknowledgeAll(queue: QueueState, items: readonly AckItem[]): AckAnswer[] {
  const [only] = items;
  if (items.length === 1 && only !== undefined) return [acknowledgeReceipt(queue, only.receipt)];
  return items.map((item) => acknowledgeReceipt(queue, item.receipt));
}

function acknowledgeReceipt(queue: QueueState, receipt: Receipt): AckAnswer {
  const entry = queue.processing.find(receipt);
  if (entry === undefined) return STALE;
  acknowledge(queue, entry);
  return ACKED;
}
