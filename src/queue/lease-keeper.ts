/** Renewing leases while deliveries are in hand, in batches, and saying so when one was lost. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { isQueueFSError } from "../core/errors.ts";
import { MAX_BATCH_ITEMS } from "../core/limits.ts";
import type { ExtendItem } from "../core/message.ts";
import type { QueueName, Receipt } from "../core/names.ts";
import type { LeaseThread } from "./lease-thread.ts";

/** A lease is renewed when a third of it has passed, so that two renewals may fail before it ends. */
const RENEWALS_PER_LEASE = 3;

/** One delivery whose lease is kept. */
export interface HeldLease {
  readonly queue: QueueName;
  readonly receipt: Receipt;
  /** The lease to be renewed for, in milliseconds. */
  readonly leaseMs: number;
  /**
   * For how long the second thread may renew it while this one does not turn, in milliseconds: a handler that blocks it for longer counts as
   * hung. `Infinity` for as long as it takes.
   */
  readonly longestBusyMs: number;
  /** Called once when the delivery is no longer the current one, or the store is closed. */
  readonly onLost: () => void;
}

interface Held extends HeldLease {
  /** When it was last renewed, or handed out. */
  sinceMs: number;
  dueMs: number;
}

/** Keeps the leases of one backend. */
export class LeaseKeeper {
  readonly #backend: Backend;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  #thread: LeaseThread | undefined;
  readonly #held = new Map<Receipt, Held>();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;
  #renewing = false;

  constructor(backend: Backend, clock: Clock, onError: (error: unknown) => void) {
    this.#backend = backend;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** Has a second thread renew as well while this one is busy; `undefined` for no longer. */
  useThread(thread: LeaseThread | undefined): void {
    this.#thread = thread;
    if (thread !== undefined) for (const lease of this.#held.values()) thread.hold([lease], lease.sinceMs);
  }

  /**
   * Keeps leases until they are dropped or lost.
   *
   * @param sinceMs when the store was asked for them, by the monotonic clock: it counts them from then at the earliest
   */
  hold(leases: readonly HeldLease[], sinceMs: number): void {
    if (leases.length === 0) return;
    let firstMs = Number.POSITIVE_INFINITY;
    for (const lease of leases) {
      const dueMs = sinceMs + lease.leaseMs / RENEWALS_PER_LEASE;
      this.#held.set(lease.receipt, { ...lease, sinceMs, dueMs });
      firstMs = Math.min(firstMs, dueMs);
    }
    this.#thread?.hold(leases, sinceMs);
    this.#arm(firstMs);
  }

  /** How many leases are kept. */
  get size(): number {
    return this.#held.size;
  }

  /** Lets go of a lease: its delivery is being settled, or is no longer wanted. */
  drop(receipt: Receipt): void {
    if (!this.#held.delete(receipt)) return;
    this.#thread?.drop(receipt);
    if (this.#held.size === 0) this.#disarm();
  }

  #arm(dueMs: number): void {
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) return;
    this.#disarm();
    this.#timerDueMs = dueMs;
    this.#timer = this.#clock.setTimer(
      () => {
        this.#disarm();
        void this.#renewDue();
      },
      Math.max(0, dueMs - this.#clock.monotonicMs()),
    );
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }

  async #renewDue(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    try {
      const nowMs = this.#clock.monotonicMs();
      const byQueue = new Map<QueueName, HeldLease[]>();
      for (const lease of this.#held.values()) {
        // Taken along a little early, so that leases of one moment stay together.
        if (lease.dueMs > nowMs + lease.leaseMs / (2 * RENEWALS_PER_LEASE)) continue;
        const same = byQueue.get(lease.queue);
        if (same === undefined) byQueue.set(lease.queue, [lease]);
        else same.push(lease);
      }
      await Promise.all([...byQueue].map(([queue, leases]) => this.#renew(queue, leases)));
    } finally {
      this.#renewing = false;
      this.#armNext();
    }
  }

  #armNext(): void {
    let firstMs = Number.POSITIVE_INFINITY;
    for (const lease of this.#held.values()) firstMs = Math.min(firstMs, lease.dueMs);
    if (firstMs !== Number.POSITIVE_INFINITY) this.#arm(firstMs);
  }

  async #renew(queue: QueueName, leases: readonly HeldLease[]): Promise<void> {
    for (let start = 0; start < leases.length; start += MAX_BATCH_ITEMS) {
      const batch = leases.slice(start, start + MAX_BATCH_ITEMS);
      const askedMs = this.#clock.monotonicMs();
      try {
        const answers = await this.#backend.extend(
          queue,
          batch.map(({ receipt, leaseMs }): ExtendItem => ({ receipt, leaseMs })),
        );
        for (const [index, lease] of batch.entries()) this.#renewed(lease, answers[index] === "extended", askedMs);
      } catch (error) {
        // A closed store, or a queue that was removed, renews nothing ever again.
        const isOver = isQueueFSError(error, "closed") || isQueueFSError(error, "queue-not-found");
        if (!isOver) this.#onError(error);
        for (const lease of batch) {
          if (isOver) this.#lose(lease);
          else this.#failed(lease);
        }
      }
    }
  }

  #renewed(lease: HeldLease, extended: boolean, askedMs: number): void {
    const held = this.#held.get(lease.receipt);
    if (held === undefined) return;
    if (!extended) {
      this.#lose(lease);
      return;
    }
    held.sinceMs = askedMs;
    held.dueMs = askedMs + lease.leaseMs / RENEWALS_PER_LEASE;
  }

  /** The store did not answer: again soon. Whether the lease is lost only the store can say, when it is back. */
  #failed(lease: HeldLease): void {
    const held = this.#held.get(lease.receipt);
    if (held !== undefined) held.dueMs = this.#clock.monotonicMs() + lease.leaseMs / (4 * RENEWALS_PER_LEASE);
  }

  #lose(lease: HeldLease): void {
    if (!this.#held.has(lease.receipt)) return;
    this.drop(lease.receipt);
    lease.onLost();
  }
}
