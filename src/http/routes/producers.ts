/** The route of producers that are still there. */

import type { ProducerRenewal } from "../../core/task.ts";
import { property, type Route } from "../route.ts";

/** Producers of tasks. */
export const PRODUCER_ROUTES: readonly Route[] = [
  {
    name: "producers.renew",
    method: "POST",
    path: "/producers/renew",
    summary: "Renews the leases of producers, counted from now",
    access: "write",
    scope: "none",
    remembered: true,
    body: { description: "The producers", schema: "Renewals", required: true, types: ["application/json"] },
    answers: { 200: { description: "What became of each", schema: "RenewalAnswers" } },
    errors: ["invalid-name"],
    handle: async (call) => ({ json: { answers: await call.backend.renewProducers(await property<ProducerRenewal[]>(call, "items")) } }),
  },
];
