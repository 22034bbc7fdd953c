/** S8: who was enqueued first, and is there, is handed out first. */

import type { Available, Changes } from "./changes.ts";
import type { Indexed } from "./index-history.ts";
import type { Delivery, HiddenDequeue } from "./life.ts";
import type { Findings } from "./promises.ts";

/** The stretch that ends last among those of messages stored before some rank. */
class LastOfPrefix {
  readonly #best: (Available | undefined)[];

  constructor(size: number) {
    this.#best = new Array<Available | undefined>(size + 1);
  }

  add(rank: number, available: Available): void {
    for (let index = rank + 1; index < this.#best.length; index += index & -index) {
      const best = this.#best[index];
      if (best === undefined || best.to < available.to) this.#best[index] = available;
    }
  }

  /** Among ranks below `rank`. */
  before(rank: number): Available | undefined {
    let best: Available | undefined;
    for (let index = rank; index > 0; index -= index & -index) {
      const candidate = this.#best[index];
      if (candidate !== undefined && (best === undefined || best.to < candidate.to)) best = candidate;
    }
    return best;
  }
}

function countBelow(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function checkQueue(
  deliveries: readonly Delivery[],
  stretches: readonly Available[],
  hiddenFrom: number,
  resent: readonly HiddenDequeue[],
  findings: Findings,
): void {
  const stored = Float64Array.from(stretches, ({ life }) => life.sure).sort();
  const last = new LastOfPrefix(stored.length);
  const begun = stretches.toSorted((left, right) => left.from - right.from);
  let added = 0;
  for (const { life, begin, end, operation } of deliveries.toSorted((left, right) => left.begin - right.begin)) {
    for (let next = begun[added]; next !== undefined && next.from <= begin; next = begun[added]) {
      last.add(countBelow(stored, next.life.sure), next);
      added += 1;
    }
    // A dequeue whose answer nobody saw may hold any of them.
    if (end > hiddenFrom || resent.some((other) => other.begin < end && other.end > begin)) continue;
    const older = last.before(countBelow(stored, life.born));
    findings.looked("S8", older !== undefined && older.to >= begin);
    if (older === undefined || older.to <= end) continue;
    findings.violated(
      "S8",
      `${life.value} was handed out although ${older.life.value}, enqueued before it, was there`,
      older.life.storings[0]?.operation,
      life.storings[0]?.operation,
      ...older.life.deliveries.flatMap(({ operation: taken, uses }) => [taken, ...uses.map((use) => use.operation)]).slice(0, 6),
      operation,
    );
  }
}

/** Checks the order of handing out in all queues. */
export function checkOrder(indexed: Indexed, { available }: Changes, findings: Findings): void {
  const byQueue = new Map<string, Delivery[]>();
  for (const delivery of indexed.deliveries) {
    const list = byQueue.get(delivery.life.queue);
    if (list === undefined) byQueue.set(delivery.life.queue, [delivery]);
    else list.push(delivery);
  }
  for (const [queue, deliveries] of byQueue) {
    const hiddenFrom = Math.min(
      ...indexed.hidden.filter((hidden) => hidden.queue === queue).map(({ begin }) => begin),
      Number.POSITIVE_INFINITY,
    );
    checkQueue(
      deliveries,
      available.get(queue) ?? [],
      hiddenFrom,
      indexed.resent.filter((other) => other.queue === queue),
      findings,
    );
  }
}
