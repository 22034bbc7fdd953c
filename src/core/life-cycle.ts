/**
 * The life of a message as a table. The documentation prints it, the model in queuefs/testing follows it, and the backends
 * are held to it by the conformance and model tests. `undefined` means: the event cannot happen in that state; a call that
 * tries gets the answer "stale", "not-in-processing" or nothing, and changes nothing.
 */

/** Where a message can be. `absent`: not yet stored. `removed` is final. */
export const MESSAGE_STATES = ["absent", "pending", "processing", "dead", "removed"] as const;
/** Where a message can be. */
export type MessageState = (typeof MESSAGE_STATES)[number];

/** What can happen to a message. */
export const MESSAGE_EVENTS = {
  enqueue: { absent: "pending" },
  dequeue: { pending: "processing" },
  ack: { processing: "removed" },
  nack: { processing: "pending" },
  "give up": { processing: "dead" },
  release: { processing: "pending" },
  extend: { processing: "processing" },
  recovery: { processing: "pending" },
  "deliveries used up": { processing: "dead" },
  quarantine: { pending: "dead" },
  redrive: { dead: "pending" },
  drop: { dead: "removed" },
  clear: { pending: "removed", processing: "removed" },
  // A message in processing is removed by what would make it pending again: nack, release, recovery.
  "cancel task": { pending: "removed", processing: "removed" },
  "remove queue": { pending: "removed", processing: "removed", dead: "removed" },
} as const satisfies Record<string, Partial<Record<MessageState, MessageState>>>;

/** What can happen to a message. */
export type MessageEvent = keyof typeof MESSAGE_EVENTS;

/** The state that follows, or `undefined` when `event` cannot happen in `state`. */
export function nextState(state: MessageState, event: MessageEvent): MessageState | undefined {
  return (MESSAGE_EVENTS[event] as Partial<Record<MessageState, MessageState>>)[state];
}
