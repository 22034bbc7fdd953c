/** Handlers: what a worker runs for each message, and what it may answer. */

import type { MessageId, QueueName, TaskId } from "../core/names.ts";
import type { TaskChange } from "../core/task.ts";
import type { EnqueueOptions } from "./enqueue-options.ts";
import type { ForwardTarget } from "./named-queue.ts";

/** What a handler answers when it is neither done nor throws. Made by {@link retryAfter} and {@link giveUp}. */
export type Verdict =
  /** Try again, not before the delay has passed; without one after the worker's backoff. */
  | { readonly verdict: "retry"; readonly delayMs?: number; readonly reason?: string }
  /** Never try again: the message moves to the dead letters. */
  | { readonly verdict: "give-up"; readonly reason: string };

/** The verdict "try again". @param delayMs not before so many milliseconds, 0 to 366 days; the worker's backoff if absent */
export function retryAfter(delayMs?: number, reason?: string): Verdict {
  return { verdict: "retry", ...(delayMs === undefined ? {} : { delayMs }), ...(reason === undefined ? {} : { reason }) };
}

/** The verdict "give up". @param reason why, kept with the dead letter */
export function giveUp(reason: string): Verdict {
  return { verdict: "give-up", reason };
}

/** The task of the message that a handler works on. */
export interface HandlerTask {
  readonly id: TaskId;
  /** Changes what is said of the task, such as its stage or result. @throws QueueFSError `task-ended`, `invalid-argument`, `message-too-large` */
  update(change: TaskChange): Promise<void>;
}

/** What a handler is told beside the value. */
export interface HandlerContext {
  readonly id: MessageId;
  readonly queue: QueueName;
  /** Which delivery of the message this is, from 1. */
  readonly deliveryCount: number;
  /** When the message was enqueued, in milliseconds since 1970-01-01 UTC. */
  readonly enqueuedAtMs: number;
  /** The task that owns the message, and what its handlers enqueue; absent when none does. */
  readonly task?: HandlerTask;
  /** Aborted when the lease is lost, the task is cancelled, the handler's time is over, or the worker stops and its grace has passed. */
  readonly signal: AbortSignal;
  /**
   * Stores a value in another queue in the very step that acks this message: both happen or neither. A handler that fails forwards nothing.
   * Resolves when the value is encoded; a value that the codec refuses rejects. It belongs to the task of this message unless told otherwise.
   */
  forward<Value>(target: ForwardTarget<Value>, value: Value, options?: EnqueueOptions): Promise<void>;
}

/** Runs for each message. Returning nothing means done; throwing means "try again after the backoff". */
export type Handler<Value> = (
  value: Value,
  context: HandlerContext,
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler may return what forward() returns on one path, and a verdict on another
) => Verdict | undefined | void | Promise<Verdict | undefined | void>;
