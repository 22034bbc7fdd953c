/** What is remembered for repeats after a lost reply: ids chosen by callers, and answers to requests. */

import { createHash } from "node:crypto";
import type { DeliveredMessage } from "../../core/message.ts";
import type { MessageId } from "../../core/names.ts";
import type { DequeueRequest } from "../../core/request.ts";
import { Heap } from "./heap.ts";
import type { Totals } from "./totals.ts";

/** A message id chosen by a caller. */
export interface RememberedId {
  readonly id: MessageId;
  readonly place: number;
  /** {@link digestOf} the bytes it was used with. */
  readonly digest: string;
  /** Until when it is remembered also after the message is gone, on the monotonic clock. */
  readonly untilMs: number;
}

/** What stands for the bytes of a message when they are gone: SHA-256, one character a byte. */
export function digestOf(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("binary");
}

/** The chosen ids of one queue. An id is known while its message is unacked or a dead letter, and in any case until its time is over. */
export class RememberedIds {
  readonly #totals: Totals;
  readonly #isKept: (remembered: RememberedId) => boolean;
  readonly #records = new Map<MessageId, RememberedId>();
  readonly #expiries = new Heap<RememberedId>();

  /** @param isKept whether the message is unacked or a dead letter */
  constructor(totals: Totals, isKept: (remembered: RememberedId) => boolean) {
    this.#totals = totals;
    this.#isKept = isKept;
  }

  /** How many are held, forgettable ones included. */
  get size(): number {
    return this.#records.size;
  }

  /** What is known of an id at this time, if anything. */
  find(id: MessageId, nowMs: number): RememberedId | undefined {
    const record = this.#records.get(id);
    return record !== undefined && (nowMs < record.untilMs || this.#isKept(record)) ? record : undefined;
  }

  /** The place of the message with this id, whether or not it is still there. */
  place(id: MessageId): number | undefined {
    return this.#records.get(id)?.place;
  }

  /** Remembers an id of which nothing is known. */
  add(record: RememberedId): void {
    if (!this.#records.has(record.id)) this.#totals.remembered += 1;
    this.#records.set(record.id, record);
    this.#expiries.push(record.untilMs, record);
  }

  /**
   * Forgets at most so many whose time is over. One whose message is still there is looked at again after `againMs`.
   *
   * @returns how many were looked at
   */
  purge(nowMs: number, atMost: number, againMs: number): number {
    let count = 0;
    for (; count < atMost && this.#expiries.firstKey() <= nowMs; count += 1) {
      const record = this.#expiries.pop() as RememberedId;
      // Forgotten already, because the id was used anew.
      if (this.#records.get(record.id) !== record) continue;
      if (this.#isKept(record)) {
        this.#expiries.push(nowMs + againMs, record);
      } else {
        this.#records.delete(record.id);
        this.#totals.remembered -= 1;
      }
    }
    return count;
  }

  /** Forgets all. */
  clear(): void {
    this.#totals.remembered -= this.#records.size;
    this.#records.clear();
    this.#expiries.compact(() => false);
  }
}

/** The answer to a dequeue with a request id. Its bytes are its own. */
export interface RememberedAnswer {
  readonly requestId: string;
  readonly request: DequeueRequest;
  readonly messages: readonly DeliveredMessage[];
  readonly bytes: number;
  readonly untilMs: number;
}

/** The answers of one queue by request id. */
export class RememberedAnswers {
  readonly #totals: Totals;
  readonly #records = new Map<string, RememberedAnswer>();
  readonly #expiries = new Heap<RememberedAnswer>();

  constructor(totals: Totals) {
    this.#totals = totals;
  }

  /** How many are held. */
  get size(): number {
    return this.#records.size;
  }

  /** The answer given to a request id, if it is still remembered. */
  find(requestId: string, nowMs: number): RememberedAnswer | undefined {
    const record = this.#records.get(requestId);
    return record !== undefined && nowMs < record.untilMs ? record : undefined;
  }

  /** Remembers an answer, in the place of one that the same request id had. */
  add(record: RememberedAnswer): void {
    this.forget(record.requestId);
    this.#records.set(record.requestId, record);
    this.#expiries.push(record.untilMs, record);
    this.#totals.remembered += 1;
    this.#totals.rememberedBytes += record.bytes;
  }

  /** Forgets the answer to a request id, if there is one. */
  forget(requestId: string): void {
    const record = this.#records.get(requestId);
    if (record === undefined) return;
    this.#records.delete(requestId);
    this.#totals.remembered -= 1;
    this.#totals.rememberedBytes -= record.bytes;
  }

  /** Forgets at most so many whose time is over. @returns how many were looked at */
  purge(nowMs: number, atMost: number): number {
    let count = 0;
    for (; count < atMost && this.#expiries.firstKey() <= nowMs; count += 1) {
      const record = this.#expiries.pop() as RememberedAnswer;
      if (this.#records.get(record.requestId) === record) this.forget(record.requestId);
    }
    return count;
  }

  /** Forgets all. */
  clear(): void {
    for (const requestId of this.#records.keys()) this.forget(requestId);
    this.#expiries.compact(() => false);
  }
}
