/** Routes that store messages and show them. */

import { QueueFSError, quote } from "../../core/errors.ts";
import type { NewMessage } from "../../core/message.ts";
import { type MessageId, parseChosenMessageId, type TaskId } from "../../core/names.ts";
import type { OptionTable } from "../../core/options.ts";
import { PAGE_OPTIONS } from "../../core/request.ts";
import { messageToWire, newMessageFromWire, newMessagesFromWire } from "../../core/wire.ts";
import { MESSAGES_TYPE, parseJson } from "../../core/wire-bytes.ts";
import { tracing } from "../../queue/tracing.ts";
import { bodyText, isJsonType } from "../body.ts";
import { type Call, properties, queueOf, type Route } from "../route.ts";

/** The media type of JSON values in lines. */
const LINES_TYPES: readonly string[] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

/** The query of an enqueue whose body is one message, as a table. */
export const ENQUEUE_QUERY = {
  delayMs: {
    type: "integer",
    minimum: 0,
    maximum: 366 * 24 * 3600 * 1000,
    meaning: "where the body is one message: not to be delivered before so many milliseconds have passed",
  },
  task: { type: "text", meaning: "where the body is one message: the task that is to own it" },
} as const satisfies OptionTable;

const { under: _, ...PAGE } = PAGE_OPTIONS;
/** The query of a page, as a table. */
export const PAGE_QUERY = { ...PAGE } as const satisfies OptionTable;

/** The messages in the body of an enqueue. */
async function messagesOf(call: Call): Promise<NewMessage[]> {
  const { delayMs, task } = call.query(ENQUEUE_QUERY);
  const type = call.contentType;
  const isMany = isJsonType(type) || type === MESSAGES_TYPE || LINES_TYPES.includes(type);
  if (!isMany) {
    const data = await call.bytes();
    return [{ data, ...(delayMs === undefined ? {} : { delayMs }), ...(task === undefined ? {} : { task: task as TaskId }) }];
  }
  if (delayMs !== undefined || task !== undefined)
    throw new QueueFSError(
      "invalid-argument",
      "delayMs and task of the query are for a body that is one message; say them of each message",
    );
  if (LINES_TYPES.includes(type)) {
    const lines = bodyText(await call.bytes()).split("\n");
    return lines.filter((line) => line.trim() !== "").map((line) => newMessageFromWire(parseJson(line)));
  }
  const { json, beside } = await call.body();
  const messages = newMessagesFromWire(properties(json, ["messages"]).messages, beside);
  beside?.end();
  return messages;
}

/** Gives messages without ids those that an idempotency key makes, so that a repeat of the request stores nothing twice. */
function withKey(messages: readonly NewMessage[], key: string | undefined): readonly NewMessage[] {
  if (key === undefined) return withContext(messages);
  const idOf = (index: number): MessageId => parseChosenMessageId(messages.length === 1 ? key : `${key}.${index}`);
  return messages.map((message, index) => (message.id === undefined ? { ...message, id: idOf(index) } : message));
}

/** Gives messages without ids those that carry the context of the request's span, where traces are made. */
function withContext(messages: readonly NewMessage[]): readonly NewMessage[] {
  const trace = tracing();
  if (trace === undefined) return messages;
  return messages.map((message) => {
    const id = message.id ?? trace.messageId();
    return id === undefined ? message : { ...message, id };
  });
}

/** Messages of a queue. */
export const MESSAGE_ROUTES: readonly Route[] = [
  {
    name: "queue.enqueue",
    method: "POST",
    path: "/queues/{queue}/messages",
    summary: "Stores messages, all in one step, in the order given",
    description:
      "JSON and NDJSON hold messages; a body of any other type is one message of exactly these bytes. The header Idempotency-Key gives messages without an id one: the key, or in a batch the key, a dot and the place in the batch.",
    access: "write",
    scope: "queue",
    remembered: true,
    query: ENQUEUE_QUERY,
    body: {
      description: "The messages",
      schema: "NewMessages",
      required: false,
      types: ["application/json", "application/x-ndjson", MESSAGES_TYPE, "application/octet-stream"],
    },
    answers: { 201: { description: "What became of each", schema: "EnqueueAnswers" } },
    errors: [
      "invalid-name",
      "reserved-name",
      "queue-not-found",
      "id-conflict",
      "message-too-large",
      "store-full",
      "task-not-found",
      "task-ended",
    ],
    async handle(call) {
      const key = call.header("idempotency-key");
      const answers = await call.backend.enqueue(queueOf(call), withKey(await messagesOf(call), key));
      // Whoever sends a key may look at the status only, and must not take this for a message that was stored.
      if (key !== undefined && answers.length > 0 && answers.every(({ outcome }) => outcome === "conflict"))
        throw new QueueFSError(
          "id-conflict",
          `the Idempotency-Key ${quote(key)} was used before with another body; nothing was stored: send the same body, or use another key`,
        );
      return { status: 201, json: { answers } };
    },
  },
  {
    name: "queue.messages",
    method: "GET",
    path: "/queues/{queue}/messages",
    summary: "Unacked messages in queue order; changes nothing",
    access: "read",
    scope: "queue",
    query: PAGE_QUERY,
    answers: { 200: { description: "A page of messages", schema: "ListedMessages" } },
    errors: ["invalid-name", "reserved-name", "queue-not-found"],
    async handle(call) {
      const { items, next } = await call.backend.messages(queueOf(call), call.query(PAGE_QUERY));
      return { json: { items: items.map((message) => messageToWire(message, call.beside)), ...(next === undefined ? {} : { next }) } };
    },
  },
  {
    name: "queue.peek",
    method: "GET",
    path: "/queues/{queue}/peek",
    summary: "The message that a dequeue would take now, or null; changes nothing",
    access: "read",
    scope: "queue",
    answers: { 200: { description: "The message", schema: "Peeked" } },
    errors: ["invalid-name", "reserved-name", "queue-not-found"],
    async handle(call) {
      const message = await call.backend.peek(queueOf(call));
      return { json: { message: message === undefined ? null : messageToWire(message, call.beside) } };
    },
  },
];
