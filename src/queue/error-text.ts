/** Error texts of any shape, made storable: whatever a handler throws must never hinder the nack that tells of it. */

import { MAX_REASON_CHARACTERS } from "../core/limits.ts";
import { storableReason } from "../core/request.ts";

/** Causes that are followed; more would say nothing new, and a chain can be a circle. */
const MAX_CAUSES = 5;

/**
 * What was thrown, in one text of at most 4,096 characters that every store can keep: name, message and causes of errors, anything else
 * as text. Never throws, whatever its getters and `toString` do.
 */
export function errorText(thrown: unknown): string {
  const parts: string[] = [];
  const seen = new Set<unknown>();
  let current = thrown;
  while (parts.length < MAX_CAUSES && !seen.has(current)) {
    seen.add(current);
    parts.push(oneText(current));
    const cause = read(current, "cause");
    if (cause === undefined) break;
    current = cause;
  }
  return storableReason(parts.join(", because: "));
}

function oneText(thrown: unknown): string {
  const message = read(thrown, "message");
  const name = read(thrown, "name");
  if (typeof message === "string") {
    // Cut before anything is done with it: a text of megabytes is thrown now and then.
    const short = message.slice(0, MAX_REASON_CHARACTERS);
    return typeof name === "string" && name !== "" && name !== "Error"
      ? `${name.slice(0, 200)}: ${short}`
      : short || "an error without a message";
  }
  try {
    return String(typeof thrown === "object" && thrown !== null ? (JSON.stringify(thrown) ?? thrown) : thrown).slice(
      0,
      MAX_REASON_CHARACTERS,
    );
  } catch {
    return `a thrown ${typeof thrown} that cannot be turned into text`;
  }
}

function read(thrown: unknown, key: string): unknown {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return undefined;
  try {
    return (thrown as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}
