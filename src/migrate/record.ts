/** Decodes one record of the reference layout: the JSON object that its `data` column holds. */

import { quote } from "../core/errors.ts";

/** The bytes of a message, or why the record does not yield any. */
export type DecodedRecord = { readonly data: Uint8Array } | { readonly fault: string };

const LONE_SURROGATE = /[\ud800-\udfff]/u;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Takes the message out of the record `{"id", "data", "timestamp"}`, whose `data` is text (older files) or an array of byte values
 * (newer files, any bytes). It never guesses: what is not exactly that is a fault in words, and the caller keeps the record as it is.
 *
 * @param record the bytes of the column, or `null` where the column holds nothing
 */
export function decodeRecord(record: Uint8Array | null): DecodedRecord {
  if (record === null) return { fault: "the record is NULL" };
  let text: string;
  try {
    text = decoder.decode(record);
  } catch {
    return { fault: "the record is not valid UTF-8" };
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { fault: `the record is not JSON: ${quote(text.slice(0, 60))}` };
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    return { fault: `the record is not a JSON object: ${quote(parsed)}` };
  if (!Object.hasOwn(parsed, "data")) return { fault: 'the record has no "data"' };
  return decodePayload((parsed as { readonly data: unknown }).data);
}

function decodePayload(payload: unknown): DecodedRecord {
  if (typeof payload === "string") {
    // Encoding would replace a lone surrogate by another character without a word.
    if (LONE_SURROGATE.test(payload)) return { fault: "the text of the record is not valid Unicode" };
    return { data: encoder.encode(payload) };
  }
  if (!Array.isArray(payload)) return { fault: `"data" of the record is neither text nor an array of byte values: ${quote(payload)}` };
  const data = new Uint8Array(payload.length);
  for (let index = 0; index < payload.length; index += 1) {
    const value: unknown = payload[index];
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > 255) {
      return { fault: `byte ${index} of the record is not a whole number from 0 to 255: ${quote(value)}` };
    }
    data[index] = value;
  }
  return { data };
}
