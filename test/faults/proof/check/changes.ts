/** How many messages were certainly, and possibly, in which state: as changes over time, for each queue. */

import { sweepsOf } from "./bounds.ts";
import type { Indexed } from "./index-history.ts";
import { heldUntil, leaseEndsAtLatest } from "./leases.ts";
import { type Delivery, type Life, MS } from "./life.ts";

/** What is counted of each queue. */
export const COUNTED = {
  /** Certainly unacked. */
  least: 0,
  /** Possibly unacked. */
  most: 1,
  /** Certainly pending. */
  pending: 2,
  /** Certainly in processing. */
  processing: 3,
  /** Certainly there for a dequeue, since it was enqueued or given back. */
  available: 4,
  /** The same, and those whose lease has ended. */
  due: 5,
} as const;

/** One of them. */
export type Counted = (typeof COUNTED)[keyof typeof COUNTED];

/** A stretch of time in which a message was certainly there for a dequeue. */
export interface Available {
  readonly life: Life;
  readonly from: number;
  readonly to: number;
}

/** Changes of counts, unsorted, in columns since there are millions. */
export class Changes {
  readonly times: number[] = [];
  /** Which queue and count: queue index times 8 plus count; or a link of two queues, see {@link Changes.links}. */
  readonly keys: number[] = [];
  readonly by: number[] = [];
  readonly queues: string[] = [];
  /** Forwards in the air between two queues: key -(index + 1). */
  readonly links: { readonly source: number; readonly targets: readonly number[] }[] = [];
  readonly available = new Map<string, Available[]>();
  readonly #indexes = new Map<string, number>();
  readonly #linkIndexes = new Map<string, number>();

  /** The number of a queue, a new one if need be. */
  queue(name: string): number {
    const known = this.#indexes.get(name);
    if (known !== undefined) return known;
    this.#indexes.set(name, this.queues.length);
    this.queues.push(name);
    return this.queues.length - 1;
  }

  span(queue: string, counted: Counted, from: number, to: number, by = 1): void {
    if (from < to) this.#add(this.queue(queue) * 8 + counted, from, to, by);
  }

  link(source: string, targets: readonly string[], from: number, to: number): void {
    if (!(from < to)) return;
    const name = [source, ...targets].join(" ");
    let index = this.#linkIndexes.get(name);
    if (index === undefined) {
      index = this.links.length;
      this.#linkIndexes.set(name, index);
      this.links.push({ source: this.queue(source), targets: targets.map((target) => this.queue(target)) });
    }
    this.#add(-index - 1, from, to, 1);
  }

  #add(key: number, from: number, to: number, by: number): void {
    this.times.push(from, to);
    this.keys.push(key, key);
    this.by.push(by, -by);
  }
}

function addAvailable(changes: Changes, life: Life, from: number, to: number, isByLease: boolean): void {
  if (!(from < to)) return;
  if (!isByLease) changes.span(life.queue, COUNTED.available, from, to);
  changes.span(life.queue, COUNTED.due, from, to);
  const list = changes.available.get(life.queue) ?? [];
  changes.available.set(life.queue, list);
  list.push({ life, from, to });
}

function addDelivery(changes: Changes, delivery: Delivery, { promises }: Indexed): void {
  const { life, end, next, uses } = delivery;
  changes.span(life.queue, COUNTED.processing, end, heldUntil(delivery));
  const until = Math.min(next, life.from);
  const returned = uses.find(({ kind, outcome }) => outcome === "ok" && (kind === "nack" || kind === "release"));
  if (returned !== undefined) {
    changes.span(life.queue, COUNTED.pending, returned.end, until);
    if (returned.delayMs === 0) addAvailable(changes, life, returned.end, until, false);
    return;
  }
  // A nack with a delay that nobody saw answered may keep it away.
  if (uses.some(({ outcome, delayMs }) => outcome === "info" && delayMs > 0)) return;
  if (uses.some(({ kind, outcome }) => kind === "ack" && outcome === "ok")) return;
  // One whose answer came late, by a repeat of its request, may lie before another that still holds the message.
  const before = life.deliveries[life.deliveries.indexOf(delivery) - 1];
  if (before !== undefined && before.end > delivery.begin) return;
  addAvailable(changes, life, leaseEndsAtLatest(delivery) + promises.recoveryMs * MS, until, true);
}

function addLife(changes: Changes, life: Life, indexed: Indexed): void {
  if (life.born === Number.POSITIVE_INFINITY) return;
  changes.span(life.queue, COUNTED.most, life.born, life.by);
  changes.span(life.queue, COUNTED.least, life.sure, life.from);
  const first = life.deliveries.reduce((earliest, { begin }) => Math.min(earliest, begin), life.from);
  changes.span(life.queue, COUNTED.pending, life.sure, first);
  addAvailable(changes, life, life.sure, first, false);
  for (const delivery of life.deliveries) addDelivery(changes, delivery, indexed);
}

/** While a forward is in the air, either the message or what it forwards is unacked, though neither certainly. */
function addLinks(changes: Changes, { deliveries }: Indexed): void {
  for (const { life, uses } of deliveries) {
    for (const { forward, outcome } of uses) {
      if (forward === undefined || outcome !== "ok" || forward.outcome !== "ok") continue;
      const followers = forward.storings.filter(({ life: follower }) => follower.storings.length === 1);
      if (followers.length === 0) continue;
      const sure = Math.min(...followers.map(({ life: follower }) => follower.sure));
      const gone = Math.min(...followers.map(({ life: follower }) => follower.from));
      changes.link(life.queue, [...new Set(followers.map(({ life: follower }) => follower.queue))], life.from, Math.min(sure, gone));
    }
  }
}

/** All changes that the messages of a history make. */
export function changesOf(indexed: Indexed): Changes {
  const changes = new Changes();
  for (const life of indexed.lives.values()) addLife(changes, life, indexed);
  addLinks(changes, indexed);
  for (const { queue, begin, end, limit, leaseMs } of indexed.hidden) {
    // Nobody knows which messages it took, only how many at most, nor when they are found to be free again.
    changes.span(queue, COUNTED.pending, begin, Number.POSITIVE_INFINITY, -limit);
    changes.span(queue, COUNTED.available, begin, Number.POSITIVE_INFINITY, -limit);
    changes.span(queue, COUNTED.due, begin, end + (leaseMs + indexed.promises.recoveryMs) * MS, -limit);
  }
  for (const { queue, begin, end, limit } of indexed.resent)
    for (const counted of [COUNTED.pending, COUNTED.available, COUNTED.due]) changes.span(queue, counted, begin, end, -limit);
  // While a queue is removed there is nothing to be counted; what is left of the counts is that of the messages themselves.
  for (const queue of sweepsOf(indexed.operations).keys()) changes.queue(queue);
  return changes;
}
