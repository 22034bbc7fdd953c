/** What the model is made of, and what it is asked. */

import type { ANY } from "./correspondence.ts";

/** A message of the model; bytes are hexadecimal text. */
export interface ModelMessage {
  readonly id: string;
  readonly data: string;
  readonly place: number;
  readonly enqueuedAtMs: number;
  state: "pending" | "processing";
  deliveryCount: number;
  notBeforeMs: number;
  receipt: string;
  leaseEndMs: number;
  lastReason: string;
}

/** A dead letter of the model. */
export interface ModelDeadLetter {
  readonly message: ModelMessage;
  readonly deliveryCount: number;
  readonly reason: string | typeof ANY;
  readonly diedAtMs: number;
  /** Those that died in one recovery have one number, and no order among them is promised. */
  readonly group: number;
}

/** What the model remembers of an id that a caller chose. */
export interface ModelChosenId {
  readonly id: string;
  readonly data: string;
  readonly forgetAtMs: number;
}

/** A dequeue with a request id that was answered. */
export interface ModelRequest {
  readonly requestId: string;
  readonly arguments: string;
  readonly answer: readonly unknown[];
  readonly forgetAtMs: number;
}

/** A queue of the model. */
export interface ModelQueue {
  readonly name: string;
  readonly life: number;
  readonly createdAtMs: number;
  maxDeliveries: number;
  messages: ModelMessage[];
  dead: ModelDeadLetter[];
  chosenIds: ModelChosenId[];
  requests: ModelRequest[];
  clears: number;
  redrivenAcrossClear: boolean;
  readonly counts: { enqueued: number; delivered: number; acked: number; returned: number; deadLettered: number; cleared: number };
}

/** A message to be stored in the model. */
export interface ModelNewMessage {
  readonly data: string;
  readonly id?: string;
  readonly delayMs?: number;
}

/** What a dequeue asks of the model. */
export interface ModelDequeue {
  readonly limit: number;
  readonly leaseMs: number;
  readonly owner: "process" | "receipt";
  readonly requestId?: string;
}

/** One ack, with what it forwards. */
export interface ModelAckItem {
  readonly receipt: string;
  readonly forward: readonly { readonly queue: string; readonly messages: readonly ModelNewMessage[] }[];
}

/** One nack. */
export interface ModelNackItem {
  readonly receipt: string;
  readonly delayMs: number;
  readonly giveUp: boolean;
  readonly reason: string;
}

/** A mark of the model. */
export interface ModelMark {
  readonly queues: readonly { readonly queue: string; readonly life: number; readonly place: number; readonly clears: number }[];
}
