/** From a path to what it names. */

import { decodeUtf8 } from "../core/codec.ts";
import { type ControlFileName, isControlFileName } from "../core/control-files.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { MAX_NAME_COMPONENT_BYTES, MAX_NAME_DEPTH } from "../core/limits.ts";
import { parseQueueName, type QueueName, RESERVED_COMPONENTS } from "../core/names.ts";
import type { FilePath } from "./port.ts";

/** What a path names. Whether it exists is another question. */
export type ParsedPath =
  | { readonly kind: "root"; readonly shown: string }
  /** A queue or plain directory. */
  | { readonly kind: "directory"; readonly name: QueueName; readonly shown: string }
  | { readonly kind: "control"; readonly name: QueueName; readonly file: ControlFileName; readonly shown: string };

/** Characters of one path: a full queue name, a control file, and as many needless slashes and dots again. */
const MAX_PATH_CHARACTERS = 2 * (MAX_NAME_COMPONENT_BYTES + 1) * (MAX_NAME_DEPTH + 1);

/**
 * Parses the path of something that should exist.
 *
 * @throws QueueFSError `invalid-name`, or `path-not-found` and `not-a-directory` for what can never exist
 */
export function parsePath(path: FilePath): ParsedPath {
  const { components, shown, directory } = splitPath(path);
  const last = components.at(-1);
  if (last === undefined) return { kind: "root", shown };
  if (!isControlFileName(last)) return { kind: "directory", name: lookUpName(components, shown), shown };
  if (components.length === 1)
    throw new QueueFSError("path-not-found", `${quote(shown)} not found: the root is no queue and has no control files; name a queue`);
  const name = lookUpName(components.slice(0, -1), shown);
  if (directory) throw notADirectory(shown);
  return { kind: "control", name, file: last, shown };
}

/** Parses the path of a queue to be made; `undefined` for the root. @throws QueueFSError `invalid-name`, `reserved-name` */
export function parseNewDirectory(path: FilePath): QueueName | undefined {
  const { components } = splitPath(path);
  return components.length === 0 ? undefined : parseQueueName(components.join("/"));
}

/** The error for a control file where a directory is needed. */
export function notADirectory(shown: string): QueueFSError {
  return new QueueFSError("not-a-directory", `${quote(shown)} is not a directory: it is, or lies under, a control file`);
}

/** The error for a directory where a control file is needed. */
export function isADirectory(shown: string): QueueFSError {
  return new QueueFSError("is-a-directory", `${quote(shown)} is a directory; read and write the control files in it`);
}

function splitPath(path: FilePath): { components: string[]; shown: string; directory: boolean } {
  const text = path instanceof Uint8Array ? decodeUtf8(path) : path;
  if (typeof text !== "string") {
    throw new QueueFSError(
      "invalid-name",
      path instanceof Uint8Array ? "a path is not valid UTF-8" : `a path must be a text or bytes, got ${quote(path)}`,
    );
  }
  if (text.length > MAX_PATH_CHARACTERS)
    throw new QueueFSError("invalid-name", `path ${quote(text)} is too long; at most ${MAX_PATH_CHARACTERS} characters`);
  if (!text.startsWith("/")) throw new QueueFSError("invalid-name", `path ${quote(text)} is not absolute; start it with a slash`);
  const raw = text.split("/");
  if (raw.includes("..")) throw new QueueFSError("invalid-name", `path ${quote(text)} holds ".."; resolve it first`);
  const components = raw.filter((component) => component !== "" && component !== ".");
  const end = raw.at(-1);
  return { components, shown: `/${components.join("/")}`, directory: end === "" || end === "." };
}

/** The name of a queue that should exist: reserved names are in use by files, or by nothing. */
function lookUpName(components: readonly string[], shown: string): QueueName {
  try {
    return parseQueueName(components.join("/"));
  } catch (error) {
    if (!isQueueFSError(error, "reserved-name")) throw error;
    // Only a control file amid the path is something; it may be a name of our own, such as /q/.wait/x.
    const amid = components.findIndex((component) => RESERVED_COMPONENTS.has(component) || component.startsWith("."));
    if (amid > 0 && isControlFileName(components[amid] ?? "")) throw notADirectory(shown);
    throw new QueueFSError("path-not-found", `${quote(shown)} not found; list the directory with all its files to see what there is`);
  }
}
