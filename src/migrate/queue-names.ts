/** Gives the queues of a reference file names that QueueFS accepts: the same input gets the same names, and no two share one. */

import { createHash } from "node:crypto";
import { QueueFSError } from "../core/errors.ts";
import { MAX_NAME_COMPONENT_BYTES, MAX_NAME_DEPTH } from "../core/limits.ts";
import { parseQueueName, type QueueName, utf8Length } from "../core/names.ts";

/** One queue of the old file, and what it is called from now on. */
export interface RenamedQueue {
  /** The bytes of the old name, one character for each byte (Latin-1), so that names which are not valid UTF-8 stay apart. */
  readonly key: string;
  /** The old name for people; bytes that are not UTF-8 are replaced. */
  readonly oldName: string;
  /** The name in the target store. */
  readonly queue: QueueName;
  /** Why the old name could not stay; absent when it did. */
  readonly reason?: string;
}

const PREFIX = "migrated-";
const HASH_CHARACTERS = 12;
// The characters that a queue name must not hold (general category Cc), and the sign that marks what replaces them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: replacing control characters is this pattern's purpose
const TO_ESCAPE = /[\u0000-\u001f\u007f-\u009f%]/g;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function bytesOf(key: string): Buffer {
  return Buffer.from(key, "latin1");
}

function percent(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

function hashOf(key: string): string {
  return createHash("sha256").update(bytesOf(key)).digest("hex").slice(0, HASH_CHARACTERS);
}

/** The text of UTF-8 bytes, or `undefined` when they are not UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

/** What `parseQueueName` says against a name, or `undefined` when it is good. */
function faultOf(name: string | undefined): string | undefined {
  if (name === undefined) return "is not valid UTF-8";
  try {
    parseQueueName(name);
    return undefined;
  } catch (error) {
    if (error instanceof QueueFSError) return error.message;
    throw error;
  }
}

/** Cuts a component to what is allowed, leaving room for `ending`, between two characters. */
function cut(component: string, ending: string): string {
  let room = MAX_NAME_COMPONENT_BYTES - ending.length;
  let text = "";
  for (const character of component) {
    room -= utf8Length(character);
    if (room < 0) break;
    text += character;
  }
  return text + ending;
}

/** A component that is accepted: the same if it was good, otherwise marked by a prefix, with what is not allowed as %XX. */
function acceptedComponent(key: string): string {
  const text = decode(bytesOf(key));
  if (faultOf(text) === undefined) return text as string;
  const escaped =
    text === undefined
      ? key.replace(/[^\u0020-\u007e]|%/g, (character) => percent(bytesOf(character)))
      : text.replace(TO_ESCAPE, (character) => percent(new TextEncoder().encode(character)));
  const whole = PREFIX + escaped;
  return utf8Length(whole) <= MAX_NAME_COMPONENT_BYTES ? whole : cut(whole, `-${hashOf(key)}`);
}

/** An accepted name near the old one, not yet apart from the others. */
function candidate(key: string): string {
  const components = key.split("/").filter((component) => component !== "");
  if (components.length > MAX_NAME_DEPTH) components.push(components.splice(MAX_NAME_DEPTH - 1).join("%2F"));
  return components.map(acceptedComponent).join("/") || `${PREFIX}unnamed`;
}

/** The same name with a hash of the old one at its end, which sets it apart. */
function withHash(name: string, key: string): string {
  const start = name.lastIndexOf("/") + 1;
  return name.slice(0, start) + cut(name.slice(start), `-${hashOf(key)}`);
}

/**
 * Names for all queues of an old file, sorted by the bytes of the old names. Good names stay. Others, such as those of control files
 * (`status`), get the prefix `migrated-` at the component that is at fault, and a hash of the old name where that one is taken.
 *
 * @param keys the old names, each one character for each byte; repeats are harmless
 */
export function renameQueues(keys: Iterable<string>): RenamedQueue[] {
  const sorted = [...new Set(keys)].sort();
  const faults = new Map(sorted.map((key) => [key, faultOf(decode(bytesOf(key)))]));
  const claims = new Map<string, number>();
  const first = new Map(sorted.map((key) => [key, faults.get(key) === undefined ? (decode(bytesOf(key)) as string) : candidate(key)]));
  for (const name of first.values()) claims.set(name, (claims.get(name) ?? 0) + 1);
  const taken = new Set(sorted.filter((key) => faults.get(key) === undefined).map((key) => first.get(key) as string));
  return sorted.map((key) => {
    const oldName = bytesOf(key).toString("utf8");
    const reason = faults.get(key);
    let name = first.get(key) as string;
    if (reason === undefined) return { key, oldName, queue: parseQueueName(name) };
    // Every claimant of a name that several claim gets its own hash, so that none depends on who came first.
    if ((claims.get(name) ?? 0) > 1) name = withHash(name, key);
    for (let attempt = 1; taken.has(name); attempt += 1) name = withHash(first.get(key) as string, `${key}\n${attempt}`);
    taken.add(name);
    return { key, oldName, queue: parseQueueName(name), reason };
  });
}
