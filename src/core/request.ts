/**
 * Checks of what a caller asks of a backend, shared by all of them so that every backend refuses the same things with the same
 * words. Each function returns the checked value with its defaults filled in.
 */

import { QueueFSError, quote } from "./errors.ts";
import {
  DEFAULT_LEASE_MS,
  DEFAULT_MAX_DELIVERIES,
  DEFAULT_PAGE_ITEMS,
  MAX_BATCH_ITEMS,
  MAX_DELAY_MS,
  MAX_DEQUEUE_LIMIT,
  MAX_LEASE_MS,
  MAX_MAX_DELIVERIES,
  MAX_PAGE_ITEMS,
  MAX_REASON_CHARACTERS,
  MAX_SNAPSHOT_QUEUES,
  MIN_LEASE_MS,
} from "./limits.ts";
import type { AckItem, DequeueOptions, ExtendItem, NackItem, NewMessage, PageOptions, QueueSelection, QueueSettings } from "./message.ts";
import { parseChosenMessageId, parseRequestId, parseTaskId } from "./names.ts";
import { checkInteger, type OptionTable, readOptions } from "./options.ts";

/** Options of a dequeue, as a table. */
export const DEQUEUE_OPTIONS = {
  limit: { type: "integer", minimum: 1, maximum: MAX_DEQUEUE_LIMIT, default: 1, meaning: "messages at most" },
  leaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    default: DEFAULT_LEASE_MS,
    meaning: "how long each delivery may be held, in milliseconds",
  },
  owner: { type: "choice", choices: ["process", "receipt"], default: "process", meaning: "who holds the deliveries" },
  requestId: { type: "text", meaning: "makes a repeat after a lost reply safe" },
} as const satisfies OptionTable;

/** Settings of a queue, as a table. */
export const QUEUE_SETTINGS = {
  maxDeliveries: {
    type: "integer",
    minimum: 0,
    maximum: MAX_MAX_DELIVERIES,
    default: DEFAULT_MAX_DELIVERIES,
    meaning: "deliveries after which a message becomes a dead letter, 0 for never",
  },
} as const satisfies OptionTable;

/** Options of every paged listing, as a table. */
export const PAGE_OPTIONS = {
  after: { type: "text", meaning: "`next` of the page before" },
  limit: { type: "integer", minimum: 1, maximum: MAX_PAGE_ITEMS, default: DEFAULT_PAGE_ITEMS, meaning: "entries at most" },
  under: { type: "text", default: "", meaning: "at and under this path" },
} as const satisfies OptionTable;

/** What a dequeue asks, complete. */
export interface DequeueRequest {
  readonly limit: number;
  readonly leaseMs: number;
  readonly owner: "process" | "receipt";
  readonly requestId?: string;
}

const DEQUEUE_DEFAULTS: DequeueRequest = readOptions("dequeue", DEQUEUE_OPTIONS, undefined);

/** Checks a dequeue. @throws QueueFSError `invalid-argument`, `invalid-name` */
export function checkDequeue(options: DequeueOptions | undefined): DequeueRequest {
  // Most calls give none: filling the table in costs as much as handing out a message from memory.
  if (options === undefined) return DEQUEUE_DEFAULTS;
  const values = readOptions("dequeue", DEQUEUE_OPTIONS, options);
  if (values.requestId !== undefined) parseRequestId(values.requestId);
  return values;
}

/** Checks the settings of a new queue and fills in the defaults. @throws QueueFSError `invalid-argument` */
export function checkNewSettings(settings: Partial<QueueSettings> | undefined): QueueSettings {
  return readOptions("queue settings", QUEUE_SETTINGS, settings);
}

/** Checks changed settings, leaving out those not given. @throws QueueFSError `invalid-argument` */
export function checkChangedSettings(settings: Partial<QueueSettings>): Partial<QueueSettings> {
  const values = readOptions("queue settings", QUEUE_SETTINGS, settings);
  return settings.maxDeliveries === undefined ? {} : { maxDeliveries: values.maxDeliveries };
}

/** Checks which page is asked for. @throws QueueFSError `invalid-argument` */
export function checkPage(options: (PageOptions & { readonly under?: string }) | undefined): {
  after?: string;
  limit: number;
  under: string;
} {
  return readOptions("a listing", PAGE_OPTIONS, options);
}

/** Checks the number of items of one call. @throws QueueFSError `invalid-argument` */
export function checkBatch<Item>(what: string, items: readonly Item[]): readonly Item[] {
  if (!Array.isArray(items)) throw new QueueFSError("invalid-argument", `${what} takes an array, got ${quote(items)}`);
  if (items.length > MAX_BATCH_ITEMS)
    throw new QueueFSError(
      "invalid-argument",
      `${what} takes at most ${MAX_BATCH_ITEMS} items in one call, got ${items.length}; split them`,
    );
  return items;
}

const MESSAGE_KEYS: ReadonlySet<string> = new Set(["data", "id", "delayMs", "task"]);
const ACK_KEYS: ReadonlySet<string> = new Set(["receipt", "forward"]);
const NACK_KEYS: ReadonlySet<string> = new Set(["receipt", "delayMs", "reason", "giveUp"]);
const FORWARD_KEYS: ReadonlySet<string> = new Set(["queue", "messages"]);
const EXTEND_KEYS: ReadonlySet<string> = new Set(["receipt", "leaseMs"]);

/** Refuses what is no object, and misspelt properties, which would be ignored in silence: a delay that is none, a message that is not given up. */
function checkItem(what: string, item: unknown, usual: string, keys: ReadonlySet<string>): void {
  if (typeof item !== "object" || item === null)
    throw new QueueFSError("invalid-argument", `each item of ${what} must be an object, got ${quote(item)}`);
  for (const key in item) {
    // Most items have no other, and finding it in the set takes longer.
    if (key !== usual && !keys.has(key))
      throw new QueueFSError("invalid-argument", `an item of ${what} has no property ${quote(key)}; it has ${[...keys].join(", ")}`);
  }
}

function checkReceiptItem(what: string, item: { readonly receipt: unknown }, keys: ReadonlySet<string>): void {
  checkItem(what, item, "receipt", keys);
  if (typeof item.receipt !== "string")
    throw new QueueFSError("invalid-argument", `receipt in an item of ${what} must be a text, got ${quote(item.receipt)}`);
}

/** Checks ids or receipts given alone. @throws QueueFSError `invalid-argument` */
export function checkTexts<Text extends string>(what: string, texts: readonly Text[]): readonly Text[] {
  checkBatch(what, texts);
  for (const text of texts) {
    if (typeof text !== "string") throw new QueueFSError("invalid-argument", `each item of ${what} must be a text, got ${quote(text)}`);
  }
  return texts;
}

/** Checks acks; what they forward is checked by the backend, message by message. @throws QueueFSError `invalid-argument` */
export function checkAcks(items: readonly AckItem[]): readonly AckItem[] {
  checkBatch("ack", items);
  for (const item of items) {
    checkReceiptItem("ack", item, ACK_KEYS);
    if (item.forward === undefined) continue;
    if (!Array.isArray(item.forward)) throw new QueueFSError("invalid-argument", `forward must be an array, got ${quote(item.forward)}`);
    for (const forward of item.forward as readonly unknown[]) checkItem("forward", forward, "queue", FORWARD_KEYS);
  }
  return items;
}

/** Checks messages to be stored: types, ids, delays, and the sizes of each and of all. @throws QueueFSError `invalid-argument`, `invalid-name`, `message-too-large` */
export function checkMessages(messages: readonly NewMessage[], maxMessageBytes: number): readonly NewMessage[] {
  checkBatch("enqueue", messages);
  let total = 0;
  for (const message of messages) {
    if (!(message?.data instanceof Uint8Array))
      throw new QueueFSError(
        "invalid-argument",
        `data of a message must be a Uint8Array, got ${quote(message?.data)}; encode text with TextEncoder`,
      );
    checkItem("enqueue", message, "data", MESSAGE_KEYS);
    total += message.data.byteLength;
    if (message.data.byteLength > maxMessageBytes) {
      throw new QueueFSError(
        "message-too-large",
        `a message of ${message.data.byteLength} bytes exceeds the limit of ${maxMessageBytes}; store the content elsewhere and enqueue a reference, or raise maxMessageBytes`,
      );
    }
    if (message.id !== undefined) parseChosenMessageId(message.id);
    if (message.delayMs !== undefined) checkInteger("delayMs", message.delayMs, 0, MAX_DELAY_MS);
    if (message.task !== undefined) parseTaskId(message.task);
  }
  if (total > maxMessageBytes && messages.length > 1) {
    throw new QueueFSError(
      "message-too-large",
      `the ${messages.length} messages of one call have ${total} bytes together, which exceeds the limit of ${maxMessageBytes}; split them`,
    );
  }
  return messages;
}

/** Checks nacks. @throws QueueFSError `invalid-argument` */
export function checkNacks(items: readonly NackItem[]): readonly NackItem[] {
  checkBatch("nack", items);
  for (const item of items) {
    checkReceiptItem("nack", item, NACK_KEYS);
    if (item.delayMs !== undefined) checkInteger("delayMs", item.delayMs, 0, MAX_DELAY_MS);
    if (item.giveUp !== undefined && typeof item.giveUp !== "boolean")
      throw new QueueFSError("invalid-argument", `giveUp must be true or false, got ${quote(item.giveUp)}`);
  }
  return items;
}

/** Checks extensions. @throws QueueFSError `invalid-argument` */
export function checkExtensions(items: readonly ExtendItem[]): readonly ExtendItem[] {
  checkBatch("extend", items);
  for (const item of items) {
    checkReceiptItem("extend", item, EXTEND_KEYS);
    checkInteger("leaseMs", item.leaseMs, MIN_LEASE_MS, MAX_LEASE_MS);
  }
  return items;
}

/** Checks which queues a snapshot covers. @throws QueueFSError `invalid-argument` for anything but exactly one of `queues` and `under` */
export function checkSelection(selection: QueueSelection): QueueSelection {
  const given: Record<string, unknown> | undefined = typeof selection === "object" && selection !== null ? { ...selection } : undefined;
  const [key, ...more] = Object.keys(given ?? {});
  const value = key === undefined ? undefined : given?.[key];
  const isGood =
    more.length === 0 &&
    ((key === "queues" && Array.isArray(value) && value.every((name) => typeof name === "string")) ||
      (key === "under" && typeof value === "string"));
  // Taken for "no queues", a slip here would answer that all is complete.
  if (!isGood || Array.isArray(selection)) {
    throw new QueueFSError(
      "invalid-argument",
      `queues are selected by { queues: [names] } or { under: path }, and nothing else, got ${quote(selection)}`,
    );
  }
  if ("queues" in selection && selection.queues.length > MAX_SNAPSHOT_QUEUES) {
    throw new QueueFSError(
      "invalid-argument",
      `a snapshot takes at most ${MAX_SNAPSHOT_QUEUES} named queues, got ${selection.queues.length}; select them by a path they lie under`,
    );
  }
  return selection;
}

/** The reason of a nack in a form that any store can keep: no NUL, no lone surrogates, at most 4,096 characters. */
export function storableReason(reason: unknown): string {
  if (reason === undefined) return "";
  const text = typeof reason === "string" ? reason : quote(reason);
  return text
    .slice(0, MAX_REASON_CHARACTERS)
    .replaceAll("\0", "\u2400")
    .replace(/[\ud800-\udfff]/gu, "\ufffd");
}

/** The words of the reason when a message's deliveries are used up without one. */
export function usedUpReason(deliveryCount: number, lastReason: string): string {
  return lastReason === "" ? `deliveries used up (${deliveryCount}): the last lease ended or its owner died` : lastReason;
}
