/** Routes that tell how far queues are, and that wait for them. */

import { isQueueFSError, QueueFSError, quote } from "../../core/errors.ts";
import { MAX_LONG_POLL_MS } from "../../core/limits.ts";
import type { Mark, QueueSelection, QueueStatus } from "../../core/message.ts";
import { parseQueueName } from "../../core/names.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { waitComplete } from "../../queue/wait.ts";
import { asObject, type Call, properties, queueOf, type Route, type RouteAnswer, selectionOf } from "../route.ts";

/** The body of a wait, as a table. */
export const WAIT_BODY = {
  selection: { type: "json", meaning: "which queues: { queues: […] } or { under: … }" },
  timeoutMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_LONG_POLL_MS,
    default: MAX_LONG_POLL_MS,
    meaning: "how long to wait, in milliseconds",
  },
  upTo: { type: "choice", choices: ["now"], meaning: "wait only for what was enqueued before" },
} as const satisfies OptionTable;

const NAMES = ["invalid-name", "reserved-name", "queue-not-found"] as const;

async function wait(call: Call): Promise<RouteAnswer> {
  const { json } = await call.body();
  const { selection: given, timeoutMs, upTo } = readOptions("a wait", WAIT_BODY, asObject("the body", json ?? {}));
  const selection = selectionOf(call, given);
  const { looks } = call.polls;
  let last: readonly QueueStatus[] | undefined;
  try {
    const statuses = await call.polls.run(timeoutMs, call.signal, (allowedMs, signal) =>
      waitComplete(looks, selection, {
        timeoutMs: allowedMs,
        signal,
        ...(upTo === undefined ? {} : { upTo }),
        onProgress: (judged) => {
          last = judged;
        },
      }),
    );
    return { json: { complete: true, statuses } };
  } catch (error) {
    call.signal.throwIfAborted();
    const isOver = isQueueFSError(error, "timed-out") || call.polls.drained.aborted;
    if (!isOver) throw error;
    return { json: { complete: false, statuses: last ?? (await presentStatuses(call, selection)) } };
  }
}

async function presentStatuses(call: Call, selection: QueueSelection): Promise<readonly QueueStatus[]> {
  return call.backend.statuses(selection);
}

/** Statuses, marks and waits. */
export const STATUS_ROUTES: readonly Route[] = [
  {
    name: "queue.status",
    method: "GET",
    path: "/queues/{queue}/status",
    summary: "Pending and processing of one queue, read together",
    access: "read",
    scope: "queue",
    answers: { 200: { description: "Both numbers", schema: "Status" } },
    errors: NAMES,
    async handle(call) {
      const { pending, processing } = await call.backend.status(queueOf(call));
      return { json: { pending, processing } };
    },
  },
  {
    name: "queue.statistics",
    method: "GET",
    path: "/queues/{queue}/statistics",
    summary: "Counts, ages and settings of a queue",
    access: "read",
    scope: "queue",
    answers: { 200: { description: "The statistics", schema: "Statistics" } },
    errors: NAMES,
    handle: async (call) => ({ json: await call.backend.statistics(queueOf(call)) }),
  },
  {
    name: "queue.next-due",
    method: "GET",
    path: "/queues/{queue}/next-due",
    summary: "How long until a dequeue may find something merely because time passed",
    access: "read",
    scope: "queue",
    answers: { 200: { description: "The time, or null", schema: "NextDue" } },
    errors: NAMES,
    handle: async (call) => ({ json: { dueMs: (await call.backend.nextDue(queueOf(call))) ?? null } }),
  },
  {
    name: "statuses",
    method: "POST",
    path: "/statuses",
    summary: "The status of several queues, all in one snapshot",
    access: "read",
    scope: "body",
    body: { description: "Which queues", schema: "Selection", required: true, types: ["application/json"] },
    answers: { 200: { description: "The statuses", schema: "Statuses" } },
    errors: NAMES,
    async handle(call) {
      const { json } = await call.body();
      return { json: { statuses: await call.backend.statuses(selectionOf(call, json)) } };
    },
  },
  {
    name: "mark",
    method: "POST",
    path: "/marks",
    summary: "This moment, to be waited for: all that was enqueued before it",
    access: "read",
    scope: "body",
    body: { description: "Which queues", schema: "Selection", required: true, types: ["application/json"] },
    answers: { 200: { description: "The mark", schema: "Mark" } },
    errors: NAMES,
    async handle(call) {
      const { json } = await call.body();
      return { json: await call.backend.mark(selectionOf(call, json)) };
    },
  },
  {
    name: "mark.reached",
    method: "POST",
    path: "/marks/reached",
    summary: "Whether all that was enqueued before a mark is settled",
    access: "read",
    scope: "body",
    body: { description: "The mark", schema: "Mark", required: true, types: ["application/json"] },
    answers: { 200: { description: "The verdict, and the snapshot it was judged by", schema: "MarkAnswer" } },
    errors: NAMES,
    async handle(call) {
      const { json } = await call.body();
      const { queues } = properties(json, ["queues"]);
      if (!Array.isArray(queues)) throw new QueueFSError("invalid-argument", `a mark must be as POST /marks gave it, got ${quote(json)}`);
      const places = queues.map((each: unknown) => {
        const { queue, place } = asObject("a place of a mark", each);
        if (typeof place !== "string") throw new QueueFSError("invalid-argument", `a place of a mark must be a text, got ${quote(place)}`);
        return { queue: parseQueueName(queue), place };
      });
      for (const { queue } of places) call.caller.needQueue(queue);
      const mark: Mark = { queues: places };
      return { json: await call.backend.reached(mark) };
    },
  },
  {
    name: "wait",
    method: "POST",
    path: "/wait",
    summary: "Waits until queues are complete, and gives the snapshot that said so",
    description: "After timeoutMs the answer is complete: false with the last snapshot; ask again to wait on.",
    access: "read",
    scope: "body",
    slow: "waits",
    body: { description: "Which queues, and how long", schema: "Wait", required: true, types: ["application/json"] },
    answers: { 200: { description: "The verdict, and the snapshot it was judged by", schema: "Completion" } },
    errors: [...NAMES, "overloaded"],
    handle: wait,
  },
];
