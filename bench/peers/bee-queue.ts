/** bee-queue: jobs on Redis, taken by its worker. A cycle ends when the worker says that the job succeeded. */

import { type Contender, PAYLOAD_TEXT, runCallers } from "../contender.ts";
import { Completions } from "./completions.ts";

interface Job {
  readonly id: string;
  save(): Promise<Job>;
}

interface Queue {
  ready(): Promise<unknown>;
  createJob(data: unknown): Job;
  saveAll(jobs: readonly Job[]): Promise<unknown>;
  process(concurrency: number, handler: () => Promise<void>): void;
  on(event: "succeeded", listener: (job: { readonly id: string }) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  checkHealth(): Promise<unknown>;
  close(timeoutMs?: number): Promise<void>;
}

/** The parts of the package that are used. */
export interface BeeQueue {
  readonly default: new (name: string, options: Readonly<Record<string, unknown>>) => Queue;
}

const FILL_BATCH = 1_000;

/** bee-queue as a contender. @param port of the server on this host */
export function beeQueue(library: BeeQueue, port: number): Contender {
  let contests = 0;
  return {
    name: "bee-queue",
    role: "peer",
    drainMessages: 5_000,
    async open() {
      contests += 1;
      // The fastest settings: no events to other processes, no job objects kept, finished jobs removed.
      const options = { redis: { host: "127.0.0.1", port }, getEvents: false, sendEvents: false, storeJobs: false, removeOnSuccess: true };
      const queue = new library.default(`bench-${contests}`, options);
      queue.on("error", () => {});
      await queue.ready();
      const data = { text: PAYLOAD_TEXT };
      let filled = 0;
      let completions: Completions | undefined;
      // A queue can be processed by one handler only, so warming up and measuring share it.
      const startWorker = (concurrency: number): Completions => {
        const started = new Completions();
        queue.on("succeeded", ({ id }) => started.complete(id));
        queue.process(concurrency, async () => {});
        return started;
      };
      return {
        enqueue: (load) => runCallers(load, () => queue.createJob(data).save()),
        async cycle(load) {
          completions ??= startWorker(load.callers);
          const known = completions;
          await runCallers(load, async () => known.whenComplete((await queue.createJob(data).save()).id));
        },
        async fill(count) {
          for (let left = count; left > 0; left -= FILL_BATCH) {
            await queue.saveAll(Array.from({ length: Math.min(left, FILL_BATCH) }, () => queue.createJob(data)));
          }
          filled += count;
        },
        async drain(callers) {
          const total = filled;
          await new Promise<void>((resolve) => {
            queue.on("succeeded", () => {
              filled -= 1;
              if (filled === 0) resolve();
            });
            queue.process(callers, async () => {});
          });
          return total;
        },
        status: () => queue.checkHealth(),
        close: () => queue.close(1_000),
      };
    },
  };
}
