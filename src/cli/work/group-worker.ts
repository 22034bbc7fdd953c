/** Takes messages in groups, has a program run on each group, and settles a group as a whole, in one step. */

import { setMaxListeners } from "node:events";
import { type Backoff, backoffMs } from "../../core/backoff.ts";
import { systemClock, systemRandom } from "../../core/clock.ts";
import { isQueueFSError, QueueFSError } from "../../core/errors.ts";
import { MAX_DEQUEUE_LIMIT } from "../../core/limits.ts";
import type { NackAnswer } from "../../core/message.ts";
import { Availability, rest } from "../../queue/availability.ts";
import type { Delivery } from "../../queue/delivery.ts";
import type { NamedQueue } from "../../queue/named-queue.ts";
import { cancellationsOf } from "../../queue/task-watch.ts";
import { type Group, groupsOf } from "./groups.ts";

/** What is to become of the messages of a group. */
export type Settlement =
  | { readonly as: "ack" }
  | { readonly as: "nack"; readonly reason: string; readonly giveUp: boolean }
  /** Not their fault: back at their places, and this delivery does not count. */
  | { readonly as: "release"; readonly reason: string }
  /** The same, and no more are taken for a while. */
  | { readonly as: "release-and-rest"; readonly reason: string };

/**
 * What became of a message. `cancelled`: removed, since its task is being cancelled. `lost`: it was no longer this worker's when it was to be
 * settled.
 */
export type Outcome = "acked" | "nacked" | "dead" | "released" | "cancelled" | "lost";

/** How a {@link GroupWorker} works. */
export interface GroupWorkerOptions {
  /** Groups that run at once. */
  readonly jobs: number;
  /** Messages of a group at most. */
  readonly groupSize: number;
  /** How retries wait. */
  readonly backoff: Backoff;
  /**
   * Runs the program on a group. The signal is aborted when each of its messages is lost or belongs to a cancelled task, or the worker stops and
   * the grace is over.
   */
  readonly run: (group: Group, signal: AbortSignal) => Promise<Settlement>;
  /** Told what became of a group, message for message. */
  readonly onSettled: (group: Group, outcomes: readonly Outcome[], settlement: Settlement) => void;
  /** Told when the store could not be asked for work, or could not settle; both are tried again. */
  readonly onError: (error: unknown) => void;
}

const NACKED: Readonly<Record<NackAnswer, Outcome>> = { pending: "nacked", dead: "dead", cancelled: "cancelled", stale: "lost" };
/** How often to look although nothing woke the worker, in milliseconds. */
const POLL_MS = 5_000;
/** Waits between failed looks, and between failed settlings. */
const FAILURE_BACKOFF: Backoff = { firstMs: 100, maximumMs: 5_000 };
/** How long the store is waited for when the worker stops, in milliseconds; before, settling is tried as long as it takes, with leases kept. */
const LAST_SETTLING_MS = 5_000;
/**
 * Where messages of many tasks lie among each other, most of a claim may have to be put back: the next one then takes at most so many times
 * what the last one could use.
 */
const CLAIM_GROWTH = 8;

/**
 * Works on one queue until it is stopped. Unlike a `Worker` of the library it never holds a message for which no program is free, since
 * another worker may have one free.
 */
export class GroupWorker {
  readonly #queue: NamedQueue<Uint8Array>;
  readonly #options: GroupWorkerOptions;
  readonly #stopTaking = new AbortController();
  readonly #stopPrograms = new AbortController();
  readonly #stopSettling = new AbortController();
  /** Groups whose programs run. */
  readonly #programs = new Set<Promise<Settlement>>();
  /** Groups in work, those being settled included. */
  readonly #active = new Set<Promise<void>>();
  readonly #loop: Promise<void>;
  /** Whether a program could not be started since the last claim. */
  #startFailed = false;
  /** Claims, one after the other, after which that was so. */
  #startFailures = 0;
  /** Messages of the next claim at most. */
  #reach = MAX_DEQUEUE_LIMIT;
  #groupEnded: (() => void) | undefined;

  /** Begins at once. */
  constructor(queue: NamedQueue<Uint8Array>, options: GroupWorkerOptions) {
    this.#queue = queue;
    this.#options = options;
    setMaxListeners(0, this.#stopTaking.signal, this.#stopPrograms.signal, this.#stopSettling.signal);
    this.#loop = this.#work();
  }

  /**
   * Takes no more, gives running programs their grace, then has them ended and their messages released. Resolves when all is settled.
   *
   * @param graceMs in milliseconds
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopTaking.abort();
    // A store that does not answer must not hold up the end.
    await Promise.all([within(LAST_SETTLING_MS, [this.#loop]), within(graceMs, this.#active)]);
    this.#stopPrograms.abort();
    await Promise.all(this.#programs);
    await within(LAST_SETTLING_MS, this.#active);
    this.#stopSettling.abort(
      new QueueFSError(
        "store-unreachable",
        "the store did not answer before the worker ended; messages in its hands are recovered by lease",
      ),
    );
    await Promise.all(this.#active);
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopTaking;
    const availability = new Availability(this.#queue.backend, this.#queue.name, systemClock);
    try {
      for (let failures = 0; !signal.aborted; ) {
        try {
          await this.#takeOnce(availability, signal);
          failures = 0;
        } catch (error) {
          failures += 1;
          this.#options.onError(error);
          await restAfter(failures, signal);
        }
      }
    } finally {
      availability.close();
    }
  }

  async #takeOnce(availability: Availability, signal: AbortSignal): Promise<void> {
    const { jobs, groupSize } = this.#options;
    while (this.#active.size >= jobs && !signal.aborted) await this.#nextEnd(signal);
    this.#startFailures = this.#startFailed ? this.#startFailures + 1 : 0;
    this.#startFailed = false;
    if (this.#startFailures > 0) await restAfter(this.#startFailures, signal);
    if (signal.aborted) return;
    const { version } = availability;
    const free = jobs - this.#active.size;
    const deliveries = await this.#queue.take(Math.min(free * groupSize, this.#reach), true);
    if (deliveries.length === 0) {
      await availability.sleep(version, POLL_MS, signal);
      return;
    }
    availability.found();
    const groups = groupsOf(deliveries, groupSize);
    const surplus = groups.splice(free).flat();
    for (const group of groups) this.#begin(signal.aborted ? this.#settle(group, { as: "release", reason: "" }) : this.#run(group));
    if (surplus.length > 0) this.#begin(this.#putBack(surplus));
    const used = deliveries.length - surplus.length;
    this.#reach = surplus.length === 0 ? MAX_DEQUEUE_LIMIT : Math.min(used * CLAIM_GROWTH, MAX_DEQUEUE_LIMIT);
  }

  #begin(work: Promise<void>): void {
    const ended = work.then(() => {
      this.#active.delete(ended);
      this.#groupEnded?.();
    });
    this.#active.add(ended);
  }

  /** Resolves when a group has ended, or the worker stops. */
  async #nextEnd(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const go = (): void => {
        signal.removeEventListener("abort", go);
        this.#groupEnded = undefined;
        resolve();
      };
      signal.addEventListener("abort", go);
      this.#groupEnded = go;
    });
    // Programs that ended in the same turn free their places together, and the next claim takes as many.
    await new Promise<void>((resolve) => setImmediate(resolve));
  }

  async #run(group: Group): Promise<void> {
    const allLost = new AbortController();
    const lost = new Set<Delivery<Uint8Array>>();
    const cancellations = cancellationsOf(this.#queue.backend, systemClock);
    const unwatch: (() => void)[] = [];
    for (const delivery of group) {
      // A program cannot unlearn one message of several: as long as one is left, its work is good for something.
      const onLost = (): void => {
        lost.add(delivery);
        if (lost.size === group.length) allLost.abort();
      };
      if (delivery.signal.aborted) onLost();
      else delivery.signal.addEventListener("abort", onLost, { once: true });
      if (delivery.task !== undefined) unwatch.push(cancellations.add(delivery.task, onLost));
    }
    const program = this.#options.run(group, AbortSignal.any([allLost.signal, this.#stopPrograms.signal]));
    this.#programs.add(program);
    const settlement = await program;
    this.#programs.delete(program);
    for (const end of unwatch) end();
    if (settlement.as === "release-and-rest") this.#startFailed = true;
    await this.#settle(group, settlement);
  }

  /** Settles a group. Never rejects. */
  async #settle(group: Group, settlement: Settlement): Promise<void> {
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#insist(() => this.#ask(group, settlement));
    } catch (error) {
      this.#options.onError(error);
      outcomes = group.map(() => "lost");
    }
    for (const delivery of group) delivery.abandon();
    this.#options.onSettled(group, outcomes, settlement);
  }

  /** Gives back what no program is free for, as if it had not been taken: only what goes with its task is told. Never rejects. */
  async #putBack(group: Group): Promise<void> {
    const settlement = { as: "release", reason: "" } as const;
    let outcomes: readonly Outcome[] = [];
    try {
      outcomes = await this.#insist(() => this.#ask(group, settlement));
    } catch (error) {
      this.#options.onError(error);
    }
    for (const delivery of group) delivery.abandon();
    const removed = group.filter((_, index) => outcomes[index] === "cancelled");
    if (removed.length === 0) return;
    this.#options.onSettled(
      removed,
      removed.map(() => "cancelled"),
      settlement,
    );
  }

  async #ask(group: Group, settlement: Settlement): Promise<Outcome[]> {
    const { backend, name } = this.#queue;
    switch (settlement.as) {
      case "ack": {
        const answers = await backend.ack(
          name,
          group.map(({ receipt }) => ({ receipt })),
        );
        return answers.map(({ outcome }) => (outcome === "acked" ? "acked" : "lost"));
      }
      case "nack": {
        const { reason, giveUp } = settlement;
        const answers = await backend.nack(
          name,
          group.map(({ receipt, deliveryCount }) => ({ receipt, reason, giveUp, delayMs: giveUp ? 0 : this.#delayMs(deliveryCount) })),
        );
        return answers.map((answer) => NACKED[answer]);
      }
      default: {
        const answers = await backend.release(
          name,
          group.map(({ receipt }) => receipt),
        );
        return answers.map((answer) => (answer === "stale" ? "lost" : answer));
      }
    }
  }

  #delayMs(deliveryCount: number): number {
    return Math.round(backoffMs(this.#options.backoff, deliveryCount, systemRandom));
  }

  /** Repeats while the store does not answer. A repeat of a step that did happen answers stale. */
  async #insist<Answer>(settle: () => Promise<Answer>): Promise<Answer> {
    const { signal } = this.#stopSettling;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await unlessAborted(settle(), signal);
      } catch (error) {
        const again = isQueueFSError(error) && (error.retryable || error.code === "outcome-unknown");
        if (!again || signal.aborted) throw error;
        this.#options.onError(error);
        await restAfter(attempt, signal);
      }
    }
  }
}

async function restAfter(failures: number, signal: AbortSignal): Promise<void> {
  await rest(systemClock, backoffMs(FAILURE_BACKOFF, failures, systemRandom), signal);
}

/** Resolves when all have come to their end, or the time is over. */
async function within(timeMs: number, all: Iterable<Promise<void>>): Promise<void> {
  const over = new AbortController();
  await Promise.race([Promise.all(all), rest(systemClock, timeMs, over.signal)]);
  over.abort();
}

/** What the promise comes to; rejects with the signal's reason when that is aborted before. */
async function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
