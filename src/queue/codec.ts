/** Codecs: how the values of a program become the bytes of messages, and back. */

import { QueueFSError, quote } from "../core/errors.ts";

/** Turns values into bytes and back. Either way may be asynchronous, since validators may be. */
export interface Codec<Value> {
  /** What the codec is called in messages to people. */
  readonly name: string;
  /** The bytes of a value. @throws QueueFSError `invalid-argument` when the value is none that the codec can keep */
  encode(value: Value): Uint8Array | Promise<Uint8Array>;
  /** The value of some bytes. What it throws quarantines the message: it moves to the dead letters, and the next one is delivered. */
  decode(data: Uint8Array): Value | Promise<Value>;
}

/** What QueueFS needs of a validator: the interface of Standard Schema 1, which zod, valibot, arktype and others offer (standardschema.dev). */
export interface StandardSchema<Output> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

// With the u flag a surrogate pair is one character, so this finds surrogates that stand alone.
const LONE_SURROGATE = /[\ud800-\udfff]/u;
const encoder = new TextEncoder();
// A byte order mark is part of the message; bytes that are not UTF-8 are refused rather than replaced.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes themselves. */
export const bytesCodec: Codec<Uint8Array> = {
  name: "bytes",
  encode(value) {
    if (value instanceof Uint8Array) return value;
    throw new QueueFSError("invalid-argument", `a value for the bytes codec must be a Uint8Array, got ${quote(value)}`);
  },
  decode: (data) => data,
};

/** Text as UTF-8. */
export const textCodec: Codec<string> = {
  name: "text",
  encode(value) {
    if (typeof value === "string" && !LONE_SURROGATE.test(value)) return encoder.encode(value);
    throw new QueueFSError("invalid-argument", `a value for the text codec must be a text without lone surrogates, got ${quote(value)}`);
  },
  decode: (data) => decoder.decode(data),
};

/**
 * Values as JSON. With a validator, values are checked before they are stored and after they are read; the validated output of reading
 * is what handlers get.
 */
export function jsonCodec<Value = unknown>(schema?: StandardSchema<Value>): Codec<Value> {
  return {
    name: "json",
    async encode(value) {
      if (schema !== undefined) await validate(schema, value, "the value to be enqueued");
      return encodeJson(value);
    },
    decode(data) {
      const value: unknown = JSON.parse(decoder.decode(data));
      return schema === undefined ? (value as Value) : validate(schema, value, "the message");
    },
  };
}

function encodeJson(value: unknown): Uint8Array {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new QueueFSError("invalid-argument", `the value cannot be written as JSON: ${String(error)}`, { cause: error });
  }
  if (text === undefined) throw new QueueFSError("invalid-argument", `the value cannot be written as JSON: ${quote(value)}`);
  return encoder.encode(text);
}

async function validate<Value>(schema: StandardSchema<Value>, value: unknown, what: string): Promise<Value> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const words = result.issues
    .slice(0, 5)
    .map(({ message, path }) => (path === undefined || path.length === 0 ? message : `${path.map(keyOf).join(".")}: ${message}`));
  throw new QueueFSError("invalid-argument", `${what} does not fit its schema: ${words.join("; ")}`);
}

function keyOf(part: unknown): string {
  return String(typeof part === "object" && part !== null && "key" in part ? part.key : part);
}
