/**
 * Consumers that wait for messages: per queue one line of them, served in the order they came. One look is made for a line, however long it
 * is, so that a thousand idle consumers cost as much as one.
 */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { DeliveredMessage, DequeueOptions } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";
import { Availability } from "../queue/availability.ts";

/** What waiting for messages needs of a backend. */
export type DequeueBackend = Pick<Backend, "dequeue" | "nextDue" | "release" | "subscribe">;

/** One consumer in a line. */
interface Waiter {
  readonly options: DequeueOptions;
  resolve(messages: DeliveredMessage[]): void;
  reject(error: unknown): void;
  /** Whether a dequeue for it is in the air. */
  isServed: boolean;
  /** Whether its time was over while it was served: then it takes what that gives. */
  isDue: boolean;
  /** Whether it has its answer, or has gone away. */
  isOver: boolean;
}

/** How often a line looks although nothing woke it, in milliseconds: a safety net under the hints of the store. */
const LOOK_MS = 5_000;

/** Gives back what was taken for somebody who is gone. What fails here, the end of the lease heals. */
export async function giveBack(backend: Pick<Backend, "release">, queue: QueueName, messages: readonly DeliveredMessage[]): Promise<void> {
  if (messages.length === 0) return;
  await backend
    .release(
      queue,
      messages.map(({ receipt }) => receipt),
    )
    .catch(() => {});
}

/** The line before one queue. It ends when nobody is left in it. */
class Line {
  readonly #backend: DequeueBackend;
  readonly #queue: QueueName;
  readonly #availability: Availability;
  readonly #waiters: Waiter[] = [];
  #change = new AbortController();

  constructor(backend: DequeueBackend, queue: QueueName, clock: Clock) {
    this.#backend = backend;
    this.#queue = queue;
    // It is of the backend no more than this.
    this.#availability = new Availability(backend as Backend, queue, clock);
  }

  join(waiter: Waiter): void {
    this.#waiters.push(waiter);
  }

  /** Says that somebody has left: when that was the last one, the line need not sleep on. */
  left(): void {
    if (this.#waiters.every(({ isOver }) => isOver)) this.#change.abort();
  }

  /** Serves until the line is empty, and then calls `onEmpty`, before anybody else can join. */
  async run(onEmpty: () => void): Promise<void> {
    for (let first = this.#first(); first !== undefined; first = this.#first()) {
      const { version } = this.#availability;
      if (await this.#serve(first)) continue;
      this.#change = new AbortController();
      if (this.#first() !== undefined) await this.#availability.sleep(version, LOOK_MS, this.#change.signal);
    }
    this.#availability.close();
    onEmpty();
  }

  /** Takes for one who waits; answers whether another look may give something. */
  async #serve(waiter: Waiter): Promise<boolean> {
    waiter.isServed = true;
    let messages: DeliveredMessage[];
    try {
      messages = await this.#backend.dequeue(this.#queue, waiter.options);
    } catch (error) {
      this.#settle(waiter, () => waiter.reject(error));
      return true;
    }
    waiter.isServed = false;
    if (messages.length > 0) this.#availability.found();
    // Who has gone away and gave a request id may come back for what was taken.
    if (waiter.isOver && waiter.options.requestId === undefined) await giveBack(this.#backend, this.#queue, messages);
    else if (messages.length > 0 || waiter.isDue) this.#settle(waiter, () => waiter.resolve(messages));
    return messages.length > 0;
  }

  #first(): Waiter | undefined {
    while (this.#waiters[0]?.isOver) this.#waiters.shift();
    return this.#waiters[0];
  }

  #settle(waiter: Waiter, tell: () => void): void {
    if (waiter.isOver) return;
    waiter.isOver = true;
    tell();
  }

  /** Sends everybody away with nothing. */
  dismiss(): void {
    for (const waiter of this.#waiters) {
      waiter.isDue = true;
      if (!waiter.isServed) this.#settle(waiter, () => waiter.resolve([]));
    }
    this.left();
  }
}

/** The lines before all queues. */
export class WaitingRoom {
  readonly #backend: DequeueBackend;
  readonly #clock: Clock;
  readonly #lines = new Map<QueueName, Line>();
  #isDismissed = false;

  constructor(backend: DequeueBackend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /**
   * Takes messages as soon as there are any, and answers with none when the time is over.
   *
   * @throws whatever the dequeue rejects with; the reason of `signal`, and then what was taken meanwhile is given back
   */
  async take(queue: QueueName, options: DequeueOptions, waitMs: number, signal: AbortSignal): Promise<DeliveredMessage[]> {
    signal.throwIfAborted();
    if (waitMs === 0 || this.#isDismissed || !this.#lines.has(queue)) {
      const messages = await this.#backend.dequeue(queue, options);
      if (messages.length > 0 || waitMs === 0 || this.#isDismissed) return messages;
      signal.throwIfAborted();
    }
    return this.#wait(queue, options, waitMs, signal);
  }

  #wait(queue: QueueName, options: DequeueOptions, waitMs: number, signal: AbortSignal): Promise<DeliveredMessage[]> {
    const line = this.#lines.get(queue) ?? this.#open(queue);
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = (): void => {
        timer?.cancel();
        signal.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter = {
        options,
        isServed: false,
        isDue: false,
        isOver: false,
        resolve(messages) {
          end();
          resolve(messages);
        },
        reject(error) {
          end();
          reject(error);
        },
      };
      const leave = (tell: () => void): void => {
        if (waiter.isOver) return;
        waiter.isOver = true;
        tell();
        line.left();
      };
      const onAbort = (): void => leave(() => waiter.reject(signal.reason));
      signal.addEventListener("abort", onAbort);
      timer = this.#clock.setTimer(() => {
        waiter.isDue = true;
        if (!waiter.isServed) leave(() => waiter.resolve([]));
      }, waitMs);
      line.join(waiter);
      if (signal.aborted) onAbort();
    });
  }

  #open(queue: QueueName): Line {
    const line = new Line(this.#backend, queue, this.#clock);
    this.#lines.set(queue, line);
    // After the first has joined.
    queueMicrotask(() => {
      void line.run(() => this.#lines.delete(queue));
    });
    return line;
  }

  /** Ends all waits with nothing, and lets none begin. */
  dismiss(): void {
    this.#isDismissed = true;
    for (const line of this.#lines.values()) line.dismiss();
  }
}
