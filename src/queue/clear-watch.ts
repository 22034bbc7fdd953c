/** Telling a queue that was worked off from one that was emptied while somebody waited for it. */

import type { Backend } from "../backend/contract.ts";
import type { QueueStatus } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";

/** A status at the end of a wait. */
export interface WaitedStatus extends QueueStatus {
  /** Messages that `clear` removed since the wait began: they are gone, not done. Absent when none were. */
  readonly cleared?: number;
}

/** Queues of one wait that are watched, those that come first: each costs a read at the begin and at the end. */
const MAX_WATCHED = 1_000;

/** Compares how many messages of some queues were cleared ever, at the begin and at the end. */
export class ClearWatch {
  readonly #backend: Pick<Backend, "statistics">;
  readonly #before = new Map<QueueName, Promise<number | undefined>>();

  constructor(backend: Pick<Backend, "statistics">) {
    this.#backend = backend;
  }

  /** Begins to watch those queues that are not watched yet. */
  watch(queues: Iterable<QueueName>): void {
    for (const queue of queues) {
      if (this.#before.size >= MAX_WATCHED) return;
      if (!this.#before.has(queue)) this.#before.set(queue, this.#read(queue));
    }
  }

  /** The statuses with what was cleared meanwhile; the very same array when nothing was. */
  async compare(statuses: readonly QueueStatus[]): Promise<readonly WaitedStatus[]> {
    const compared = await Promise.all(statuses.map((status) => this.#compareOne(status)));
    return compared.some(({ cleared }) => cleared !== undefined) ? compared : statuses;
  }

  async #compareOne(status: QueueStatus): Promise<WaitedStatus> {
    if (!this.#before.has(status.queue)) return status;
    const [before, now] = await Promise.all([this.#before.get(status.queue), this.#read(status.queue)]);
    const cleared = (now ?? 0) - (before ?? now ?? 0);
    return cleared > 0 ? { ...status, cleared } : status;
  }

  // What cannot be read is not told; whether the queue is there, and the store, the wait itself finds out.
  async #read(queue: QueueName): Promise<number | undefined> {
    try {
      return (await this.#backend.statistics(queue)).cleared;
    } catch {
      return undefined;
    }
  }
}
