/**
 * better-queue with its SQLite store: tasks in one table, statements on a thread, taken by its own runner. It commits with synchronous=OFF and
 * a journal in memory, and says that a task is queued before it is written.
 */

import { join } from "node:path";
import { type Contender, type Load, PAYLOAD_TEXT, runCallers } from "../contender.ts";

interface Ticket {
  on(event: "queued" | "finish", listener: () => void): Ticket;
  on(event: "failed", listener: (reason: unknown) => void): Ticket;
}

interface Queue {
  batchSize: number;
  push(task: unknown): Ticket;
  on(event: "task_finish", listener: () => void): unknown;
  pause(): void;
  resume(): void;
}

interface Store {
  /** The package's own close does nothing. */
  readonly _db: { close(callback: (error: unknown) => void): void };
  getTask(id: string, callback: (error: unknown) => void): void;
}

/** The part of the queue's package that is used. */
export interface BetterQueue {
  readonly default: new (
    process: (task: unknown, done: (error: null) => void) => void,
    options: { readonly store: Store; readonly autoResume: boolean },
  ) => Queue;
}

/** The part of the store's package that is used. */
export interface BetterQueueStore {
  readonly default: new (options: { readonly path: string }) => Store;
}

const FILL_BATCH = 1_000;

/** better-queue as a contender. */
export function betterQueue(library: BetterQueue, storeLibrary: BetterQueueStore): Contender {
  return {
    name: "better-queue",
    role: "peer",
    durability: "normal",
    deepestStatus: 0,
    isWithoutLog: true,
    drainMessages: 500,
    async open(folder) {
      const store = new storeLibrary.default({ path: join(folder, "better-queue.db") });
      const queue = new library.default((_task, done) => done(null), { store, autoResume: false });
      queue.pause();
      let filled = 0;
      const pushUntil = (event: "queued" | "finish"): Promise<void> =>
        new Promise((resolve, reject) => {
          queue.push({ text: PAYLOAD_TEXT }).on(event, resolve).on("failed", reject);
        });
      // A look at a task comes after all writes before it.
      const written = (): Promise<void> =>
        new Promise((resolve, reject) => {
          store.getTask("none", (error) => (error ? reject(error) : resolve()));
        });
      // Batches, of which one is worked on at a time: when several are, one that finds nothing takes, and then removes, what belongs to nobody.
      const work = (batchSize: number): void => {
        queue.batchSize = batchSize;
        queue.resume();
      };
      return {
        async enqueue(load: Load) {
          await runCallers(load, () => pushUntil("queued"));
          await written();
          load.end();
        },
        async cycle(load: Load) {
          work(load.callers);
          await runCallers(load, () => pushUntil("finish"));
          queue.pause();
        },
        async fill(count) {
          for (let left = count; left > 0; left -= FILL_BATCH) {
            await Promise.all(Array.from({ length: Math.min(left, FILL_BATCH) }, () => pushUntil("queued")));
          }
          await written();
          filled += count;
        },
        async drain(callers) {
          const total = filled;
          await new Promise<void>((resolve) => {
            queue.on("task_finish", () => {
              filled -= 1;
              if (filled === 0) resolve();
            });
            work(callers);
          });
          queue.pause();
          return total;
        },
        status: () => Promise.reject(new Error("better-queue keeps no count that other processes see")),
        async close() {
          await written();
          await new Promise<void>((resolve, reject) => {
            store._db.close((error) => (error ? reject(error) : resolve()));
          });
        },
      };
    },
  };
}
