/** Routes about the store as a whole. */

import type { Route } from "../route.ts";

/** What the store is, its care and its health. */
export const STORE_ROUTES: readonly Route[] = [
  {
    name: "store.describe",
    method: "GET",
    path: "/store",
    summary: "What the store is, and which server this is",
    access: "read",
    scope: "none",
    answers: { 200: { description: "The store", schema: "Store" } },
    errors: [],
    async handle({ backend, instance, version }) {
      const { kind, location, durable, sharedBy, storeId, maxMessageBytes } = backend.description;
      return { json: { kind, location, durable, sharedBy, storeId, maxMessageBytes, instance, version } };
    },
  },
  {
    name: "store.recover",
    method: "POST",
    path: "/recover",
    summary: "One bounded step of recovery in all queues and tasks",
    description: "Open stores do this by themselves; more often is harmless.",
    access: "write",
    scope: "store",
    answers: { 200: { description: "What it did", schema: "Recovered" } },
    errors: [],
    handle: async ({ backend }) => ({ json: await backend.recover() }),
  },
  {
    name: "store.inspect",
    method: "GET",
    path: "/inspect",
    summary: "Looks over the whole store",
    description: "May take as long as the store is large.",
    access: "read",
    scope: "store",
    slow: "looks-at-all",
    answers: { 200: { description: "What was found", schema: "Findings" } },
    errors: [],
    handle: async ({ backend }) => ({ json: { findings: await backend.inspect() } }),
  },
];
