/** The state that the clients of one memory store share. */

import { type Random, systemRandom } from "../../core/clock.ts";
import { QueueFSError, queueNotFound } from "../../core/errors.ts";
import { RECOVERY_STEP_ITEMS } from "../../core/limits.ts";
import type { QueueSelection, QueueSettings, Recovered } from "../../core/message.ts";
import { isWithin, type QueueName } from "../../core/names.ts";
import type { ChangeListener } from "../contract.ts";
import { recoverEnded } from "./deliveries.ts";
import { NameIndex } from "./name-index.ts";
import { QueueState } from "./queue-state.ts";
import { Resources } from "./resources.ts";
import { removePending } from "./task-steps.ts";

/** Remembered ids, and answers, of one queue that a recovery step forgets at most. */
const PURGE_STEP_ITEMS = 2_000;

/** A listener, and who hears of what it throws. */
export interface Subscription {
  readonly listener: ChangeListener;
  readonly onError: (error: unknown) => void;
}

/**
 * What a memory store holds. To be passed to `openMemory` as it is, so that several clients in one process share one store, which
 * lives until nothing refers to it; clients of one store must be given the same clock.
 */
export class MemoryStore {
  /** @internal */
  readonly resources: Resources;
  /** @internal */
  readonly queues = new Map<QueueName, QueueState>();
  /** @internal */
  readonly names = new NameIndex();
  /** @internal */
  readonly subscriptions = new Set<Subscription>();
  #changed: Set<QueueName> | undefined = undefined;
  /** The queue that was asked for last: mostly it is asked for again. */
  #last: QueueState | undefined = undefined;

  /** @param random the source of the store's identity */
  constructor(random: Random = systemRandom) {
    this.resources = new Resources(random);
  }

  /** The queue of that name. @internal @throws QueueFSError `queue-not-found` */
  queue(name: QueueName): QueueState {
    if (this.#last !== undefined && this.#last.name === name) return this.#last;
    const queue = this.queues.get(name);
    if (queue === undefined) throw queueNotFound(name);
    this.#last = queue;
    return queue;
  }

  /** Makes a queue that is not there yet. @internal @throws QueueFSError `store-full` */
  create(name: QueueName, settings: QueueSettings, wallMs: number, maxQueues: number): void {
    if (this.queues.size >= maxQueues) {
      throw new QueueFSError(
        "store-full",
        `the memory store holds ${this.queues.size} queues, which is the limit (maxQueues); remove some, or raise the limit`,
      );
    }
    this.queues.set(name, new QueueState(this.resources, name, settings, wallMs));
    this.names.add(name);
    this.changed(name);
  }

  /** Removes the queue at a path and, if asked, those under it. @internal @returns how many. @throws QueueFSError `queue-not-found`, `not-empty` */
  remove(path: QueueName, recursive: boolean): number {
    const names = this.names.within(path);
    if (names.length === 0) throw queueNotFound(path);
    const under = names.filter((name) => name !== path && isWithin(name, path)).length;
    if (!recursive && under > 0) {
      throw new QueueFSError(
        "not-empty",
        `${under} ${under === 1 ? "queue lies" : "queues lie"} under ${JSON.stringify(path)}; remove them first, or remove recursively`,
      );
    }
    for (const name of names) {
      this.queue(name).dispose();
      this.queues.delete(name);
      this.#last = undefined;
      this.names.delete(name);
      this.changed(name);
    }
    return names.length;
  }

  /** The queues of a selection, in its order. @internal @throws QueueFSError `queue-not-found` */
  select(selection: QueueSelection): QueueState[] {
    const names = "queues" in selection ? selection.queues : this.names.within(selection.under);
    return names.map((name) => this.queue(name));
  }

  /** One bounded step of recovery in all queues. @internal */
  recover(nowMs: number, wallMs: () => number, rememberMs: number): Recovered {
    let recovered = 0;
    let dead = 0;
    let more = false;
    for (const queue of this.queues.values()) {
      const step = recoverEnded(queue, RECOVERY_STEP_ITEMS - recovered, nowMs, wallMs);
      recovered += step.recovered;
      dead += step.dead;
      const matured = queue.mature(nowMs, RECOVERY_STEP_ITEMS);
      more ||= queue.leases.firstKey() <= nowMs || matured === RECOVERY_STEP_ITEMS;
      if (step.recovered > 0 || matured > 0) this.changed(queue.name);
      queue.ids.purge(nowMs, PURGE_STEP_ITEMS, rememberMs);
      queue.answers.purge(nowMs, PURGE_STEP_ITEMS);
    }
    const { tasks } = this.resources;
    for (const task of tasks.cancelling) more = removePending(this, task).more || more;
    const orphaned = tasks.sweep(nowMs, wallMs(), RECOVERY_STEP_ITEMS);
    return { recovered, dead, more: more || orphaned };
  }

  /**
   * Tells the listeners, once for all changes of a turn and after it, so that none of them runs inside a step.
   *
   * @param name the queue that changed; none when only a task did
   * @internal
   */
  changed(name?: QueueName): void {
    if (this.subscriptions.size === 0) return;
    if (this.#changed !== undefined) {
      if (name !== undefined) this.#changed.add(name);
      return;
    }
    this.#changed = new Set(name === undefined ? [] : [name]);
    queueMicrotask(() => {
      const names = this.#changed;
      this.#changed = undefined;
      // A listener may end subscriptions, its own or another's; a set copes, and does not call those.
      for (const { listener, onError } of this.subscriptions) {
        try {
          listener(names);
        } catch (error) {
          onError(error);
        }
      }
    });
  }
}
