/** Bringing messages back: ended leases, dead owners, delays that are over. */

import { RECOVERY_STEP_ITEMS } from "../../core/limits.ts";
import type { Recovered } from "../../core/message.ts";
import { usedUpReason } from "../../core/request.ts";
import { buryMessage } from "./dead-letters.ts";
import { isProvablyGone } from "./host.ts";
import { DELAYED, PROCESSING, READY } from "./place.ts";
import type { QueueRow, Step, StoreContext } from "./step.ts";

/** Queues that the sweep reads at a time. */
const SLOTS_PER_LOOK = 200;

type DuePlace = [sequence: number, state: number, deliveryCount: number, chosen: number, reason: string | null];

/**
 * Makes due messages of one queue available, or dead letters of them, in bounded steps until one is available or no more is due.
 *
 * @returns how many deliveries ended, and of these how many messages died
 */
export function recoverQueue(step: Step, queue: QueueRow): { recovered: number; dead: number; more: boolean } {
  let recovered = 0;
  let dead = 0;
  if (queue.processing === 0 && queue.delayed === 0) return { recovered, dead, more: false };
  for (;;) {
    const places = step.sql.duePlaces.all(queue.slot, step.nowMs, RECOVERY_STEP_ITEMS) as DuePlace[];
    for (const [sequence, state, deliveryCount, chosen, reason] of places) {
      if (state === DELAYED) {
        step.sql.giveBack.run(READY, null, null, deliveryCount, reason, queue.slot, sequence);
        queue.delayed -= 1;
        queue.ready += 1;
      } else {
        recovered += 1;
        if (endDelivery(step, queue, sequence, deliveryCount, chosen, reason)) dead += 1;
      }
    }
    if (places.length > 0) step.touch(queue);
    if (places.length < RECOVERY_STEP_ITEMS) return { recovered, dead, more: false };
    if (queue.pending > queue.delayed) return { recovered, dead, more: true };
  }
}

/** Ends a delivery nobody answered for: pending again, or dead when its deliveries are used up. Answers whether it died. */
function endDelivery(step: Step, queue: QueueRow, sequence: number, deliveryCount: number, chosen: number, reason: string | null): boolean {
  queue.processing -= 1;
  if (queue.maxDeliveries > 0 && deliveryCount >= queue.maxDeliveries) {
    buryMessage(step, queue, sequence, deliveryCount, chosen, usedUpReason(deliveryCount, reason ?? ""));
    return true;
  }
  step.sql.giveBack.run(READY, null, null, deliveryCount, reason, queue.slot, sequence);
  queue.pending += 1;
  queue.ready += 1;
  queue.returned += 1;
  return false;
}

/** One bounded step over all queues: due leases and delays first, then deliveries of processes that are gone. */
export function recoverStep(step: Step, goneSessions: readonly number[]): Recovered {
  let recovered = 0;
  let dead = 0;
  let more = false;
  for (let slot = 0; recovered < RECOVERY_STEP_ITEMS; ) {
    const slots = (step.sql.activeSlots.all(slot, SLOTS_PER_LOOK) as [number][]).map(([active]) => active);
    for (const active of slots) {
      const queue = step.queueAtSlot(active);
      const result = queue === undefined ? { recovered: 0, dead: 0, more: false } : recoverQueue(step, queue);
      recovered += result.recovered;
      dead += result.dead;
      more ||= result.more;
    }
    if (slots.length < SLOTS_PER_LOOK) break;
    slot = slots.at(-1) as number;
  }
  more ||= recovered >= RECOVERY_STEP_ITEMS;
  const gone = recoverGone(step, goneSessions);
  return { recovered: recovered + gone.recovered, dead: dead + gone.dead, more: more || gone.more };
}

/** Sessions whose process provably no longer exists. */
export function findGoneSessions({ sql }: StoreContext): number[] {
  return (sql.sessions.all() as [number, number, string, string][])
    .filter(([, processId, started, namespace]) => isProvablyGone({ processId, started, namespace }))
    .map(([number]) => number);
}

function recoverGone(step: Step, goneSessions: readonly number[]): Recovered {
  let recovered = 0;
  let dead = 0;
  for (const number of goneSessions) {
    const places = step.sql.placesOfSession.all(number, RECOVERY_STEP_ITEMS) as [number, ...DuePlace][];
    for (const [slot, sequence, state, deliveryCount, chosen, reason] of places) {
      const queue = step.queueAtSlot(slot);
      if (queue === undefined || state !== PROCESSING) {
        // A queue cleared or removed since: its rows are being deleted anyway.
        step.sql.deletePlace.run(slot, sequence);
        continue;
      }
      recovered += 1;
      if (endDelivery(step, queue, sequence, deliveryCount, chosen, reason)) dead += 1;
      step.touch(queue);
    }
    if (places.length === RECOVERY_STEP_ITEMS) return { recovered, dead, more: true };
    step.sql.deleteSession.run(number);
  }
  return { recovered, dead, more: false };
}
