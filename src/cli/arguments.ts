/** Reads what stands on the command line. */

import { InvalidArgumentError } from "commander";
import { QueueFSError, quote } from "../core/errors.ts";
import type { QueueSelection } from "../core/message.ts";
import { parseQueueName, type QueueName } from "../core/names.ts";
import type { Json } from "../core/task.ts";
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

/** Reader of an option that is a JSON value, in an object of its own, since commander takes null for an empty text. */
export function jsonOption(text: string): { readonly value: Json } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    throw new InvalidArgumentError(`it must be JSON, such as {"pages":12} or "text" with its quotation marks, got ${quote(text)}`);
  }
}

/** Reader of an option that is an instant: RFC 3339, a date, or a duration before now. In milliseconds since 1970-01-01 UTC. */
export function instantOption(text: string): number {
  const atMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : durationBefore(text);
  if (!Number.isNaN(atMs)) return Math.max(0, atMs);
  throw new InvalidArgumentError(
    `it must be an instant, such as 2026-01-31T12:00:00Z, or a duration before now, such as 15m, 2h or 1d, got ${quote(text)}`,
  );
}

/** When a duration before now was; not a number if it is none. */
function durationBefore(text: string): number {
  try {
    return Date.now() - parseDuration(text);
  } catch {
    return Number.NaN;
  }
}

/** An error of usage: arguments that exclude or need each other. */
export function usageError(message: string): QueueFSError {
  return new QueueFSError("invalid-argument", message);
}
