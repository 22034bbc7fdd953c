/** Bringing messages back: ended leases, dead owners, delays that are over. */

import { RECOVERY_STEP_ITEMS } from "../../core/limits.ts";
import type { Recovered } from "../../core/message.ts";
import { usedUpReason } from "../../core/request.ts";
import { buryMessage } from "./dead-letters.ts";
import { isProvablyGone } from "./host.ts";
import { DELAYED, PROCESSING, READY } from "./place.ts";
import type { QueueRow, Step, StoreContext } from "./step.ts";
import { withdraw } from "./task-cancelling.ts";
import { isTaskRecoveryDue, recoverTasks, sealForSession } from "./task-recovery.ts";

/** Queues that the sweep reads at a time. */
const SLOTS_PER_LOOK = 200;

/** Places that one step looks through for those of a process that is gone: some 2 milliseconds. */
const PLACES_PER_LOOK = 20_000;

type DuePlace = [sequence: number, state: number, deliveryCount: number, chosen: number, task: number | null, reason: string | null];

/** Before a dequeue looks: makes due messages of its queue available, in batches, until one is available or no more is due. */
export function recoverForDequeue(step: Step, queue: QueueRow): void {
  while (recoverQueue(step, queue, RECOVERY_STEP_ITEMS).taken === RECOVERY_STEP_ITEMS && queue.pending === queue.delayed);
}

/** Makes due messages of one queue available, or dead letters of them, `limit` at most. `taken` counts them, ended delays included. */
function recoverQueue(step: Step, queue: QueueRow, limit: number): { taken: number; recovered: number; dead: number } {
  if (queue.processing === 0 && queue.delayed === 0) return { taken: 0, recovered: 0, dead: 0 };
  let recovered = 0;
  let dead = 0;
  const places = step.sql.duePlaces.all(queue.slot, step.nowMs, limit) as DuePlace[];
  for (const place of places) {
    const [sequence, state, deliveryCount, , , reason] = place;
    if (state === DELAYED) {
      step.sql.giveBack.run(READY, null, null, deliveryCount, reason, queue.slot, sequence);
      queue.delayed -= 1;
      queue.ready += 1;
    } else {
      recovered += 1;
      if (endDelivery(step, queue, place)) dead += 1;
    }
  }
  if (places.length > 0) step.touch(queue);
  return { taken: places.length, recovered, dead };
}

/** Ends a delivery nobody answered for: pending again, dead when its deliveries are used up, or removed with its task. Answers whether it died. */
function endDelivery(step: Step, queue: QueueRow, [sequence, , deliveryCount, chosen, task, reason]: DuePlace): boolean {
  if (task !== null && step.tasks.isCancelling(task)) {
    withdraw(step, queue, sequence, PROCESSING, chosen, task);
    return false;
  }
  queue.processing -= 1;
  if (queue.maxDeliveries > 0 && deliveryCount >= queue.maxDeliveries) {
    buryMessage(step, queue, sequence, deliveryCount, chosen, task, usedUpReason(deliveryCount, reason ?? ""));
    return true;
  }
  step.sql.giveBack.run(READY, null, null, deliveryCount, reason, queue.slot, sequence);
  queue.pending += 1;
  queue.ready += 1;
  queue.returned += 1;
  return false;
}

/**
 * Whether a step would find anything to do. A look needs no lock: so processes with nothing to do keep nobody waiting, and one that is
 * stopped while it sleeps holds nothing that others need.
 */
export function isRecoveryDue(context: StoreContext, goneSessions: readonly number[]): boolean {
  if (goneSessions.length > 0 || isTaskRecoveryDue(context)) return true;
  const { sql, clock } = context;
  const nowMs = clock.monotonicMs();
  let slots: [number][];
  let slot = 0;
  do {
    slots = sql.activeSlots.all(slot, SLOTS_PER_LOOK) as [number][];
    for (const [active] of slots) {
      slot = active;
      if (sql.isDue.get(active, nowMs) !== undefined) return true;
    }
  } while (slots.length === SLOTS_PER_LOOK);
  return false;
}

/** How far the search for the deliveries of a process that is gone has come. */
export interface Search {
  readonly session: number;
  readonly slot: number;
  readonly sequence: number;
}

/** What a step did, and where the next one goes on: to be remembered once it is committed. */
export interface RecoveryStep extends Recovered {
  readonly search: Search | undefined;
}

/**
 * One bounded step over all queues: due leases and delays first, then deliveries of processes that are gone, then what is due of tasks.
 *
 * @param search where the step before stopped
 */
export function recoverStep(step: Step, goneSessions: readonly number[], search: Search | undefined): RecoveryStep {
  let left = RECOVERY_STEP_ITEMS;
  let recovered = 0;
  let dead = 0;
  let slots: [number][];
  let slot = 0;
  do {
    slots = step.sql.activeSlots.all(slot, SLOTS_PER_LOOK) as [number][];
    for (const [active] of slots) {
      slot = active;
      const queue = step.queueAtSlot(active);
      if (queue === undefined || left === 0) continue;
      const result = recoverQueue(step, queue, left);
      left -= result.taken;
      recovered += result.recovered;
      dead += result.dead;
    }
  } while (slots.length === SLOTS_PER_LOOK && left > 0);
  const gone = recoverGone(step, goneSessions, search, left);
  const moreOfTasks = recoverTasks(step);
  return {
    recovered: recovered + gone.recovered,
    dead: dead + gone.dead,
    more: left === 0 || gone.more || moreOfTasks,
    search: gone.search,
  };
}

/** Sessions whose process provably no longer exists. */
export function findGoneSessions({ sql }: StoreContext): number[] {
  return (sql.sessions.all() as [number, number, string, string][])
    .filter(([, processId, started, namespace]) => isProvablyGone({ processId, started, namespace }))
    .map(([number]) => number);
}

/** Goes through the places, session by session, until one of the two bounds of a step is reached. */
function recoverGone(step: Step, goneSessions: readonly number[], search: Search | undefined, limit: number): RecoveryStep {
  let recovered = 0;
  let dead = 0;
  let toLook = PLACES_PER_LOOK;
  for (const session of goneSessions) {
    const from = search?.session === session ? search : { session, slot: 0, sequence: 0 };
    if (recovered >= limit || toLook <= 0 || sealForSession(step, session)) return { recovered, dead, more: true, search: from };
    const stretch = recoverStretch(step, from, toLook, limit - recovered);
    recovered += stretch.recovered;
    dead += stretch.dead;
    toLook -= stretch.looked;
    if (stretch.search !== undefined) return { recovered, dead, more: true, search: stretch.search };
    step.sql.deleteSession.run(session);
  }
  return { recovered, dead, more: false, search: undefined };
}

/** Recovers what a session holds among the next `toLook` places. No `search` comes back when these were the last. */
function recoverStretch(
  step: Step,
  from: Search,
  toLook: number,
  limit: number,
): { recovered: number; dead: number; looked: number; search: Search | undefined } {
  const { session } = from;
  const [endSlot, endSequence, looked] = step.sql.endOfPlaces.get(from.slot, from.sequence, toLook) as [
    number | null,
    number | null,
    number,
  ];
  if (endSlot === null || endSequence === null) return { recovered: 0, dead: 0, looked, search: undefined };
  let dead = 0;
  let recovered = 0;
  const places = step.sql.placesOfSession.all(from.slot, from.sequence, endSlot, endSequence, session, limit) as [number, ...DuePlace][];
  for (const [slot, ...place] of places) {
    const [sequence, state] = place;
    const queue = step.queueAtSlot(slot);
    if (queue === undefined || state !== PROCESSING) {
      // A queue cleared or removed since: its rows are being deleted anyway.
      step.sql.deletePlace.run(slot, sequence);
      continue;
    }
    recovered += 1;
    if (endDelivery(step, queue, place)) dead += 1;
    step.touch(queue);
  }
  const last = places.at(-1);
  if (places.length === limit && last !== undefined)
    return { recovered, dead, looked, search: { session, slot: last[0], sequence: last[1] } };
  return { recovered, dead, looked, search: looked === toLook ? { session, slot: endSlot, sequence: endSequence } : undefined };
}
