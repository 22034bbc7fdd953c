/** Routes about messages that were given up on. */

import type { MessageId } from "../../core/names.ts";
import { messageToWire } from "../../core/wire.ts";
import { property, queueOf, type Route } from "../route.ts";
import { PAGE_QUERY } from "./messages.ts";

const NAMES = ["invalid-name", "reserved-name", "queue-not-found"] as const;

/** Dead letters of a queue. */
export const DEAD_LETTER_ROUTES: readonly Route[] = [
  {
    name: "queue.dead-letters",
    method: "GET",
    path: "/queues/{queue}/dead-letters",
    summary: "Dead letters in the order they came",
    access: "read",
    scope: "queue",
    query: PAGE_QUERY,
    answers: { 200: { description: "A page of dead letters", schema: "DeadLetters" } },
    errors: NAMES,
    async handle(call) {
      const { items, next } = await call.backend.deadLetters(queueOf(call), call.query(PAGE_QUERY));
      return { json: { items: items.map((letter) => messageToWire(letter, call.beside)), ...(next === undefined ? {} : { next }) } };
    },
  },
  {
    name: "queue.redrive",
    method: "POST",
    path: "/queues/{queue}/redrive",
    summary: "Makes dead letters pending again, at their old places",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The dead letters", schema: "Ids", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "RedriveAnswers" } },
    errors: NAMES,
    handle: async (call) => ({ json: { answers: await call.backend.redrive(queueOf(call), await property<MessageId[]>(call, "ids")) } }),
  },
  {
    name: "queue.drop",
    method: "POST",
    path: "/queues/{queue}/drop",
    summary: "Removes dead letters for good",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The dead letters", schema: "Ids", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "DropAnswers" } },
    errors: NAMES,
    handle: async (call) => ({ json: { answers: await call.backend.drop(queueOf(call), await property<MessageId[]>(call, "ids")) } }),
  },
];
