/** Waiting for a state of a queue: woken by the store itself, never by time. */

import type { Backend } from "../../src/backend/contract.ts";
import type { Status } from "../../src/core/message.ts";
import type { QueueName } from "../../src/core/names.ts";

/** Resolves with all statuses seen, once one is as wanted. It looks whenever the store tells of a change; the test's own timeout bounds it. */
export function untilStatus(backend: Backend, queue: QueueName, isWanted: (status: Status) => boolean): Promise<Status[]> {
  const seen: Status[] = [];
  return new Promise((resolve, reject) => {
    let isOver = false;
    const look = (): void => {
      backend.status(queue).then((status) => {
        if (isOver) return;
        seen.push(status);
        if (!isWanted(status)) return;
        isOver = true;
        unsubscribe();
        resolve(seen);
      }, reject);
    };
    const unsubscribe = backend.subscribe(look);
    look();
  });
}
