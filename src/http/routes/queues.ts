/** Routes that make, change, list and remove queues. */

import type { QueueSettings } from "../../core/message.ts";
import type { OptionTable } from "../../core/options.ts";
import { checkNewSettings, PAGE_OPTIONS } from "../../core/request.ts";
import { asObject, parseUnder, queueOf, type Route } from "../route.ts";

/** The query of a removal, as a table. */
export const REMOVE_QUERY = {
  recursive: { type: "boolean", default: false, meaning: "whether to remove the queues under it as well" },
} as const satisfies OptionTable;

/** Queues themselves. */
export const QUEUE_ROUTES: readonly Route[] = [
  {
    name: "queue.list",
    method: "GET",
    path: "/queues",
    summary: "Names of the queues at and under a path",
    access: "read",
    scope: "body",
    query: PAGE_OPTIONS,
    answers: { 200: { description: "A page of names", schema: "Queues" } },
    errors: ["invalid-name", "reserved-name"],
    async handle(call) {
      const { under, ...page } = call.query(PAGE_OPTIONS);
      const path = parseUnder(under);
      call.caller.needQueue(path);
      return { json: await call.backend.listQueues({ ...page, under: path }) };
    },
  },
  {
    name: "queue.make",
    method: "PUT",
    path: "/queues/{queue}",
    summary: "Makes a queue; one that is there does not change",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "Settings that differ from their defaults", schema: "Settings", required: false, types: ["application/json"] },
    answers: {
      201: { description: "It was made", schema: "QueueMade" },
      200: { description: "It was there", schema: "QueueMade" },
    },
    errors: ["invalid-name", "reserved-name"],
    async handle(call) {
      const queue = queueOf(call);
      const { json } = await call.body();
      const outcome = await call.backend.createQueue(queue, json === undefined ? undefined : checkNewSettings(asObject("the body", json)));
      return { status: outcome === "created" ? 201 : 200, json: { outcome } };
    },
  },
  {
    name: "queue.configure",
    method: "PATCH",
    path: "/queues/{queue}",
    summary: "Changes settings of a queue, those given",
    access: "write",
    scope: "queue",
    remembered: true,
    body: { description: "The settings to change", schema: "Settings", required: true, types: ["application/json"] },
    answers: { 200: { description: "All settings", schema: "Settings" } },
    errors: ["invalid-name", "reserved-name", "queue-not-found"],
    async handle(call) {
      const queue = queueOf(call);
      const { json } = await call.body();
      return { json: await call.backend.configureQueue(queue, asObject("the body", json) as Partial<QueueSettings>) };
    },
  },
  {
    name: "queue.remove",
    method: "DELETE",
    path: "/queues/{queue}",
    summary: "Removes a queue with its messages and dead letters",
    access: "write",
    scope: "queue",
    remembered: true,
    query: REMOVE_QUERY,
    answers: { 200: { description: "How many queues", schema: "Removed" } },
    errors: ["invalid-name", "reserved-name", "queue-not-found", "not-empty"],
    async handle(call) {
      const { recursive } = call.query(REMOVE_QUERY);
      return { json: { removed: await call.backend.removeQueue(queueOf(call), { recursive }) } };
    },
  },
  {
    name: "queue.clear",
    method: "POST",
    path: "/queues/{queue}/clear",
    summary: "Removes all unacked messages in one step; dead letters stay",
    access: "write",
    scope: "queue",
    remembered: true,
    answers: { 200: { description: "What was removed", schema: "Status" } },
    errors: ["invalid-name", "reserved-name", "queue-not-found"],
    handle: async (call) => ({ json: await call.backend.clear(queueOf(call)) }),
  },
];
