/**
 * The keys of a namespace. All share one hash tag, so that a Cluster keeps them on one node and a set of queues has one snapshot. Queues are
 * known by a number, their life, that is never used again: so names never become keys, and a queue made anew shares nothing with the old one.
 */

import { encodeArgument } from "./bytes.ts";

/** The keys of one queue, in the order in which the scripts take them (scripts/queue.lua says what they hold). */
const PARTS = [
  "queue",
  "pending",
  "bodies",
  "states",
  "returned",
  "delayed",
  "later",
  "leases",
  "held",
  "dead",
  "graves",
  "memory",
  "forget",
] as const;

/** One of the keys of a queue. */
export type QueueKey = (typeof PARTS)[number];

/** The keys of a namespace that belong to no queue. */
export interface Keys {
  /** Id and format of the store, last life given out, change number of the registry. */
  readonly meta: string;
  /** Name -> life. */
  readonly queues: string;
  /** Names in byte order. */
  readonly names: string;
  /** When something of a queue may be due. */
  readonly wake: string;
  /** Lives whose keys are still to be freed. */
  readonly trash: string;
  /** Task id -> record. */
  readonly tasks: string;
  /** Task id -> type, meta and other texts. */
  readonly taskTexts: string;
  /** Task ids by number. */
  readonly taskOrder: string;
  /** When something of a task is due. */
  readonly taskDue: string;
  /** Dead letters by task. */
  readonly taskFailures: string;
  /** Which queues count messages of which tasks. */
  readonly taskQueues: string;
  /** What they count. */
  readonly taskCounts: string;
  /** Tasks of which pending messages are still to be cancelled. */
  readonly taskSearches: string;
  /** Channel on which changes are told. */
  readonly changes: string;
  /** Prefix of the keys in which sessions keep their last answers. */
  readonly session: string;
}

/** The keys of `namespace`. */
export function keysOf(namespace: string): Keys {
  const key = (name: string): string => `{${namespace}}:${name}`;
  return {
    meta: key("meta"),
    queues: key("queues"),
    names: key("names"),
    wake: key("wake"),
    trash: key("trash"),
    tasks: key("tasks"),
    taskTexts: key("task-texts"),
    taskOrder: key("task-order"),
    taskDue: key("task-due"),
    taskFailures: key("task-failures"),
    taskQueues: key("task-queues"),
    taskCounts: key("task-counts"),
    taskSearches: key("task-searches"),
    changes: key("changes"),
    session: key("session:"),
  };
}

/** The keys that every script takes which begins with the frame, in the order in which it takes them (scripts/frame.lua). */
export function frameKeys(session: string, keys: Keys): readonly string[] {
  const { wake, tasks, taskTexts, taskOrder, taskDue, taskFailures, taskQueues, taskCounts, taskSearches } = keys;
  return [session, wake, tasks, taskTexts, taskOrder, taskDue, taskFailures, taskQueues, taskCounts, taskSearches];
}

/** One key of one life of a queue. */
export function queueKey(namespace: string, life: number, part: QueueKey): string {
  return `{${namespace}}:${life}:${part}`;
}

/** All keys of one life of a queue, in the order in which the scripts take them. */
export function allQueueKeys(namespace: string, life: number): string[] {
  return PARTS.map((part) => queueKey(namespace, life, part));
}

/** {@link allQueueKeys} in the protocol of Redis. */
export function encodeQueueKeys(namespace: string, life: number): Buffer {
  return Buffer.concat(allQueueKeys(namespace, life).map(encodeArgument));
}

/** How many keys a queue has. */
export const KEYS_PER_QUEUE: number = PARTS.length;
