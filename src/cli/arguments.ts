/** Reads what stands on the command line. */

import { InvalidArgumentError } from "commander";
import { QueueFSError, quote } from "../core/errors.ts";
import type { QueueSelection } from "../core/message.ts";
import { parseQueueName, type QueueName } from "../core/names.ts";
import { parseDuration } from "./duration.ts";

/** The name of a queue. One slash before it is accepted, as paths of the file face have it. @throws QueueFSError `invalid-name`, `reserved-name` */
export function readQueue(text: string): QueueName {
  return parseQueueName(text.startsWith("/") ? text.slice(1) : text);
}

/** A path under which queues lie; `/` and nothing mean all. @throws QueueFSError `invalid-name`, `reserved-name` */
export function readUnder(text: string): QueueName | "" {
  const path = text.replace(/^\//, "").replace(/\/$/, "");
  return path === "" ? "" : parseQueueName(path);
}

/** An absolute path of the file face. */
export function readPath(text: string): string {
  return text.startsWith("/") ? text : `/${text}`;
}

/** Which queues a command is about: the named ones, those under a path, or all. @throws QueueFSError `invalid-argument`, `invalid-name`, `reserved-name` */
export function readSelection(queues: readonly string[], under: string | undefined): QueueSelection {
  if (queues.length > 0 && under !== undefined) throw new QueueFSError("invalid-argument", "name queues or give --under, not both");
  if (queues.length > 0) return { queues: [...new Set(queues.map(readQueue))] };
  return { under: under === undefined ? "" : readUnder(under) };
}

/** Reader of an option that is a duration. */
export function durationOption(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : quote(error));
  }
}

/** Reader of an option that is a whole number. Bounds are the store's to check. */
export function integerOption(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError(`it must be a whole number, got ${quote(text)}`);
  return Number(text);
}

/** An error of usage: arguments that exclude or need each other. */
export function usageError(message: string): QueueFSError {
  return new QueueFSError("invalid-argument", message);
}
