/** Sends many messages in few calls: what gathers while one call is in the air goes with the next. */

import type { Backend } from "../backend/contract.ts";
import { MAX_BATCH_ITEMS } from "../core/limits.ts";
import type { EnqueueAnswer, NewMessage } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";

const BATCH_BYTES = 4 * 1024 * 1024;

/** Sends messages to one queue, in order, one call at a time. */
export class BatchSender {
  readonly #backend: Backend;
  readonly #queue: QueueName;
  readonly #onAnswers: (answers: readonly EnqueueAnswer[]) => Promise<void>;
  readonly #maxBytes: number;
  #waiting: NewMessage[] = [];
  #bytes = 0;
  #inFlight: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  /** @param onAnswers gets the answers of each call, in order, before the next call begins */
  constructor(backend: Backend, queue: QueueName, onAnswers: (answers: readonly EnqueueAnswer[]) => Promise<void>) {
    this.#backend = backend;
    this.#queue = queue;
    this.#onAnswers = onAnswers;
    this.#maxBytes = Math.min(BATCH_BYTES, backend.description.maxMessageBytes);
  }

  /** Takes a message, and waits where enough is waiting already. Rejects with what an earlier call rejected with. */
  async add(message: NewMessage): Promise<void> {
    // At once, since input that comes in drops might never fill a call.
    if (this.#failure !== undefined) throw this.#failure.error;
    const full = this.#waiting.length >= MAX_BATCH_ITEMS || this.#bytes + message.data.byteLength > this.#maxBytes;
    if (full && this.#waiting.length > 0) await this.finish();
    this.#waiting.push(message);
    this.#bytes += message.data.byteLength;
  }

  /** Begins a call with what is waiting, if none is in the air. */
  offer(): void {
    if (this.#inFlight !== undefined || this.#failure !== undefined || this.#waiting.length === 0) return;
    const messages = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    this.#inFlight = this.#send(messages);
  }

  async #send(messages: readonly NewMessage[]): Promise<void> {
    try {
      await this.#onAnswers(await this.#backend.enqueue(this.#queue, messages));
    } catch (error) {
      this.#failure = { error };
    }
    this.#inFlight = undefined;
    this.offer();
  }

  /** Resolves when all that was taken has been answered. Rejects with what a call rejected with. */
  async finish(): Promise<void> {
    this.offer();
    while (this.#inFlight !== undefined) await this.#inFlight;
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
