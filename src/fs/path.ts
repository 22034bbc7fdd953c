/** From a path to what it names. */

import { decodeUtf8 } from "../core/codec.ts";
import { type ControlFileName, isControlFileName } from "../core/control-files.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { MAX_NAME_COMPONENT_BYTES, MAX_NAME_DEPTH } from "../core/limits.ts";
import { parseQueueName, parseTaskId, type QueueName, RESERVED_COMPONENTS, type TaskId } from "../core/names.ts";
import type { FilePath } from "./port.ts";

/** What a path names. Whether it exists is another question. */
export type ParsedPath =
  | { readonly kind: "root"; readonly shown: string }
  /** A queue or plain directory. */
  | { readonly kind: "directory"; readonly name: QueueName; readonly shown: string }
  | { readonly kind: "control"; readonly name: QueueName; readonly file: ControlFileName; readonly shown: string }
  /** The directory of all tasks. */
  | { readonly kind: "tasks"; readonly shown: string }
  /** A task, or what waits for its end. */
  | { readonly kind: "task"; readonly id: TaskId; readonly isWait: boolean; readonly shown: string };

/** The directory of all tasks, in the root. */
export const TASKS_DIRECTORY = ".tasks";
/** What a task's path ends with when its end is waited for. */
export const TASK_WAIT = "wait";

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
  if (components[0] === TASKS_DIRECTORY) return parseTaskPath(components.slice(1), shown, directory);
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

/** The error for a file where a directory is needed. */
export function notADirectory(shown: string): QueueFSError {
  return new QueueFSError("not-a-directory", `${quote(shown)} is not a directory: it is, or lies under, a file`);
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

/** What lies in the directory of tasks: a file for each, which is understood as a directory only to name what waits for its end. */
function parseTaskPath([id, ...rest]: readonly string[], shown: string, directory: boolean): ParsedPath {
  if (id === undefined) return { kind: "tasks", shown };
  let parsed: TaskId;
  try {
    parsed = parseTaskId(id);
  } catch (error) {
    // Programs look for files of their own making in any directory; no task can have such a name.
    throw new QueueFSError("path-not-found", `${quote(shown)} not found: no task can have the id ${quote(id)}`, { cause: error });
  }
  const isWait = rest.length === 1 && rest[0] === TASK_WAIT;
  if (directory || (rest.length > 0 && !isWait)) throw notADirectory(shown);
  return { kind: "task", id: parsed, isWait, shown };
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
