/**
 * The binary form of a body with messages, `application/vnd.queuefs.messages`: four bytes, big-endian, with the length of a JSON text; that
 * text in UTF-8; then the bytes of all messages of the text, one behind the other in its order. In the text such a message has
 * `"encoding":"bytes"`, and its `data` is the number of its bytes. So bytes travel as they are, and no text grows beyond what an engine can hold.
 */

import { dataOf, decodeUtf8 } from "./codec.ts";
import { QueueFSError, quote } from "./errors.ts";

/** The media type of the binary form. Whoever sends it in `Accept` may be answered with it. */
export const MESSAGES_TYPE = "application/vnd.queuefs.messages";

/** The bytes of a message in a body: text, base64, or beside the JSON. */
export interface WireData {
  /** The text; the base64 of the bytes when `encoding` is `base64`; their number when it is `bytes`. */
  readonly data: string | number;
  readonly encoding?: "base64" | "bytes";
}

/** Collects the bytes that travel beside a JSON text, in the order in which the text names them. */
export class BytesBeside {
  readonly parts: Uint8Array[] = [];
  /** Of all parts together. */
  byteLength = 0;

  put(bytes: Uint8Array): WireData {
    this.parts.push(bytes);
    this.byteLength += bytes.byteLength;
    return { data: bytes.byteLength, encoding: "bytes" };
  }
}

/** Hands out the bytes that came beside a JSON text, in the order in which the text names them. */
export class BytesReader {
  readonly #bytes: Uint8Array;
  readonly #isForKeeps: boolean;
  #place = 0;

  /**
   * @param isForKeeps whether what is handed out is kept by somebody, and so must be a copy: a view keeps all of the body in memory, and making a
   *   copy takes longer than all else that is done for a small message
   */
  constructor({ buffer, byteOffset, byteLength }: Uint8Array, isForKeeps = true) {
    // A slice of a Buffer would be a view.
    this.#bytes = new Uint8Array(buffer, byteOffset, byteLength);
    this.#isForKeeps = isForKeeps;
  }

  /** The next bytes. @throws QueueFSError `invalid-argument` when there are not so many */
  take(length: unknown): Uint8Array {
    const left = this.#bytes.byteLength - this.#place;
    if (typeof length !== "number" || !Number.isInteger(length) || length < 0 || length > left) {
      throw new QueueFSError(
        "invalid-argument",
        `"data" of a message with "encoding":"bytes" must be the number of its bytes, at most the ${left} that are left in the body, got ${quote(length)}`,
      );
    }
    const from = this.#place;
    this.#place += length;
    return this.#isForKeeps ? this.#bytes.slice(from, this.#place) : this.#bytes.subarray(from, this.#place);
  }

  /** Says that all messages were read. @throws QueueFSError `invalid-argument` when bytes are left over */
  end(): void {
    const left = this.#bytes.byteLength - this.#place;
    if (left > 0) throw new QueueFSError("invalid-argument", `the body has ${left} bytes more than its messages`);
  }
}

/** The bytes of a message as they stand in a body, or beside it where `beside` is given. */
export function dataToWire(data: Uint8Array, beside?: BytesBeside): WireData {
  if (beside !== undefined) return beside.put(data);
  const text = decodeUtf8(data);
  if (text !== undefined) return { data: text };
  return { data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64"), encoding: "base64" };
}

/** The bytes of a message of a body. @throws QueueFSError `invalid-argument` */
export function dataFromWire(json: { readonly data?: unknown; readonly encoding?: unknown }, beside?: BytesReader): Uint8Array {
  if (json.encoding !== "bytes") return dataOf(json);
  if (beside === undefined)
    throw new QueueFSError("invalid-argument", `"encoding":"bytes" is for bodies of the type ${MESSAGES_TYPE}; send bytes as base64`);
  return beside.take(json.data);
}

/** A body in the binary form. @param json what the text is; `beside` has collected the bytes of its messages */
export function encodeFrame(json: unknown, beside: BytesBeside): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify(json);
  const textBytes = Buffer.byteLength(text);
  // All of it is written below. Not from the pool, a block of which would be kept as long as an answer that is remembered.
  const frame = Buffer.allocUnsafeSlow(4 + textBytes + beside.byteLength);
  frame.writeUInt32BE(textBytes, 0);
  frame.write(text, 4, textBytes, "utf8");
  let place = 4 + textBytes;
  for (const part of beside.parts) {
    frame.set(part, place);
    place += part.byteLength;
  }
  return frame;
}

/** Takes a body in the binary form apart. @param isForKeeps as of {@link BytesReader}. @throws QueueFSError `invalid-argument` when it is none */
export function decodeFrame(frame: Uint8Array, isForKeeps = true): { readonly json: unknown; readonly beside: BytesReader } {
  const length = frame.byteLength < 4 ? Number.NaN : new DataView(frame.buffer, frame.byteOffset).getUint32(0);
  if (!(4 + length <= frame.byteLength))
    throw new QueueFSError("invalid-argument", `a body of the type ${MESSAGES_TYPE} is shorter than it says (${frame.byteLength} bytes)`);
  const text = decodeUtf8(frame.subarray(4, 4 + length));
  if (text === undefined) throw new QueueFSError("invalid-argument", `the JSON of a body of the type ${MESSAGES_TYPE} is not valid UTF-8`);
  return { json: parseJson(text), beside: new BytesReader(frame.subarray(4 + length), isForKeeps) };
}

/** The value of a JSON text. @throws QueueFSError `invalid-argument` */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new QueueFSError("invalid-argument", `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
