/** Routes of consumers: taking messages, and settling what was taken. */

import { MAX_LEASE_MS, MAX_LONG_POLL_MS, MIN_LEASE_MS } from "../../core/limits.ts";
import type { DeliveredMessage, DequeueOptions, ExtendItem, NackItem } from "../../core/message.ts";
import type { MessageId, QueueName, Receipt } from "../../core/names.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { checkDequeue, DEQUEUE_OPTIONS } from "../../core/request.ts";
import { acksFromWire, messageToWire, REQUEST_HEADER, SESSION_HEADER } from "../../core/wire.ts";
import { MESSAGES_TYPE } from "../../core/wire-bytes.ts";
import { asObject, type Call, properties, property, queueOf, type Route, type RouteAnswer } from "../route.ts";
import { giveBack } from "../waiting-room.ts";

/** The body of a dequeue, as a table. */
export const DEQUEUE_BODY = {
  ...DEQUEUE_OPTIONS,
  leaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    meaning: "how long each delivery may be held, in milliseconds",
  },
  waitMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_LONG_POLL_MS,
    default: 0,
    meaning: "how long to wait for a message when there is none, in milliseconds",
  },
} as const satisfies OptionTable;

const NAMES = ["invalid-name", "reserved-name", "queue-not-found"] as const;

/** Whether the client numbers its requests, so that a repeat gets the answer of this one. */
function isNumbered(call: Call): boolean {
  return call.header(SESSION_HEADER) !== undefined && call.header(REQUEST_HEADER) !== undefined;
}

async function dequeue(call: Call): Promise<RouteAnswer> {
  const queue = queueOf(call);
  const { json } = await call.body();
  const { waitMs, limit, leaseMs = call.leaseMs, requestId } = readOptions("dequeue", DEQUEUE_BODY, asObject("the body", json ?? {}));
  // Over HTTP a delivery belongs to whoever knows its receipt: the process that the store sees is the server.
  const options: DequeueOptions = { limit, leaseMs, owner: "receipt", ...(requestId === undefined ? {} : { requestId }) };
  checkDequeue(options);
  const messages = await take(call, queue, options, waitMs);
  // Whoever gave a request id may ask again for what was taken; what anybody else was to get and did not, is for others.
  if (requestId === undefined) await keepOrGiveBack(call, queue, messages);
  return { json: { messages: messages.map((message) => messageToWire(message, call.beside)) } };
}

function take(call: Call, queue: QueueName, options: DequeueOptions, waitMs: number): Promise<DeliveredMessage[]> {
  // Without a signal where nothing is waited for: it would cost more than the rest.
  if (waitMs === 0 && !call.isGone) return call.backend.dequeue(queue, options);
  const { polls, signal } = call;
  return polls.run(waitMs, signal, (allowedMs) => polls.room.take(queue, options, allowedMs, signal));
}

async function keepOrGiveBack(call: Call, queue: QueueName, messages: readonly DeliveredMessage[]): Promise<void> {
  if (messages.length === 0) return;
  if (call.isGone) {
    await giveBack(call.backend, queue, messages);
    call.signal.throwIfAborted();
  }
  if (!isNumbered(call)) call.onLost(() => void giveBack(call.backend, queue, messages));
}

/** Deliveries of a queue. */
export const DELIVERY_ROUTES: readonly Route[] = [
  {
    name: "queue.dequeue",
    method: "POST",
    path: "/queues/{queue}/dequeue",
    summary: "Hands out the oldest messages that are available, and waits for some if asked to",
    description:
      "No message within waitMs is an empty array. What was taken for a client that went away before the answer was written is given back; with a requestId it is kept for the repeat instead, until its lease ends.",
    access: "write",
    scope: "queue",
    slow: "waits",
    remembered: true,
    body: { description: "How many, for how long", schema: "Dequeue", required: false, types: ["application/json"] },
    answers: { 200: { description: "The deliveries", schema: "Deliveries" } },
    errors: [...NAMES, "id-conflict", "overloaded"],
    handle: dequeue,
  },
  {
    name: "queue.ack",
    method: "POST",
    path: "/queues/{queue}/ack",
    summary: "Removes messages by receipt, and stores what they forward, all in one step",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The deliveries that are done", schema: "Acks", required: true, types: ["application/json", MESSAGES_TYPE] },
    answers: { 200: { description: "What became of each", schema: "AckAnswers" } },
    errors: [...NAMES, "message-too-large", "store-full", "task-not-found", "task-ended"],
    async handle(call) {
      const { json, beside } = await call.body();
      const items = acksFromWire(properties(json, ["items"]).items, beside);
      beside?.end();
      for (const { forward = [] } of items) for (const { queue } of forward) call.caller.needQueue(queue);
      return { json: { answers: await call.backend.ack(queueOf(call), items) } };
    },
  },
  {
    name: "queue.ack-by-id",
    method: "POST",
    path: "/queues/{queue}/ack-by-id",
    summary: "Removes messages in processing by id; pending ones are never removed",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The messages", schema: "Ids", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "AckByIdAnswers" } },
    errors: NAMES,
    handle: async (call) => ({ json: { answers: await call.backend.ackById(queueOf(call), await property<MessageId[]>(call, "ids")) } }),
  },
  {
    name: "queue.nack",
    method: "POST",
    path: "/queues/{queue}/nack",
    summary: "Gives messages back after a failure, or gives them up",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The deliveries that failed", schema: "Nacks", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "NackAnswers" } },
    errors: NAMES,
    handle: async (call) => ({ json: { answers: await call.backend.nack(queueOf(call), await property<NackItem[]>(call, "items")) } }),
  },
  {
    name: "queue.release",
    method: "POST",
    path: "/queues/{queue}/release",
    summary: "Gives messages back as if they had not been delivered",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The deliveries", schema: "Receipts", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "ReleaseAnswers" } },
    errors: NAMES,
    handle: async (call) => ({ json: { answers: await call.backend.release(queueOf(call), await property<Receipt[]>(call, "receipts")) } }),
  },
  {
    name: "queue.extend",
    method: "POST",
    path: "/queues/{queue}/extend",
    summary: "Renews leases, counted from now",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The deliveries", schema: "Extensions", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "ExtendAnswers" } },
    errors: NAMES,
    handle: async (call) => ({ json: { answers: await call.backend.extend(queueOf(call), await property<ExtendItem[]>(call, "items")) } }),
  },
];
