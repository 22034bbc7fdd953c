/** The shapes of bodies, as JSON Schema (2020-12, as OpenAPI 3.1 has it), by name. A test holds real answers to them. */

import { ERROR_TABLE } from "../core/errors.ts";
import type { OptionRow, OptionTable } from "../core/options.ts";
import { QUEUE_SETTINGS } from "../core/request.ts";
import { TASK_STATUSES } from "../core/task.ts";
import { NEW_TASK_OPTIONS, PRODUCER_OPTIONS, SEAL_OPTIONS, TASK_CHANGE_OPTIONS, TASK_KEEP_OPTIONS } from "../core/task-request.ts";

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

const text = (description: string): Schema => ({ type: "string", description });
const count = (description: string): Schema => ({ type: "integer", minimum: 0, description });
const instant = (description: string): Schema => ({ type: "string", format: "date-time", description });
const list = (items: Schema, description?: string): Schema => ({
  type: "array",
  items,
  ...(description === undefined ? {} : { description }),
});
const choice = (...choices: readonly string[]): Schema => ({ enum: choices });
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

/** An object with these properties and no others; those whose names end in `?` may be absent. */
function object(shape: Readonly<Record<string, Schema>>, description?: string): Schema {
  const names = Object.keys(shape);
  return {
    type: "object",
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ""), shape[name]])),
    required: names.filter((name) => !name.endsWith("?")),
    additionalProperties: false,
  };
}

/** One row of an option table as a schema. */
export function optionSchema(row: OptionRow): Schema {
  const { meaning: description } = row;
  const standard = "default" in row && row.default !== undefined && row.default !== "" ? { default: row.default } : {};
  switch (row.type) {
    case "integer":
      return { type: "integer", minimum: row.minimum, maximum: row.maximum, ...standard, description };
    case "choice":
      return { enum: row.choices, ...standard, description };
    case "boolean":
      return { type: "boolean", ...standard, description };
    case "text":
      return { type: "string", ...standard, description };
    case "json":
      return { description };
    case "object":
      return { type: "object", description };
  }
}

function options(table: OptionTable, more: Readonly<Record<string, Schema>> = {}): Schema {
  return object(
    Object.fromEntries([...Object.entries(table).map(([name, row]) => [`${name}?`, optionSchema(row)]), ...Object.entries(more)]),
  );
}

const items = (name: string): Schema =>
  object({ items: list(ref(name)), "next?": text("asks for the page after this one; absent on the last") });
const answers = (schema: Schema): Schema => object({ answers: list(schema, "one for each item, in their order") });

const STATUS = {
  pending: count("messages in nobody's hands, those that are delayed included"),
  processing: count("messages in somebody's hands"),
};
const MESSAGE = {
  id: text("the id of the message"),
  data: text("the text, when the bytes are valid UTF-8; their base64 otherwise"),
  "encoding?": { enum: ["base64"], description: "present when `data` is base64" },
  timestamp: instant("when it was enqueued"),
  deliveries: count("how many deliveries were begun and not released"),
  "task?": text("the task that owns it"),
};
const DEAD_LETTER = { ...MESSAGE, reason: text("why it was given up on"), diedAt: instant("when") };
const DELAY = { type: "integer", minimum: 0, description: "not to be delivered before so many milliseconds have passed" };
const RECEIPT = text("the name of the delivery");

/** All shapes, by name. */
export const SCHEMAS = {
  Problem: object(
    {
      type: text("`urn:queuefs:error:` and the code"),
      title: text("what the code means"),
      status: { type: "integer", minimum: 400, maximum: 599 },
      detail: text("what was wrong in this case, with which value, and what to do"),
      code: { enum: Object.keys(ERROR_TABLE), description: "the row of the error table" },
      retryable: { type: "boolean", description: "whether the very same request may succeed later" },
    },
    "An error (RFC 9457).",
  ),
  Store: object({
    kind: text("memory, sqlite, redis"),
    location: text("where the state is, for people"),
    durable: { type: "boolean", description: "whether what was enqueued outlives the server" },
    sharedBy: choice("process", "host", "hosts"),
    storeId: text("differs between stores"),
    maxMessageBytes: count("bytes of one message, and of all of one request"),
    instance: text("differs between two lives of the server"),
    version: text("of the server"),
  }),
  Queues: object({ items: list(text("a queue")), "next?": text("asks for the page after this one; absent on the last") }),
  Settings: options(QUEUE_SETTINGS),
  QueueMade: object({ outcome: choice("created", "exists") }),
  Removed: object({ removed: count("how many") }),
  NewMessage: object({
    data: text("the text, or base64"),
    "encoding?": { enum: ["base64"] },
    "id?": text("chosen by the caller, which makes a repeat safe"),
    "delayMs?": DELAY,
    "task?": text("the task that is to own it"),
  }),
  NewMessages: object({ messages: list(ref("NewMessage")) }),
  EnqueueAnswer: object({ outcome: choice("enqueued", "repeated", "conflict"), id: text("the id of the message") }),
  EnqueueAnswers: answers(ref("EnqueueAnswer")),
  Message: object(MESSAGE),
  ListedMessage: object({ ...MESSAGE, state: choice("pending", "processing") }),
  ListedMessages: items("ListedMessage"),
  Peeked: object({ message: { anyOf: [ref("Message"), { type: "null" }] } }),
  Dequeue: object({
    "limit?": { type: "integer", minimum: 1, maximum: 1_000, default: 1, description: "messages at most" },
    "leaseMs?": { type: "integer", minimum: 10, description: "how long each delivery may be held, in milliseconds" },
    "requestId?": text("makes a repeat safe: the same id gets the same deliveries"),
    "owner?": { enum: ["process", "receipt"], description: "accepted and without effect: a delivery belongs to whoever knows its receipt" },
    "waitMs?": { type: "integer", minimum: 0, maximum: 60_000, default: 0, description: "how long to wait for a message, in milliseconds" },
  }),
  Delivery: object({ ...MESSAGE, receipt: RECEIPT, leaseMs: count("how long it may be held, in milliseconds") }),
  Deliveries: object({ messages: list(ref("Delivery")) }),
  Forward: object({ queue: text("the queue"), messages: list(ref("NewMessage")) }),
  Acks: object({ items: list(object({ receipt: RECEIPT, "forward?": list(ref("Forward"), "stored in the very step that acks") })) }),
  AckAnswers: answers(
    object({ outcome: choice("acked", "stale"), "forwarded?": list(list(ref("EnqueueAnswer")), "one list for each forward") }),
  ),
  Ids: object({ ids: list(text("the id of a message")) }),
  AckByIdAnswers: answers(choice("acked", "not-in-processing")),
  RedriveAnswers: answers(choice("redriven", "not-found")),
  DropAnswers: answers(choice("dropped", "not-found")),
  Nacks: object({
    items: list(
      object({
        receipt: RECEIPT,
        "delayMs?": DELAY,
        "reason?": text("why, kept with the message"),
        "giveUp?": { type: "boolean", description: "whether to move it to the dead letters" },
      }),
    ),
  }),
  NackAnswers: answers(choice("pending", "dead", "cancelled", "stale")),
  Receipts: object({ receipts: list(RECEIPT) }),
  ReleaseAnswers: answers(choice("released", "cancelled", "stale")),
  Extensions: object({ items: list(object({ receipt: RECEIPT, leaseMs: count("the lease from now, in milliseconds") })) }),
  ExtendAnswers: answers(choice("extended", "stale")),
  Status: object(STATUS),
  Statistics: object({
    ...STATUS,
    delayed: count("pending ones whose time has not come"),
    dead: count("dead letters now"),
    enqueued: count("messages ever stored"),
    delivered: count("deliveries ever begun"),
    acked: count("messages ever acked"),
    returned: count("deliveries that ended with the message pending again"),
    deadLettered: count("messages ever moved to the dead letters"),
    cleared: count("messages ever removed by clear, or because their task was cancelled"),
    "oldestPendingMs?": { type: "number", description: "age of the oldest pending message, in milliseconds" },
    "oldestProcessingMs?": { type: "number", description: "age of the oldest message in processing, in milliseconds" },
    createdAtMs: count("when the queue was made, in milliseconds since 1970"),
    settings: ref("Settings"),
  }),
  NextDue: object({
    dueMs: {
      type: ["number", "null"],
      description: "milliseconds until a dequeue may find something because time passed; null when time alone brings nothing",
    },
  }),
  DeadLetter: object(DEAD_LETTER),
  DeadLetters: items("DeadLetter"),
  Selection: {
    oneOf: [object({ queues: list(text("a queue")) }), object({ under: text("at and under this path; empty for all") })],
  },
  QueueStatus: object({ queue: text("the queue"), ...STATUS }),
  Statuses: object({ statuses: list(ref("QueueStatus"), "all of one snapshot") }),
  Mark: object({ queues: list(object({ queue: text("the queue"), place: text("opaque") })) }),
  MarkAnswer: object({ reached: { type: "boolean" }, statuses: list(ref("QueueStatus")) }),
  Wait: object({
    selection: ref("Selection"),
    "timeoutMs?": { type: "integer", minimum: 0, maximum: 60_000, default: 60_000, description: "how long to wait, in milliseconds" },
    "upTo?": { enum: ["now"], description: "wait only for what was enqueued before" },
  }),
  Completion: object({
    complete: { type: "boolean", description: "false when the time was over first" },
    statuses: list(object({ queue: text("the queue"), ...STATUS, "cleared?": count("messages that clear removed meanwhile") })),
  }),
  NewTask: object({
    task: options(NEW_TASK_OPTIONS, {
      type: text("what kind of work it is"),
      "keepMs?": options(TASK_KEEP_OPTIONS),
      "producer?": options(PRODUCER_OPTIONS),
    }),
    "batches?": list(ref("Forward"), "its first messages, stored in the same step"),
  }),
  Task: object({
    id: text("the id of the task"),
    type: text("what kind of work it is"),
    "resource?": text("what it is about"),
    status: choice(...TASK_STATUSES),
    "stage?": text("the step it is in"),
    progress: object({
      total: count("messages ever stored for it"),
      done: count("of these: acked"),
      failed: count("moved to the dead letters, or removed with or from their queue"),
      cancelled: count("removed because it was cancelled"),
      unacked: count("pending or processing"),
    }),
    sealed: { type: "boolean" },
    "meta?": { description: "whatever its maker keeps with it" },
    "result?": { description: "what came out of it" },
    "error?": object({ reason: text("the first failure"), "queue?": text("of the message that failed"), "message?": text("that message") }),
    "retryOf?": text("the task whose dead letters it tries again"),
    createdAt: instant("when it was made"),
    updatedAt: instant("when it last changed"),
    "finishedAt?": instant("when it ended"),
  }),
  CreatedTask: object({
    outcome: choice("created", "exists"),
    task: ref("Task"),
    "producer?": text("the name of its producer"),
    "enqueued?": list(list(ref("EnqueueAnswer"))),
  }),
  Tasks: items("Task"),
  TaskChange: options(TASK_CHANGE_OPTIONS),
  Seal: options(SEAL_OPTIONS),
  SealedTask: object({ outcome: choice("sealed", "stale"), task: ref("Task") }),
  Cancel: object({ "reason?": text("why") }),
  CancelledTask: object({
    task: ref("Task"),
    removed: count("messages removed"),
    more: { type: "boolean", description: "whether to ask again" },
  }),
  RedriveTask: object({ into: text("the task that is to own them; may be the same") }),
  RedrivenTask: object({
    redriven: count("dead letters that are pending again"),
    more: { type: "boolean", description: "whether to ask again" },
  }),
  Renewals: object({
    items: list(object({ task: text("the task"), producer: text("its producer"), leaseMs: count("the lease from now") })),
  }),
  RenewalAnswers: answers(choice("renewed", "stale")),
  TaskFailure: object({ ...DEAD_LETTER, queue: text("its queue") }),
  TaskFailures: items("TaskFailure"),
  Events: text(
    "server-sent events, each with an id and JSON as data. `change`: queues (null for any) and tasks changed. `snapshot`: the statuses of all queues asked for. `status`: those that changed, and names of removed ones. `task`: the task. `removed`: the task is gone. `gap`: more was missed than is remembered; what follows is all there is now.",
  ),
  Recovered: object({ recovered: count("deliveries ended"), dead: count("of these: dead letters"), more: { type: "boolean" } }),
  Findings: object({
    findings: list(
      object({ severity: choice("ok", "warning", "error"), check: text("what was checked"), message: text("what was found") }),
    ),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

/** The name of a shape. */
export type SchemaName = keyof typeof SCHEMAS;
