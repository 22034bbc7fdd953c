/** All routes of the native API. What is served and what `/openapi.json` says both come from here. */

import type { Route } from "../route.ts";
import { DEAD_LETTER_ROUTES } from "./dead-letters.ts";
import { DELIVERY_ROUTES } from "./deliveries.ts";
import { EVENT_ROUTES } from "./events.ts";
import { MESSAGE_ROUTES } from "./messages.ts";
import { PRODUCER_ROUTES } from "./producers.ts";
import { QUEUE_ROUTES } from "./queues.ts";
import { STATUS_ROUTES } from "./status.ts";
import { STORE_ROUTES } from "./store.ts";
import { TASK_ROUTES } from "./tasks.ts";

/** Routes by subject. */
export const SUBJECTS = {
  Store: STORE_ROUTES,
  Queues: QUEUE_ROUTES,
  Messages: MESSAGE_ROUTES,
  Deliveries: DELIVERY_ROUTES,
  "Dead letters": DEAD_LETTER_ROUTES,
  "Status and waiting": STATUS_ROUTES,
  Tasks: [...TASK_ROUTES, ...PRODUCER_ROUTES],
  Events: EVENT_ROUTES,
} as const satisfies Readonly<Record<string, readonly Route[]>>;

/** All routes. */
export const ROUTES: readonly Route[] = Object.values(SUBJECTS).flat();
