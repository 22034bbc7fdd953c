/** A message in a program's hands: its value, and the ways to settle it. */

import type { Backend } from "../backend/contract.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import type { AckAnswer, DeliveredMessage, Forward, NackAnswer, ReleaseAnswer } from "../core/message.ts";
import type { MessageId, QueueName, Receipt, TaskId } from "../core/names.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { runInTask } from "./task-scope.ts";
import type { Telemetry } from "./telemetry.ts";

/** What deliveries of one queue share. */
export interface DeliveryContext {
  readonly backend: Backend;
  readonly queue: QueueName;
  readonly keeper: LeaseKeeper;
  readonly telemetry: Telemetry;
}

/** How a delivery is given back. */
export interface NackOptions {
  /** Not to be delivered again before so many milliseconds have passed. 0 to 366 days, default 0. */
  readonly delayMs?: number;
  /** Why, kept with the message. Cut at 4,096 characters. */
  readonly reason?: string;
  /** Whether to give the message up: it moves to the dead letters. Default false. */
  readonly giveUp?: boolean;
}

/**
 * One delivery of one message. Exactly one of ack, nack and release settles it; `await using` nacks what was left unsettled. A second
 * settling call answers `stale`, as the store would.
 */
export class Delivery<Value> implements AsyncDisposable {
  /** The id of the message, the same at every delivery. */
  readonly id: MessageId;
  /** The decoded value. */
  readonly value: Value;
  /** The bytes. */
  readonly data: Uint8Array;
  /** The name of this delivery. */
  readonly receipt: Receipt;
  /** Which delivery of the message this is, from 1; crashes count, releases don't. */
  readonly deliveryCount: number;
  /** When the message was enqueued, by the store's wall clock, in milliseconds since 1970-01-01 UTC. */
  readonly enqueuedAtMs: number;
  /** The lease it was handed out with, in milliseconds. */
  readonly leaseMs: number;
  /** The task that owns the message; absent when none does. */
  readonly task?: TaskId;
  readonly #context: DeliveryContext;
  readonly #lost: AbortController;
  #settled = false;

  constructor(context: DeliveryContext, message: DeliveredMessage, value: Value, lost: AbortController) {
    this.#context = context;
    this.id = message.id;
    this.value = value;
    this.data = message.data;
    this.receipt = message.receipt;
    this.deliveryCount = message.deliveryCount;
    this.enqueuedAtMs = message.enqueuedAtMs;
    this.leaseMs = message.leaseMs;
    if (message.task !== undefined) this.task = message.task;
    this.#lost = lost;
  }

  /** The store it came from. */
  get backend(): Backend {
    return this.#context.backend;
  }

  /**
   * Aborted when the lease was lost: somebody else may have the message, so what is done from now on is done twice. Only leases that are
   * renewed by themselves are watched, those of workers and of `consume`.
   */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether ack, nack or release was called. */
  get isSettled(): boolean {
    return this.#settled;
  }

  /**
   * Calls a function as a handler would be called: what it enqueues into named queues of this store belongs to the task of this message. For
   * those who take deliveries by `consume` or raw `dequeue`; handlers are called so by themselves.
   */
  run<Result>(work: () => Result): Result {
    return runInTask(this.task === undefined ? undefined : { backend: this.#context.backend, task: this.task }, work);
  }

  /** Done: removes the message, and stores what it forwards in the same step. `stale`: the delivery was no longer the current one, nothing changed. */
  async ack(options: { readonly forward?: readonly Forward[] } = {}): Promise<AckAnswer["outcome"]> {
    if (!this.#begin()) return "stale";
    const item = options.forward === undefined ? { receipt: this.receipt } : { receipt: this.receipt, forward: options.forward };
    const [answer] = await this.#attempt(() => this.#context.backend.ack(this.#context.queue, [item]));
    if (answer?.outcome !== "acked") return "stale";
    this.#context.telemetry.countProcessed();
    for (const { outcome, id } of answer.forwarded.flat()) if (outcome === "conflict") this.#tellConflict(id);
    return "acked";
  }

  #tellConflict(id: MessageId): void {
    const error = new QueueFSError(
      "id-conflict",
      `forwarding from queue ${quote(this.#context.queue)} used message id ${quote(id)}, which has another value already; that value was not stored`,
    );
    this.#context.telemetry.recordError(error, { id: this.id, attempt: this.deliveryCount });
  }

  /** Failed: gives the message back, or up. Answers where it went; `stale` when the delivery was no longer the current one. */
  async nack(options: NackOptions = {}): Promise<NackAnswer> {
    if (!this.#begin()) return "stale";
    const [answer = "stale"] = await this.#attempt(() =>
      this.#context.backend.nack(this.#context.queue, [{ receipt: this.receipt, ...options }]),
    );
    if (answer === "pending") this.#context.telemetry.countRequeue();
    return answer;
  }

  /** Not begun, and not this consumer's fault: gives the message back at once, and this delivery does not count. */
  async release(): Promise<ReleaseAnswer> {
    const answer = await this.putBack();
    if (answer === "released") this.#context.telemetry.countRequeue();
    return answer;
  }

  /** Releases what was taken ahead and never looked at: the telemetry does not count it. */
  async putBack(): Promise<ReleaseAnswer> {
    if (!this.#begin()) return "stale";
    const [answer = "stale"] = await this.#attempt(() => this.#context.backend.release(this.#context.queue, [this.receipt]));
    return answer;
  }

  /** Renews the lease, counted from now. Deliveries of workers and of `consume` are renewed by themselves. */
  async extend(leaseMs: number = this.leaseMs): Promise<"extended" | "stale"> {
    const [answer = "stale"] = await this.#context.backend.extend(this.#context.queue, [{ receipt: this.receipt, leaseMs }]);
    return answer;
  }

  #begin(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    return true;
  }

  // The lease is kept until the store has answered; when it fails to, the call may be repeated.
  async #attempt<Answer>(settle: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await settle();
      this.#context.keeper.drop(this.receipt);
      return answer;
    } catch (error) {
      this.#settled = false;
      throw error;
    }
  }

  /** A function that does as {@link abandon} does and does not keep the delivery itself in memory. */
  letGo(): () => void {
    const { keeper } = this.#context;
    const { receipt } = this;
    return () => keeper.drop(receipt);
  }

  /** Stops renewing the lease without settling: it ends by itself. */
  abandon(): void {
    this.#context.keeper.drop(this.receipt);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#settled) await this.nack({ reason: "left unsettled by its consumer" });
    this.abandon();
  }
}
