/** The lives of messages, as the operations of a history tell them. */

import type { Operation, OperationOf, SentMessage } from "../operation.ts";

/** Milliseconds in nanoseconds. */
export const MS = 1e6;

/** One attempt to store a message. */
export interface Storing {
  readonly life: Life;
  readonly message: SentMessage;
  readonly operation: Operation;
  readonly step: StoringStep;
  /** What the store said, where it said anything. */
  readonly reply: string | undefined;
}

/** What one step stores, all of it or nothing: an enqueue, the forwards of one ack, the messages a task is made with. */
export interface StoringStep {
  readonly operation: Operation;
  readonly storings: Storing[];
  /** The receipt whose ack it is part of. */
  readonly source?: string;
  /** `info` becomes `ok` when one of its messages was seen that nothing else can have stored. */
  outcome: "ok" | "fail" | "info";
  /** By when it has happened, if it has. */
  end: number;
}

/** One use of a receipt. */
export interface ReceiptUse {
  readonly kind: "ack" | "nack" | "release" | "extend";
  readonly operation: Operation;
  readonly begin: number;
  /** By when it happened; Infinity while that is open. */
  end: number;
  /** `ok`: accepted. `stale`: refused. `info`: unknown. */
  outcome: "ok" | "stale" | "info";
  readonly delayMs: number;
  readonly leaseMs: number;
  /** What an ack stores. */
  readonly forward?: StoringStep;
}

/** One handing-over of a message. */
export interface Delivery {
  readonly life: Life;
  readonly receipt: string;
  readonly begin: number;
  readonly end: number;
  readonly leaseMs: number;
  readonly operation: OperationOf<"dequeue">;
  /** When a process that made the call died, at the earliest. */
  readonly death: number;
  /** In the order of their begins. */
  readonly uses: ReceiptUse[];
  /** The earliest begin of the deliveries after it. */
  next: number;
}

/** What may have removed a message. */
export interface Removal {
  readonly begin: number;
  readonly end: number;
  readonly isCertain: boolean;
  readonly operation: Operation;
}

/** One message from its first to its last sign. */
export interface Life {
  readonly value: string;
  readonly queue: string;
  readonly storings: Storing[];
  /** In the order of their ends. */
  readonly deliveries: Delivery[];
  readonly removals: Removal[];
  /** The tasks it was stored for; one at most, unless a client errs. */
  task: string | undefined;
  /** Earliest instant at which it may have existed. */
  born: number;
  /** From here it certainly existed until it was removed. */
  sure: number;
  /** Earliest instant at which it may have been removed. */
  from: number;
  /** Latest instant at which it can have existed. */
  by: number;
}

/** A dequeue of which nobody saw the answer: it may hold messages. */
export interface HiddenDequeue {
  readonly operation: OperationOf<"dequeue">;
  readonly queue: string;
  readonly begin: number;
  readonly end: number;
  readonly limit: number;
  readonly leaseMs: number;
}
