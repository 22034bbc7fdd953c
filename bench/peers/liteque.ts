/** liteque: jobs in one SQLite table through an object mapper, a transaction for each call. It commits with synchronous=NORMAL. */

import { join } from "node:path";
import type Database from "better-sqlite3";
import { type Contender, drainWith, PAYLOAD_TEXT, runCallers } from "../contender.ts";

interface Job {
  readonly id: number;
  readonly allocationId: string;
  readonly payload: string;
}

interface Queue {
  enqueue(payload: string): Promise<unknown>;
  attemptDequeue(options: { readonly timeoutSecs: number }): Promise<Job | null>;
  finalize(id: number, allocationId: string, status: "completed"): Promise<void>;
  stats(): Promise<unknown>;
}

interface Client {
  readonly session: { readonly client: Database.Database };
}

/** The parts of the package that are used. */
export interface Liteque {
  buildDBClient(path: string, options: { readonly runMigrations: boolean; readonly walEnabled: boolean }): Client;
  readonly SqliteQueue: new (
    name: string,
    client: Client,
    options: { readonly defaultJobArgs: { readonly numRetries: number }; readonly keepFailedJobs: boolean },
  ) => Queue;
}

/**
 * Its dequeue is a transaction whose function answers with a promise. better-sqlite3 once let that pass, committing when the promise was made,
 * and now refuses it; this is what it did.
 */
function letTransactionsAnswerPromises(database: Database.Database): void {
  const begin = database.prepare("BEGIN");
  const commit = database.prepare("COMMIT");
  const transaction = (run: (argument: unknown) => unknown): unknown => {
    const deferred = (argument: unknown): unknown => {
      begin.run();
      try {
        return run(argument);
      } finally {
        commit.run();
      }
    };
    return { deferred };
  };
  Object.defineProperty(database, "transaction", { value: transaction });
}

/** liteque as a contender. */
export function liteque(library: Liteque): Contender {
  return {
    name: "liteque",
    role: "peer",
    durability: "normal",
    deepestStatus: 1_000,
    isSlow: true,
    drainMessages: 500,
    async open(folder) {
      const client = library.buildDBClient(join(folder, "liteque.db"), { runMigrations: true, walEnabled: true });
      const database = client.session.client;
      letTransactionsAnswerPromises(database);
      const queue = new library.SqliteQueue("bench", client, { defaultJobArgs: { numRetries: 3 }, keepFailedJobs: false });
      // Calls at once all choose the same job, and all but one get nothing; its own runner therefore dequeues one by one, and so does this.
      let turn: Promise<unknown> = Promise.resolve();
      const take = async (): Promise<boolean> => {
        const dequeued = turn.then(() => queue.attemptDequeue({ timeoutSecs: 30 }));
        turn = dequeued;
        const job = await dequeued;
        if (job !== null) await queue.finalize(job.id, job.allocationId, "completed");
        return job !== null;
      };
      return {
        enqueue: (load) => runCallers(load, () => queue.enqueue(PAYLOAD_TEXT)),
        cycle: (load) =>
          runCallers(load, async () => {
            await queue.enqueue(PAYLOAD_TEXT);
            if (!(await take())) throw new Error("a job that was enqueued could not be taken");
          }),
        async fill(count) {
          for (let left = count; left > 0; left -= 1) await queue.enqueue(PAYLOAD_TEXT);
        },
        drain: (callers) => drainWith(callers, take),
        status: () => queue.stats(),
        close: async () => {
          database.close();
        },
      };
    },
  };
}
