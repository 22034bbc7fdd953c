/** What a history is made of: operations as the client saw them, and what was done to clients and servers meanwhile. */

/** `ok`: it happened, within the call. `fail`: it did not and never will. `info`: unknown. */
export type Outcome = "ok" | "fail" | "info";

/** A message as it was enqueued. Its value is its payload's first word, and unique in a history. */
export interface SentMessage {
  readonly value: string;
  /** An id that the client chose, the same at each repeat. */
  readonly id?: string;
  readonly task?: string;
}

/** Messages for one queue. */
export interface Batch {
  readonly queue: string;
  readonly messages: readonly SentMessage[];
}

/** A message as it was handed out. */
export interface ReceivedMessage {
  readonly value: string;
  readonly id: string;
  readonly receipt: string;
  /** Whether its bytes were those that its value asks for. */
  readonly intact: boolean;
}

/** One use of a receipt. */
export interface ReceiptItem {
  readonly receipt: string;
  /** Of a nack. */
  readonly delayMs?: number;
  /** Of an extend. */
  readonly leaseMs?: number;
  /** Of an ack. */
  readonly forward?: readonly Batch[];
}

/** A call that uses receipts. */
interface UseCall<Name extends "ack" | "nack" | "release" | "extend"> {
  readonly op: Name;
  readonly queue: string;
  readonly items: readonly ReceiptItem[];
  readonly answers?: readonly string[];
}

/** What was asked for, and once it was answered, the answer. */
export type Call =
  | {
      readonly op: "enqueue";
      readonly queue: string;
      readonly messages: readonly SentMessage[];
      readonly answers?: readonly EnqueueReply[];
    }
  | {
      readonly op: "dequeue";
      readonly queue: string;
      readonly limit: number;
      readonly leaseMs: number;
      readonly requestId?: string;
      readonly received?: readonly ReceivedMessage[];
    }
  | UseCall<"ack">
  | UseCall<"nack">
  | UseCall<"release">
  | UseCall<"extend">
  | {
      readonly op: "status";
      readonly queues: readonly string[];
      readonly counts?: readonly (readonly [pending: number, processing: number])[];
    }
  | {
      readonly op: "wait";
      readonly queues: readonly string[];
      readonly upToNow: boolean;
      readonly timeoutMs: number;
      readonly answer?: "complete" | "timeout";
    }
  | { readonly op: "mark"; readonly mark: string; readonly queues: readonly string[] }
  | { readonly op: "reached"; readonly mark: string; readonly reached?: boolean }
  | { readonly op: "peek"; readonly queue: string; readonly value?: string | null }
  | { readonly op: "clear" | "remove" | "create"; readonly queue: string }
  | {
      readonly op: "submit";
      readonly task: string;
      readonly sealed: boolean;
      readonly batches: readonly Batch[];
      readonly answer?: "created" | "exists";
    }
  | { readonly op: "seal"; readonly task: string }
  | { readonly op: "task"; readonly task: string; readonly status?: string };

/** What the store said to one message of an enqueue. */
export interface EnqueueReply {
  readonly outcome: string;
  readonly id: string;
}

/** What every operation has. Times are nanoseconds of the monotonic clock that the processes of a host share, counted from the run's begin. */
export interface Timing {
  /** Client and lane, `c3.1`. A lane does one thing after the other. */
  readonly client: string;
  /** When the call was begun. */
  readonly begin: number;
  /** When the reply was there; Infinity when it never came. */
  readonly end: number;
  readonly outcome: Outcome;
  /** The code of the error, unless it went well. */
  readonly error?: string;
}

/** One operation. */
export type Operation = Timing & Call;

/** Operations of one kind. */
export type OperationOf<Name extends Call["op"]> = Timing & Extract<Call, { readonly op: Name }>;

/** One thing done to a client or to the server. `process` is a client, or `server`, or `network`. */
export interface Fault {
  readonly kind: string;
  readonly process: string;
  readonly begin: number;
  readonly end: number;
}

/** Everything recorded of one epoch. */
export interface History {
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  /** Whether it ends with a drain: everything left was taken and acked, and then all queues were empty. */
  readonly drained: boolean;
}

/** Which process a client is a lane of. */
export function processOf(client: string): string {
  const dot = client.indexOf(".");
  return dot < 0 ? client : client.slice(0, dot);
}
