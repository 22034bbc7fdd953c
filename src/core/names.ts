/** Queue names, message ids and receipts: strings that must not be mixed up, with one parser each. */

import { joinBase36 } from "./base36.ts";
import { QueueFSError, quote } from "./errors.ts";
import { MAX_ID_BYTES, MAX_NAME_COMPONENT_BYTES, MAX_NAME_DEPTH, MAX_TASK_ID_BYTES } from "./limits.ts";

declare const brand: unique symbol;

/** The name of a queue: 1 to 32 components of 1 to 255 UTF-8 bytes joined by `/`, without a slash at either end. */
export type QueueName = string & { readonly [brand]: "QueueName" };
/** The id of a message: chosen by the caller, or made by the store (`m-…`). Unique among all messages of its queue. */
export type MessageId = string & { readonly [brand]: "MessageId" };
/** The id of a task: chosen by the caller, or made by the store (`t-…`). */
export type TaskId = string & { readonly [brand]: "TaskId" };
/** The name of one delivery (`r-…`); it dies with that delivery and is never used again. */
export type Receipt = string & { readonly [brand]: "Receipt" };

/** Components that are control files of every queue and so can be no queue's. */
export const RESERVED_COMPONENTS: ReadonlySet<string> = new Set([
  "enqueue",
  "dequeue",
  "peek",
  "size",
  "status",
  "messages",
  "clear",
  "ack",
]);

// C0, DEL and C1.
const CONTROL_CHARACTER = /\p{Cc}/u;
// With the u flag a surrogate pair is one character, so this finds surrogates that stand alone.
const LONE_SURROGATE = /[\ud800-\udfff]/u;
const PLAIN_ASCII = /^[A-Za-z0-9_-]+$/;
const ID_CHARACTERS = /^[^\s]+$/u;
const encoder = new TextEncoder();

/** How many bytes `text` has in UTF-8. */
export function utf8Length(text: string): number {
  return PLAIN_ASCII.test(text) ? text.length : encoder.encode(text).length;
}

/** What is wrong with one component of a queue name, or `undefined` when it is good. */
function componentFault(component: string): readonly ["invalid-name" | "reserved-name", string] | undefined {
  if (component === "") return ["invalid-name", "has an empty component; use single slashes between components and none at the ends"];
  if (component === "." || component === "..") return ["invalid-name", `has the component ${quote(component)}; name the queue itself`];
  if (component.startsWith("."))
    return [
      "reserved-name",
      `has a component that starts with "." (${quote(component)}), which is kept for QueueFS itself; choose another`,
    ];
  if (RESERVED_COMPONENTS.has(component))
    return ["reserved-name", `has the component ${quote(component)}, which is a control file of every queue; choose another`];
  if (PLAIN_ASCII.test(component) && component.length <= MAX_NAME_COMPONENT_BYTES) return undefined;
  if (CONTROL_CHARACTER.test(component)) return ["invalid-name", "holds a NUL or other control character; remove it"];
  if (LONE_SURROGATE.test(component)) return ["invalid-name", "is not valid Unicode (a surrogate stands alone); send valid UTF-8"];
  const bytes = utf8Length(component);
  if (bytes > MAX_NAME_COMPONENT_BYTES)
    return ["invalid-name", `has a component of ${bytes} bytes; the limit is ${MAX_NAME_COMPONENT_BYTES}`];
  return undefined;
}

/**
 * Checks the name of a queue. Names are compared exactly, byte for byte: no case folding, no normalisation.
 *
 * @throws QueueFSError `invalid-name` or `reserved-name`
 */
export function parseQueueName(name: unknown): QueueName {
  if (typeof name !== "string") throw new QueueFSError("invalid-name", `a queue name must be a string, got ${quote(name)}`);
  const components = name.length > (MAX_NAME_COMPONENT_BYTES + 1) * MAX_NAME_DEPTH ? undefined : name.split("/");
  if (components === undefined || components.length > MAX_NAME_DEPTH) {
    throw new QueueFSError(
      "invalid-name",
      `queue name ${quote(name)} is too long or too deep; at most ${MAX_NAME_DEPTH} components of ${MAX_NAME_COMPONENT_BYTES} bytes`,
    );
  }
  for (const component of components) {
    const fault = componentFault(component);
    if (fault) throw new QueueFSError(fault[0], `queue name ${quote(name)} ${fault[1]}`);
  }
  return name as QueueName;
}

/** Whether `queue` is `ancestor` or lies under it. */
export function isWithin(queue: string, ancestor: string): boolean {
  return queue === ancestor || (queue.startsWith(ancestor) && queue.charCodeAt(ancestor.length) === 47);
}

/** Compares two names by their UTF-8 bytes, which is the order of Unicode code points and of every listing. */
export function compareNames(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    let a = left.charCodeAt(index);
    let b = right.charCodeAt(index);
    if (a === b) continue;
    // UTF-16 puts surrogates below U+E000 to U+FFFF, UTF-8 above: move them.
    if (a >= 0xd800 && b >= 0xd800) {
      a = a >= 0xe000 ? a - 0x800 : a + 0x2000;
      b = b >= 0xe000 ? b - 0x800 : b + 0x2000;
    }
    return a - b;
  }
  return left.length - right.length;
}

function checkId(what: string, id: unknown): string {
  if (typeof id !== "string") throw new QueueFSError("invalid-name", `a ${what} must be a string, got ${quote(id)}`);
  if (PLAIN_ASCII.test(id) && id.length <= MAX_ID_BYTES) return id;
  if (id === "") throw new QueueFSError("invalid-name", `a ${what} must not be empty`);
  if (id.length > MAX_ID_BYTES || utf8Length(id) > MAX_ID_BYTES)
    throw new QueueFSError("invalid-name", `${what} ${quote(id)} is longer than ${MAX_ID_BYTES} bytes`);
  if (LONE_SURROGATE.test(id)) throw new QueueFSError("invalid-name", `${what} ${quote(id)} is not valid Unicode`);
  if (CONTROL_CHARACTER.test(id) || !ID_CHARACTERS.test(id))
    throw new QueueFSError("invalid-name", `${what} ${quote(id)} holds white space or a control character; remove it`);
  return id;
}

/**
 * Checks an id that a caller chose for a new message: 1 to 255 UTF-8 bytes, no white space or control characters, and not
 * starting with `m-` or `r-`, which mark ids and receipts made by the store.
 *
 * @throws QueueFSError `invalid-name`
 */
export function parseChosenMessageId(id: unknown): MessageId {
  const text = checkId("message id", id);
  if (text.startsWith("m-") || text.startsWith("r-")) {
    throw new QueueFSError(
      "invalid-name",
      `message id ${quote(text)} starts with ${quote(text.slice(0, 2))}, which marks what the store makes itself; choose another`,
    );
  }
  return text as MessageId;
}

/** Checks the id of an existing message. @throws QueueFSError `invalid-name` */
export function parseMessageId(id: unknown): MessageId {
  return checkId("message id", id) as MessageId;
}

/** Checks the form of a receipt; one that no delivery ever had is stale, not malformed. @throws QueueFSError `invalid-name` */
export function parseReceipt(receipt: unknown): Receipt {
  return checkId("receipt", receipt) as Receipt;
}

/** Checks a request id: 1 to 255 UTF-8 bytes, no white space or control characters. @throws QueueFSError `invalid-name` */
export function parseRequestId(requestId: unknown): string {
  return checkId("request id", requestId);
}

/**
 * The id of a message whose caller chose none. `store` differs between stores, `slot` between lives of a queue (clearing or
 * removing begins a new one), `sequence` within it: so an id is never used again.
 */
export function makeMessageId(store: string, slot: number, sequence: number): MessageId {
  return `m-${store}-${slot.toString(36)}-${sequence.toString(36)}` as MessageId;
}

// Without leading zeros each number has one text, so that one message or delivery has one name.
const MADE_MESSAGE_ID = /^m-([0-9a-z]+)-(0|[1-9a-z][0-9a-z]*)-(0|[1-9a-z][0-9a-z]*)$/;
const MADE_RECEIPT = /^r-(0|[1-9a-z][0-9a-z]*)-(0|[1-9a-z][0-9a-z]*)-(0|[1-9a-z][0-9a-z]*)$/;

/** The place named by an id that this store made, or `undefined` for any other id. */
export function placeOfMessageId(store: string, id: string): { slot: number; sequence: number } | undefined {
  const match = MADE_MESSAGE_ID.exec(id);
  if (!match || match[1] !== store) return undefined;
  const slot = Number.parseInt(match[2] as string, 36);
  const sequence = Number.parseInt(match[3] as string, 36);
  return Number.isSafeInteger(slot) && Number.isSafeInteger(sequence) ? { slot, sequence } : undefined;
}

/** The receipt of one delivery; `token` is what makes it different from all other deliveries of the same message. */
export function makeReceipt(slot: number, sequence: number, token: number): Receipt {
  return joinBase36("r", slot, sequence, token) as Receipt;
}

/** The delivery named by a receipt, or `undefined` when no store can have made it. */
export function placeOfReceipt(receipt: string): { slot: number; sequence: number; token: number } | undefined {
  const match = MADE_RECEIPT.exec(receipt);
  if (!match) return undefined;
  const slot = Number.parseInt(match[1] as string, 36);
  const sequence = Number.parseInt(match[2] as string, 36);
  const token = Number.parseInt(match[3] as string, 36);
  const isSafe = Number.isSafeInteger(slot) && Number.isSafeInteger(sequence) && Number.isSafeInteger(token);
  return isSafe ? { slot, sequence, token } : undefined;
}

const TASK_ID_CHARACTERS = /^[A-Za-z0-9_~@+=-][A-Za-z0-9._~@:+=-]*$/;

/**
 * Checks the id of an existing task: 1 to 128 characters of A-Z a-z 0-9 . _ ~ @ : + = - that do not begin with a dot or colon, so that it is
 * one component of a path.
 *
 * @throws QueueFSError `invalid-name`
 */
export function parseTaskId(id: unknown): TaskId {
  if (typeof id === "string" && id.length <= MAX_TASK_ID_BYTES && TASK_ID_CHARACTERS.test(id)) return id as TaskId;
  throw new QueueFSError(
    "invalid-name",
    `a task id must have 1 to ${MAX_TASK_ID_BYTES} characters of A-Z a-z 0-9 . _ ~ @ : + = - and not begin with a dot or colon, got ${quote(id)}`,
  );
}

/** Checks an id that a caller chose for a new task: as {@link parseTaskId}, and not starting with `t-`. @throws QueueFSError `invalid-name` */
export function parseChosenTaskId(id: unknown): TaskId {
  const parsed = parseTaskId(id);
  if (!parsed.startsWith("t-")) return parsed;
  throw new QueueFSError("invalid-name", `task id ${quote(id)} starts with "t-", which marks what the store makes itself; choose another`);
}

/** The id of a task whose caller chose none. `number` is never used twice in a store. */
export function makeTaskId(store: string, number: number): TaskId {
  return `t-${store}-${number.toString(36)}` as TaskId;
}
