/** A queue as a program holds it: values instead of bytes, made at first use, with this process's telemetry beside the one truth. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import { DEFAULT_LEASE_MS, MAX_DELAY_MS, MAX_LEASE_MS, MIN_LEASE_MS } from "../core/limits.ts";
import type { Cleared, DeliveredMessage, Forward, NewMessage, Page, PageOptions, QueueSettings, Status } from "../core/message.ts";
import {
  type MessageId,
  parseChosenMessageId,
  parseMessageId,
  parseQueueName,
  parseTaskId,
  type QueueName,
  type TaskId,
} from "../core/names.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import type { WaitedStatus } from "./clear-watch.ts";
import { type Codec, jsonCodec } from "./codec.ts";
import { type ConsumeOptions, consume } from "./consume.ts";
import { Delivery, type DeliveryContext } from "./delivery.ts";
import { checkEnqueueOptions, type EnqueueOptions } from "./enqueue-options.ts";
import { errorText } from "./error-text.ts";
import type { Handler } from "./handler.ts";
import { type LeaseHolding, leasesOf } from "./lease-holding.ts";
import { type RunOutcome, runHandler } from "./run-handler.ts";
import { currentTask } from "./task-scope.ts";
import { Telemetry, type TelemetryCounts } from "./telemetry.ts";
import { isTracingLoading, tracing } from "./tracing.ts";
import { isAllComplete, type WaitOptions, waitComplete } from "./wait.ts";

/** Options of a {@link NamedQueue}, as a table. */
export const NAMED_QUEUE_OPTIONS = {
  codec: { type: "object", meaning: "how values become bytes; JSON unless given" },
  settings: { type: "object", meaning: "settings of the queue if it is made now" },
  leaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    default: DEFAULT_LEASE_MS,
    meaning: "lease of deliveries, in milliseconds",
  },
  onEnqueue: { type: "object", meaning: "gets each value before it is encoded, and answers with the one to store" },
  clock: { type: "object", meaning: "the time; the host's unless given" },
} as const satisfies OptionTable;

/** Options of a {@link NamedQueue}. */
export interface NamedQueueOptions<Value> {
  /** How values become bytes and back. Default JSON. */
  readonly codec?: Codec<Value>;
  /** Settings of the queue, used if this is what makes it. */
  readonly settings?: Partial<QueueSettings>;
  /** Lease of deliveries, in milliseconds. 10 ms to 7 days, default 30,000. */
  readonly leaseMs?: number;
  /** A hook: gets each value before it is encoded, and answers with the value to store. What it throws rejects the enqueue. */
  readonly onEnqueue?: (value: Value) => Value | Promise<Value>;
  /** The time; the host's unless given. */
  readonly clock?: Clock;
}

/** The status of a queue, and beside it what this process has seen, which cannot influence it. */
export interface NamedQueueStatus extends Status {
  readonly telemetry: TelemetryCounts;
}

/** Where a value can be forwarded to. */
export type ForwardTarget<Value> = Pick<NamedQueue<Value>, "name" | "encode" | "ensure">;

/** One queue of a store. */
export class NamedQueue<Value = unknown> {
  /** The name of the queue. */
  readonly name: QueueName;
  /** The store. */
  readonly backend: Backend;
  /** Lease of deliveries, in milliseconds. */
  readonly leaseMs: number;
  readonly #codec: Codec<Value>;
  readonly #options: NamedQueueOptions<Value>;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #leases: LeaseHolding;
  #made: Promise<unknown> | undefined;

  /**
   * @param name the queue; it is made at first use
   * @throws QueueFSError `invalid-name`, `reserved-name`, `invalid-argument`
   */
  constructor(backend: Backend, name: string, options: NamedQueueOptions<Value> = {}) {
    this.name = parseQueueName(name);
    this.backend = backend;
    const { leaseMs } = readOptions("NamedQueue", NAMED_QUEUE_OPTIONS, options);
    this.leaseMs = leaseMs;
    this.#options = options;
    this.#codec = options.codec ?? (jsonCodec() as Codec<Value>);
    this.#clock = options.clock ?? systemClock;
    this.#telemetry = new Telemetry(this.#clock);
    this.#leases = leasesOf(backend, this.#clock);
  }

  /** Makes the queue if it is missing; every other method does so by itself at first use. */
  async ensure(): Promise<void> {
    this.#made ??= this.backend.createQueue(this.name, this.#options.settings);
    try {
      await this.#made;
    } catch (error) {
      this.#made = undefined;
      throw error;
    }
  }

  /** The message of a value, after the hook. @throws QueueFSError `invalid-argument` for a value that the codec refuses */
  async encode(value: Value, options: EnqueueOptions = {}): Promise<NewMessage> {
    checkEnqueueOptions(options);
    const hooked = this.#options.onEnqueue === undefined ? value : await this.#options.onEnqueue(value);
    const data = await this.#codec.encode(hooked);
    const delayMs = this.#delayOf(options);
    const task = this.#taskOf(options);
    const id = options.id === undefined ? tracing()?.messageId() : parseChosenMessageId(options.id);
    return {
      data,
      ...(id === undefined ? {} : { id }),
      // Anything but a number is the store's to refuse; dropped here, it would mean "at once".
      ...(delayMs === 0 ? {} : { delayMs }),
      ...(task === undefined ? {} : { task }),
    };
  }

  #taskOf({ task }: EnqueueOptions): TaskId | undefined {
    if (task === undefined) return currentTask(this.backend);
    return task === null ? undefined : parseTaskId(task);
  }

  #delayOf({ delayMs, at }: EnqueueOptions): number {
    if (at === undefined) return delayMs ?? 0;
    if (delayMs !== undefined) throw new QueueFSError("invalid-argument", "give delayMs or at, not both");
    const left = at.getTime() - this.#clock.wallMs();
    if (Number.isNaN(left)) throw new QueueFSError("invalid-argument", "at must be a valid date");
    if (left > MAX_DELAY_MS)
      throw new QueueFSError("invalid-argument", `at lies ${Math.round(left / 86_400_000)} days ahead; the limit is 366`);
    return Math.max(0, Math.ceil(left));
  }

  /** Stores one value; resolves with its id once it is durable as the store promises. @throws QueueFSError `id-conflict` for an id used with another value */
  enqueue(value: Value, options: EnqueueOptions = {}): Promise<MessageId> {
    return this.#traced(1, () => this.#enqueue(value, options));
  }

  async #enqueue(value: Value, options: EnqueueOptions): Promise<MessageId> {
    const [message] = await Promise.all([this.encode(value, options), this.ensure()]);
    const [answer] = await this.backend.enqueue(this.name, [message]);
    return this.#accepted(answer);
  }

  /** Stores many values in one step, in their order; resolves with their ids. @throws QueueFSError `id-conflict` when one's id was used with another value; the others are stored */
  enqueueMany(values: readonly Value[], options: (value: Value, index: number) => EnqueueOptions = () => ({})): Promise<MessageId[]> {
    return this.#traced(values.length, () => this.#enqueueMany(values, options));
  }

  async #enqueueMany(values: readonly Value[], options: (value: Value, index: number) => EnqueueOptions): Promise<MessageId[]> {
    const [messages] = await Promise.all([
      Promise.all(values.map((value, index) => this.encode(value, options(value, index)))),
      this.ensure(),
    ]);
    return (await this.backend.enqueue(this.name, messages)).map((answer) => this.#accepted(answer));
  }

  /** Does an enqueue within a span, where traces are made. */
  #traced<Result>(count: number, enqueue: () => Promise<Result>): Promise<Result> {
    const loading = isTracingLoading();
    if (loading !== undefined) return loading.then(() => this.#traced(count, enqueue));
    const trace = tracing();
    return trace === undefined ? enqueue() : trace.send(this.name, count, enqueue);
  }

  #accepted(answer: { readonly outcome: string; readonly id: MessageId } | undefined): MessageId {
    if (answer === undefined || answer.outcome === "conflict") {
      throw new QueueFSError(
        "id-conflict",
        `message id ${quote(answer?.id)} of queue ${quote(this.name)} was used with another value; choose a new one`,
      );
    }
    return answer.id;
  }

  /** Values for another queue's message, to be given to `ack({ forward })`. */
  async forward(...values: readonly Value[]): Promise<Forward> {
    const [messages] = await Promise.all([Promise.all(values.map((value) => this.encode(value))), this.ensure()]);
    return { queue: this.name, messages };
  }

  /** Takes one message, or `undefined` when none is available. Its lease is not renewed by itself: settle it in time, or extend it. */
  dequeue(): Promise<Delivery<Value> | undefined>;
  /**
   * Takes one message, runs the handler on it with its lease kept, and settles it by what the handler answers: nothing is acked, a verdict is
   * followed, a throw is a nack. Resolves with what became of it; `empty` when none was available.
   */
  dequeue(handler: Handler<Value>): Promise<RunOutcome | "empty">;
  async dequeue(handler?: Handler<Value>): Promise<Delivery<Value> | undefined | RunOutcome | "empty"> {
    const [delivery] = await this.take(1, handler !== undefined);
    if (handler === undefined) return delivery;
    return delivery === undefined
      ? "empty"
      : runHandler(handler, delivery, { queue: this.name, telemetry: this.#telemetry, clock: this.#clock });
  }

  /**
   * Takes up to `limit` messages. Those that cannot be decoded are moved to the dead letters with the reason, and others taken instead.
   *
   * @param keepLeases whether their leases are renewed until they are settled
   * @param longestBusyMs for how long a second thread, where there is one, renews them while this one is kept busy, in milliseconds
   */
  async take(limit: number, keepLeases: boolean, longestBusyMs = Number.POSITIVE_INFINITY): Promise<Delivery<Value>[]> {
    await this.ensure();
    for (;;) {
      const askedMs = this.#clock.monotonicMs();
      const trace = tracing();
      const askedAtMs = trace === undefined ? 0 : this.#clock.wallMs();
      const messages = await this.backend.dequeue(this.name, { limit, leaseMs: this.leaseMs, owner: "process" });
      if (messages.length > 0) trace?.received(this.name, askedAtMs, messages);
      const controllers = messages.map(() => new AbortController());
      if (keepLeases) this.#keep(messages, controllers, askedMs, longestBusyMs);
      const deliveries = await this.#open(messages, controllers);
      // All unreadable: they are out of the way now, and the next may be good.
      if (deliveries.length > 0 || messages.length === 0) return deliveries;
    }
  }

  #keep(messages: readonly DeliveredMessage[], controllers: readonly AbortController[], askedMs: number, longestBusyMs: number): void {
    this.#leases.keeper.hold(
      messages.map(({ id, receipt, leaseMs }, index) => ({
        queue: this.name,
        receipt,
        leaseMs,
        longestBusyMs,
        onLost: () => controllers[index]?.abort(lostLease(this.name, id)),
      })),
      askedMs,
    );
  }

  async #open(messages: readonly DeliveredMessage[], controllers: readonly AbortController[]): Promise<Delivery<Value>[]> {
    const context: DeliveryContext = { backend: this.backend, queue: this.name, keeper: this.#leases.keeper, telemetry: this.#telemetry };
    const opened = await Promise.all(
      messages.map(async (message, index) => {
        try {
          return new Delivery(context, message, await this.#codec.decode(message.data), controllers[index] as AbortController);
        } catch (error) {
          await this.#quarantine(context, message, error);
          return undefined;
        }
      }),
    );
    return opened.filter((delivery) => delivery !== undefined);
  }

  async #quarantine(context: DeliveryContext, message: DeliveredMessage, error: unknown): Promise<void> {
    const about = { id: message.id, attempt: message.deliveryCount };
    this.#telemetry.recordError(error, about);
    const unreadable = new Delivery(context, message, undefined, new AbortController());
    try {
      await unreadable.nack({ giveUp: true, reason: `cannot be decoded as ${this.#codec.name}: ${errorText(error)}` });
    } catch (failure) {
      // It must not take the readable ones of its batch with it. Its lease ends by itself, and whoever gets it then tries again.
      this.#telemetry.recordError(failure, about);
      unreadable.abandon();
    }
  }

  /** Messages one after the other, as they come, until the signal is aborted or the loop is left. What was taken ahead is released then. */
  consume(options: ConsumeOptions = {}): AsyncIterableIterator<Delivery<Value>> {
    return consume(this, options, this.#clock);
  }

  /** Removes a message in processing by its id or receipt, for consumers that kept only that. */
  async ack(idOrReceipt: string): Promise<"acked" | "stale"> {
    await this.ensure();
    const id = parseMessageId(idOrReceipt);
    if (id.startsWith("r-")) {
      const [answer] = await this.backend.ack(this.name, [{ receipt: id as never }]);
      return answer?.outcome ?? "stale";
    }
    const [answer] = await this.backend.ackById(this.name, [id]);
    return answer === "acked" ? "acked" : "stale";
  }

  /** The value that a dequeue would take now; it stays. `undefined` when there is none. */
  async peek(): Promise<{ readonly id: MessageId; readonly value: Value } | undefined> {
    await this.ensure();
    const message = await this.backend.peek(this.name);
    return message === undefined ? undefined : { id: message.id, value: await this.#codec.decode(message.data) };
  }

  /** How many messages are pending. */
  async size(): Promise<number> {
    return (await this.#status()).pending;
  }

  /** One page of the unacked messages in queue order, as bytes; nothing changes. */
  async messages(
    options?: PageOptions,
  ): Promise<Page<{ readonly id: MessageId; readonly data: Uint8Array; readonly state: "pending" | "processing" }>> {
    await this.ensure();
    return this.backend.messages(this.name, options);
  }

  /** Removes all unacked messages in one step; later acks of those are stale. */
  async clear(): Promise<Cleared> {
    await this.ensure();
    return this.backend.clear(this.name);
  }

  async #status(): Promise<Status> {
    await this.ensure();
    return this.backend.status(this.name);
  }

  /** One snapshot of the store, and this process's telemetry beside it. */
  async getStatus(): Promise<NamedQueueStatus> {
    const { pending, processing } = await this.#status();
    return { pending, processing, telemetry: this.#telemetry.read() };
  }

  /** Whether nothing is unacknowledged, by one snapshot. */
  async isAllComplete(): Promise<boolean> {
    await this.ensure();
    return isAllComplete(this.backend, { queues: [this.name] });
  }

  /** Waits until the queue is complete; see {@link waitComplete} for options and errors. */
  async waitComplete(options?: WaitOptions): Promise<WaitedStatus> {
    await this.ensure();
    const [status] = await waitComplete(this.backend, { queues: [this.name] }, options, this.#clock);
    return status as WaitedStatus;
  }

  /** This process's counts. */
  get telemetry(): Telemetry {
    return this.#telemetry;
  }

  /** Sets this process's telemetry to zero; the store's numbers are untouched. */
  resetStatus(): void {
    this.#telemetry.reset();
  }
}

function lostLease(queue: QueueName, id: MessageId): QueueFSError {
  return new QueueFSError(
    "not-in-processing",
    `the lease of message ${quote(id)} of queue ${quote(queue)} was lost: it ended, or the message was removed; stop working on it`,
  );
}
