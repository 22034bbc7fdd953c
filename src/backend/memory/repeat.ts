/** A dequeue with a request id: the same request again gets the first answer. */

import type { Random } from "../../core/clock.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import type { DeliveredMessage } from "../../core/message.ts";
import type { DequeueRequest } from "../../core/request.ts";
import { deliver } from "./deliveries.ts";
import type { QueueState } from "./queue-state.ts";
import type { RememberedAnswer } from "./remembered.ts";
import { type Bounds, checkRoomForAnswer } from "./totals.ts";

/** Answers that one call looks at for forgetting: more than it adds. */
const PURGE_PER_ANSWER = 4;

/**
 * Hands out messages for a request with an id, or answers as before: also when the messages were acked or cleared meanwhile, whose
 * receipts are then stale. An empty answer is not remembered.
 *
 * @throws QueueFSError `id-conflict`, `store-full`
 */
export function deliverOnce(
  queue: QueueState,
  request: DequeueRequest,
  nowMs: number,
  configuration: { readonly random: Random; readonly bounds: Bounds; readonly rememberMs: number },
): DeliveredMessage[] {
  const { answers } = queue;
  const { totals, copies } = queue.resources;
  const requestId = request.requestId as string;
  const known = answers.find(requestId, nowMs);
  if (known !== undefined) {
    checkSame(known, request);
    return known.messages.map((message) => ({ ...message, data: copies.copyBytes(message.data, 0, message.data.length) }));
  }
  answers.purge(nowMs, PURGE_PER_ANSWER);
  checkRoomForAnswer(totals, configuration.bounds);
  const delivered = deliver(queue, request, nowMs, configuration.random);
  if (delivered.length === 0) return delivered;
  let bytes = 0;
  const messages = delivered.map((message) => {
    bytes += message.data.length;
    return { ...message, data: new Uint8Array(message.data) };
  });
  answers.add({ requestId, request, messages, bytes, untilMs: nowMs + configuration.rememberMs });
  return delivered;
}

function checkSame(known: RememberedAnswer, request: DequeueRequest): void {
  for (const name of ["limit", "leaseMs", "owner"] as const) {
    if (known.request[name] !== request[name]) throw conflict(known.requestId, `with ${name} ${quote(known.request[name])}`);
  }
}

function conflict(requestId: string, difference: string): QueueFSError {
  return new QueueFSError("id-conflict", `request id ${quote(requestId)} was used before ${difference}; use a new one for a new request`);
}
