/** Reading the body of a request: as much as is allowed, in the forms that are understood. */

import { decodeUtf8 } from "../core/codec.ts";
import { QueueFSError } from "../core/errors.ts";
import { decodeFrame, MESSAGES_TYPE, parseJson } from "../core/wire-bytes.ts";
import { RequestError } from "./problem.ts";
import type { RequestBody } from "./route.ts";

/** What JSON may need beside the bytes of its messages: 16 MiB, far beyond 10,000 messages with the longest ids. */
const OVERHEAD_BYTES = 16 * 1024 * 1024;

/** Bytes that a body may have when messages of so many may be in it, in base64 and JSON. */
export function bodyLimit(maxMessageBytes: number): number {
  return Math.ceil(maxMessageBytes / 3) * 4 + OVERHEAD_BYTES;
}

/** Counts the bytes of bodies that are held in memory at once. */
export class BodyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @throws QueueFSError `overloaded` when there are too many */
  take(bytes: number): void {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes)
      throw new QueueFSError("overloaded", "the server holds as many bytes of requests as it takes at once; send this again later");
    this.#bytes += bytes;
  }

  /** Bytes that are no longer held. */
  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** One body that is being read, or was. */
export class BodyReading {
  readonly #budget: BodyBudget;
  readonly #limit: number;
  #held = 0;
  #isOver = false;

  constructor(budget: BodyBudget, limit: number) {
    this.#budget = budget;
    this.#limit = limit;
  }

  /** Says how many bytes are announced. @throws QueueFSError `message-too-large` */
  check(bytes: number): void {
    if (this.#held + bytes > this.#limit)
      throw new QueueFSError("message-too-large", `the body of the request exceeds the limit of ${this.#limit} bytes; send less at once`);
  }

  /** Says that so many bytes came. @throws QueueFSError `message-too-large`, `overloaded`; `aborted` when nobody needs them any more */
  count(bytes: number): void {
    if (this.#isOver) throw new QueueFSError("aborted", "the request was answered before its body had come");
    this.check(bytes);
    this.#budget.take(bytes);
    this.#held += bytes;
  }

  /** Says that the body is no longer needed. */
  end(): void {
    this.#isOver = true;
    this.#budget.giveBack(this.#held);
    this.#held = 0;
  }
}

/** Reads a stream to its end. @throws whatever `reading` throws */
export async function readStream(body: ReadableStream<Uint8Array> | null, reading: BodyReading): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  if (body !== null) {
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      reading.count(value.byteLength);
      parts.push(value);
    }
  }
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}

/** The media type in a header, in lower case, without parameters. */
export function mediaType(header: string | undefined): string {
  return (header ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Whether a media type is JSON. */
export function isJsonType(type: string): boolean {
  return type === "application/json" || type.endsWith("+json");
}

/** The text of a body. @throws QueueFSError `invalid-argument` */
export function bodyText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new QueueFSError("invalid-argument", "the body is not valid UTF-8");
  return text;
}

/** Takes a body apart. @throws QueueFSError `invalid-argument`; RequestError 415 for a type that is neither JSON nor the binary form */
export function parseBody(type: string, bytes: Uint8Array): RequestBody {
  // Stores copy what they keep.
  if (type === MESSAGES_TYPE) return decodeFrame(bytes, false);
  if (bytes.byteLength === 0) return { json: undefined };
  if (!isJsonType(type))
    throw new RequestError("invalid-argument", 415, `the body must be of the type application/json, got ${JSON.stringify(type)}`);
  return { json: parseJson(bodyText(bytes)) };
}
