/**
 * Messages as JSON, the same on every surface: `data` is the text when the bytes are valid UTF-8, and base64 with
 * `"encoding":"base64"` otherwise. Bytes in are bytes out.
 */

import { QueueFSError, quote } from "./errors.ts";
import type { Message, UnackedState } from "./message.ts";
import type { MessageId, Receipt, TaskId } from "./names.ts";

/** The answer of a read that finds no message: never the JSON of a message, which has an id. */
export const EMPTY_JSON = "{}";

/** A message as JSON shows it, with its keys in this order. */
export interface MessageJson {
  readonly id: MessageId;
  /** The text, or the base64 of the bytes when `encoding` says so. */
  readonly data: string;
  readonly encoding?: "base64";
  /** Only on a delivery. */
  readonly receipt?: Receipt;
  /** When it was enqueued, RFC 3339 in UTC. */
  readonly timestamp: string;
  /** How many deliveries were begun and not released. */
  readonly deliveries: number;
  /** Only in a listing of unacked messages. */
  readonly state?: UnackedState;
  /** Only of a dead letter: why it was given up on. */
  readonly reason?: string;
  /** Only of a dead letter: when, RFC 3339 in UTC. */
  readonly diedAt?: string;
  /** Only of a message that a task owns. */
  readonly task?: TaskId;
}

/** Any of the shapes in which a message is given out. */
export type ShownMessage = Message & {
  readonly receipt?: Receipt;
  readonly state?: UnackedState;
  readonly reason?: string;
  readonly diedAtMs?: number;
};

const encoder = new TextEncoder();
const LONE_SURROGATE = /[\ud800-\udfff]/u;
/** Larger data is turned into JSON piece by piece, so that no string grows beyond what an engine can hold. A multiple of 3, for base64. */
const PIECE_BYTES = 3 * 256 * 1024;
/** The last millisecond that RFC 3339 can name: its years have four digits. */
const LAST_TIMESTAMP_MS = 253_402_300_799_999;

/** The text of `bytes`, a byte order mark included, or `undefined` when they are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  // Several times faster than a TextDecoder that is told to be strict, which also throws where others answer. What is not valid
  // becomes U+FFFD, and then the text does not lead back to the bytes.
  const buffer = view(bytes);
  const text = buffer.toString("utf8");
  return text.includes("\ufffd") && !buffer.equals(Buffer.from(text, "utf8")) ? undefined : text;
}

/** Whether `bytes` are valid UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  for (const text of textPieces(bytes)) {
    if (text === undefined) return false;
  }
  return true;
}

// Messages of one batch have one instant.
let lastMs = 0;
let lastTimestamp = new Date(lastMs).toISOString();

/** An instant as RFC 3339 in UTC with milliseconds. Instants that it cannot name become the nearest that it can. */
export function formatTimestamp(atMs: number): string {
  const ms = Math.min(Math.max(0, atMs), LAST_TIMESTAMP_MS) || 0;
  if (ms !== lastMs) {
    lastTimestamp = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastTimestamp;
}

/** A message as an object in the shape of its JSON. For data of many MiB, {@link messageJsonChunks} needs less memory. */
export function describeMessage(message: ShownMessage): MessageJson {
  const text = decodeUtf8(message.data);
  const data = text ?? toBase64(message.data);
  return { id: message.id, data, ...describeRest(message, text !== undefined) };
}

/** A message as JSON text. */
export function messageToJson(message: ShownMessage): string {
  return JSON.stringify(describeMessage(message));
}

/** The bytes of {@link messageToJson} in pieces, for data of any size. */
export function* messageJsonChunks(message: ShownMessage): Generator<Uint8Array> {
  const { data } = message;
  if (data.byteLength <= PIECE_BYTES) {
    yield encoder.encode(messageToJson(message));
    return;
  }
  const isText = isUtf8(data);
  yield encoder.encode(`{"id":${JSON.stringify(message.id)},"data":"`);
  if (isText) {
    for (const text of textPieces(data)) yield encoder.encode(JSON.stringify(text ?? "").slice(1, -1));
  } else {
    for (let start = 0; start < data.byteLength; start += PIECE_BYTES)
      yield encoder.encode(toBase64(data.subarray(start, start + PIECE_BYTES)));
  }
  yield encoder.encode(`",${JSON.stringify(describeRest(message, isText)).slice(1)}`);
}

/**
 * The bytes of a message given as JSON.
 *
 * @throws QueueFSError `invalid-argument` when `data` is no text, no base64 as declared, or no valid Unicode
 */
export function dataOf(json: { readonly data?: unknown; readonly encoding?: unknown }): Uint8Array {
  const { data, encoding } = json;
  if (typeof data !== "string") throw new QueueFSError("invalid-argument", `"data" of a message must be a text, got ${quote(data)}`);
  if (encoding === undefined) {
    if (LONE_SURROGATE.test(data)) {
      throw new QueueFSError(
        "invalid-argument",
        `"data" of a message is not valid Unicode (a surrogate stands alone); send bytes as base64`,
      );
    }
    return encoder.encode(data);
  }
  if (encoding !== "base64")
    throw new QueueFSError("invalid-argument", `"encoding" of a message must be "base64" or absent, got ${quote(encoding)}`);
  const bytes = Buffer.from(data, "base64");
  // The decoder skips what it does not know; only a text that comes out again was base64.
  if (bytes.toString("base64") !== data) {
    throw new QueueFSError("invalid-argument", `"data" of a message is not base64 (RFC 4648, section 4, with padding): ${quote(data)}`);
  }
  // A copy, since small results are views of a pool that others use too.
  return new Uint8Array(bytes);
}

function describeRest(message: ShownMessage, isText: boolean): Omit<MessageJson, "id" | "data"> {
  return {
    ...(isText ? {} : { encoding: "base64" as const }),
    ...(message.receipt === undefined ? {} : { receipt: message.receipt }),
    timestamp: formatTimestamp(message.enqueuedAtMs),
    deliveries: message.deliveryCount,
    ...(message.state === undefined ? {} : { state: message.state }),
    ...(message.reason === undefined ? {} : { reason: message.reason }),
    ...(message.diedAtMs === undefined ? {} : { diedAt: formatTimestamp(message.diedAtMs) }),
    ...(message.task === undefined ? {} : { task: message.task }),
  };
}

function toBase64(bytes: Uint8Array): string {
  return view(bytes).toString("base64");
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The text of `bytes` in pieces that end between characters; `undefined` for a piece that is not valid, which there is if they are not. */
function* textPieces(bytes: Uint8Array): Generator<string | undefined> {
  for (let start = 0, end = 0; start < bytes.byteLength; start = end) {
    end = Math.min(start + PIECE_BYTES, bytes.byteLength);
    // Back to where a character begins, which is no continuation byte (10xxxxxx); farther than 3 bytes it is not UTF-8 anyway.
    for (let back = 0; back < 3 && isContinuation(bytes[end]); back += 1) end -= 1;
    yield decodeUtf8(bytes.subarray(start, end));
  }
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
