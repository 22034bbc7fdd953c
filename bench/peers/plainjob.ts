/** plainjob: jobs in one SQLite table, synchronous calls, a transaction for each. It commits with synchronous=NORMAL. */

import { join } from "node:path";
import Database from "better-sqlite3";
import { type Contender, drainWith, PAYLOAD_TEXT, runCallers } from "../contender.ts";

interface Queue {
  add(type: string, data: unknown): { readonly id: number };
  addMany(type: string, data: readonly unknown[]): { readonly ids: readonly number[] };
  getAndMarkJobAsProcessing(type: string): { readonly id: number } | undefined;
  getJobById(id: number): { readonly data: string } | undefined;
  markJobAsDone(id: number): void;
  countJobs(filter: { readonly status: number }): number;
  close(): void;
}

/** The parts of the package that are used. */
export interface Plainjob {
  better(database: Database.Database): unknown;
  defineQueue(options: { readonly connection: unknown; readonly logger: Pick<Console, "debug" | "info" | "warn" | "error"> }): Queue;
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const PENDING = 0;
const PROCESSING = 1;
const FILL_BATCH = 1_000;

/** plainjob as a contender. */
export function plainjob(library: Plainjob): Contender {
  return {
    name: "plainjob",
    role: "peer",
    durability: "normal",
    drainMessages: 2_000,
    async open(folder) {
      const queue = library.defineQueue({ connection: library.better(new Database(join(folder, "plainjob.db"))), logger: SILENT });
      const take = (): boolean => {
        const job = queue.getAndMarkJobAsProcessing("bench");
        if (job === undefined || queue.getJobById(job.id) === undefined) return false;
        queue.markJobAsDone(job.id);
        return true;
      };
      return {
        enqueue: (load) => runCallers(load, () => queue.add("bench", PAYLOAD_TEXT)),
        cycle: (load) =>
          runCallers(load, () => {
            queue.add("bench", PAYLOAD_TEXT);
            if (!take()) throw new Error("a job that was added could not be taken");
          }),
        async fill(count) {
          const batch = Array.from({ length: FILL_BATCH }, () => PAYLOAD_TEXT);
          for (let left = count; left > 0; left -= FILL_BATCH) queue.addMany("bench", batch.slice(0, left));
        },
        drain: (callers) => drainWith(callers, take),
        status: async () => [queue.countJobs({ status: PENDING }), queue.countJobs({ status: PROCESSING })],
        close: async () => queue.close(),
      };
    },
  };
}
