/** What a store holds in all, and how much it may. */

import { QueueFSError } from "../../core/errors.ts";

/** Running sums over all queues of one store. */
export class Totals {
  /** Unacked messages and dead letters. */
  messages = 0;
  /** Bytes of their payloads and of the texts of their last failures. */
  bytes = 0;
  /** Ids and answers remembered for repeats. */
  remembered = 0;
  /** Bytes of the payloads of remembered answers. */
  rememberedBytes = 0;
}

/** Bounds of a store, as the client that makes the call was opened with. */
export interface Bounds {
  readonly maxMessageBytes: number;
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly maxRemembered: number;
  readonly maxQueues: number;
  readonly maxTasks: number;
}

/** Refuses what does not fit. @throws QueueFSError `store-full` */
export function checkRoom(totals: Totals, bounds: Bounds, messages: number, bytes: number, remembered: number): void {
  if (messages > 0 && totals.messages + messages > bounds.maxMessages) {
    throw full(
      `${totals.messages} messages (dead letters included), and ${messages} more would exceed maxMessages (${bounds.maxMessages}); ack, clear or drop some`,
    );
  }
  if (bytes > 0 && totals.bytes + bytes > bounds.maxBytes) {
    throw full(
      `${totals.bytes} bytes (dead letters included), and ${bytes} more would exceed maxBytes (${bounds.maxBytes}); ack, clear or drop some`,
    );
  }
  if (remembered > 0 && totals.remembered + remembered > bounds.maxRemembered) {
    throw full(
      `${totals.remembered} remembered ids and requests, and ${remembered} more would exceed maxRemembered (${bounds.maxRemembered}); wait for rememberMs to pass, or send no id`,
    );
  }
}

/** Refuses a dequeue whose answer could not be remembered. @throws QueueFSError `store-full` */
export function checkRoomForAnswer(totals: Totals, bounds: Bounds): void {
  checkRoom(totals, bounds, 0, 0, 1);
  if (totals.rememberedBytes >= bounds.maxBytes) {
    throw full(
      `${totals.rememberedBytes} bytes of remembered answers, which is the limit (maxBytes, ${bounds.maxBytes}); wait for rememberMs to pass, or dequeue without a request id`,
    );
  }
}

function full(what: string): QueueFSError {
  return new QueueFSError("store-full", `the memory store holds ${what}, or raise the limit`);
}
