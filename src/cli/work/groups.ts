/** Which messages one program gets together. */

import type { Delivery } from "../../queue/delivery.ts";

/** Messages that one program gets: all of one task, or all of none, so that what it enqueues for them has one owner. */
export type Group = readonly Delivery<Uint8Array>[];

/** Puts messages into groups of at most `size`, each within its task, in the order of their first messages. */
export function groupsOf(deliveries: Group, size: number): Group[] {
  const groups: Delivery<Uint8Array>[][] = [];
  /** The group of each task that is not full yet. */
  const filling = new Map<string | undefined, Delivery<Uint8Array>[]>();
  for (const delivery of deliveries) {
    let group = filling.get(delivery.task);
    if (group === undefined || group.length >= size) {
      group = [];
      groups.push(group);
      filling.set(delivery.task, group);
    }
    group.push(delivery);
  }
  return groups;
}
