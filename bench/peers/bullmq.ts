/** BullMQ: jobs on Redis, taken by its worker. Its dequeue and ack are the worker's, so a cycle ends when the worker says that the job is completed. */

import { type Contender, PAYLOAD_TEXT, runCallers } from "../contender.ts";
import { Completions } from "./completions.ts";

interface Connection {
  readonly host: string;
  readonly port: number;
  readonly maxRetriesPerRequest: null;
}

interface Queue {
  add(name: string, data: unknown, options: { readonly removeOnComplete: boolean }): Promise<{ readonly id?: string }>;
  addBulk(
    jobs: readonly { readonly name: string; readonly data: unknown; readonly opts: { readonly removeOnComplete: boolean } }[],
  ): Promise<unknown>;
  getJobCounts(...states: string[]): Promise<unknown>;
  close(): Promise<void>;
}

interface Worker {
  on(event: "completed", listener: (job: { readonly id?: string }) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  run(): Promise<void>;
  waitUntilReady(): Promise<unknown>;
  close(force?: boolean): Promise<void>;
}

/** The parts of the package that are used. */
export interface Bullmq {
  readonly Queue: new (name: string, options: { readonly connection: Connection }) => Queue;
  readonly Worker: new (
    name: string,
    process: () => Promise<void>,
    options: { readonly connection: Connection; readonly concurrency: number; readonly autorun: boolean },
  ) => Worker;
}

const FILL_BATCH = 1_000;
const OPTIONS = { removeOnComplete: true };

/** BullMQ as a contender. @param port of the server on this host */
export function bullmq(library: Bullmq, port: number): Contender {
  const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
  let contests = 0;
  return {
    name: "BullMQ",
    role: "peer",
    drainMessages: 5_000,
    async open() {
      contests += 1;
      const name = `bench-${contests}`;
      const queue = new library.Queue(name, { connection });
      const data = { text: PAYLOAD_TEXT };
      const startWorker = async (concurrency: number, onCompleted: (id: string) => void): Promise<Worker> => {
        const worker = new library.Worker(name, async () => {}, { connection, concurrency, autorun: false });
        worker.on("completed", ({ id }) => onCompleted(id ?? ""));
        worker.on("error", () => {});
        await worker.waitUntilReady();
        void worker.run();
        return worker;
      };
      let filled = 0;
      return {
        enqueue: (load) => runCallers(load, () => queue.add("job", data, OPTIONS)),
        async cycle(load) {
          const completions = new Completions();
          const worker = await startWorker(load.callers, (id) => completions.complete(id));
          await runCallers(load, async () => completions.whenComplete((await queue.add("job", data, OPTIONS)).id ?? ""));
          await worker.close();
        },
        async fill(count) {
          const batch = Array.from({ length: FILL_BATCH }, () => ({ name: "job", data, opts: OPTIONS }));
          for (let left = count; left > 0; left -= FILL_BATCH) await queue.addBulk(batch.slice(0, left));
          filled += count;
        },
        async drain(callers) {
          const total = filled;
          let worker: Worker | undefined;
          await new Promise<void>((resolve, reject) => {
            startWorker(callers, () => {
              filled -= 1;
              if (filled === 0) resolve();
            }).then((started) => {
              worker = started;
            }, reject);
          });
          await worker?.close();
          return total;
        },
        status: () => queue.getJobCounts("waiting", "active"),
        close: () => queue.close(),
      };
    },
  };
}
