/** The stream of events. */

import { QueueFSError } from "../../core/errors.ts";
import { parseQueueName, parseTaskId } from "../../core/names.ts";
import type { OptionTable } from "../../core/options.ts";
import { type Call, type EventSelection, parseUnder, type Route } from "../route.ts";
import { EVENTS_TYPE } from "../serve-route.ts";

/** The query of the stream of events, as a table. */
export const EVENTS_QUERY = {
  queue: { type: "text", meaning: "the queue whose status is told" },
  under: { type: "text", meaning: "the path of which the statuses of all queues at and under it are told; empty for all" },
  task: { type: "text", meaning: "the task that is told of" },
} as const satisfies OptionTable;

function selectionOf(call: Call): EventSelection {
  const { queue, under, task } = call.query(EVENTS_QUERY);
  if ([queue, under, task].filter((each) => each !== undefined).length > 1)
    throw new QueueFSError("invalid-argument", "a stream has one of queue, under and task; open several for several");
  if (task !== undefined) return { task: parseTaskId(task) };
  if (queue !== undefined) {
    const name = parseQueueName(queue);
    call.caller.needQueue(name);
    return { queue: name };
  }
  if (under === undefined) return {};
  const path = parseUnder(under);
  call.caller.needQueue(path);
  return { under: path };
}

/** Events. */
export const EVENT_ROUTES: readonly Route[] = [
  {
    name: "events",
    method: "GET",
    path: "/events",
    summary: "Hears of changes as they come (server-sent events)",
    description:
      "Without a query: hints that queues or tasks changed, of those that the token is for. With queue or under: their statuses, first all, then those that changed; with task: the task. Last-Event-ID resumes; what is not remembered any more is told as the event gap.",
    access: "read",
    scope: "body",
    query: EVENTS_QUERY,
    answers: { 200: { description: "The stream", schema: "Events", type: EVENTS_TYPE } },
    errors: ["invalid-name", "reserved-name", "queue-not-found", "task-not-found", "overloaded"],
    async handle(call) {
      const reader = await call.events.open(selectionOf(call), call.caller, call.header("last-event-id"));
      // The one who answers cancels the stream when its client goes away; this is for those who went before.
      call.onLost(() => reader.end());
      if (call.signal.aborted) reader.end();
      return { stream: reader.stream };
    },
  },
];
