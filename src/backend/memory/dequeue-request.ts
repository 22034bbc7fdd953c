/** What a dequeue asks, read by the shortest way. */

import { DEFAULT_LEASE_MS, MAX_DEQUEUE_LIMIT, MAX_LEASE_MS, MIN_LEASE_MS } from "../../core/limits.ts";
import type { DequeueOptions } from "../../core/message.ts";
import { checkDequeue, type DequeueRequest } from "../../core/request.ts";

/** What a dequeue without options asks. */
const PLAIN_DEQUEUE: DequeueRequest = { limit: 1, leaseMs: DEFAULT_LEASE_MS, owner: "process" };

/** Reads good options of a dequeue without the general way, which takes longer than the dequeue itself; all others take that way. @throws QueueFSError `invalid-argument`, `invalid-name` */
export function readDequeue(options: DequeueOptions | undefined): DequeueRequest {
  if (options === undefined) return PLAIN_DEQUEUE;
  if (typeof options !== "object" || options === null) return checkDequeue(options);
  for (const name in options) {
    if (name !== "limit" && name !== "leaseMs") return checkDequeue(options);
  }
  const { limit = 1, leaseMs = DEFAULT_LEASE_MS } = options;
  const isGood =
    Number.isInteger(limit) &&
    limit >= 1 &&
    limit <= MAX_DEQUEUE_LIMIT &&
    Number.isInteger(leaseMs) &&
    leaseMs >= MIN_LEASE_MS &&
    leaseMs <= MAX_LEASE_MS;
  return isGood ? { limit, leaseMs, owner: "process" } : checkDequeue(options);
}
