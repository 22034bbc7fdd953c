/** A worker process of the soak: works on all queues, and writes down what it has done before it is acked, where a kill cannot undo it. */

import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { giveUp, jsonCodec, NamedQueue, openStore, QueueManager, retryAfter, stopOnSignals, type Verdict } from "../../src/index.ts";
import { reportFault, serve } from "../support/child-process-main.ts";

/** A piece of work. Its number names it in all queues. */
export interface Job {
  readonly number: number;
  /** What its handlers do before they are done. */
  readonly manner: "quick" | "slow" | "busy" | "fails-first" | "asks-again" | "give-up";
  /** How it gets on to the second queue. */
  readonly handing: "forward" | "enqueue";
  /** For how long it is slow or busy, in milliseconds. */
  readonly ms: number;
}

/** The queues, in the order in which work goes through them. */
export const SOAK_QUEUES = ["soak/parse", "soak/index"] as const;

/** Long enough for a loaded machine, short enough that the work of a killed worker comes back soon where only leases tell. */
const LEASE_MS = 2_000;

async function perform(job: Job, deliveryCount: number): Promise<Verdict | undefined> {
  switch (job.manner) {
    case "slow":
      await sleep(job.ms);
      return undefined;
    case "busy": {
      const until = performance.now() + job.ms;
      while (performance.now() < until) {
        // The event loop stands still.
      }
      return undefined;
    }
    case "fails-first":
      if (deliveryCount === 1) throw new Error("fails at first");
      return undefined;
    case "asks-again":
      return deliveryCount === 1 ? retryAfter(job.ms) : undefined;
    default:
      return undefined;
  }
}

let current: QueueManager | undefined;

const programs = {
  /** How its workers are, for the message of a failure. */
  report: () => JSON.stringify([current?.health, process.pid]),

  /** Works until it is killed or told to end by a signal. @param record the file to write to: a line for each piece of work, queue and number */
  async work(location: string, record: string, concurrency: number): Promise<void> {
    const backend = await openStore(location, { sweepIntervalMs: 100, onError: reportFault });
    const manager = new QueueManager(backend);
    const [parse, index] = SOAK_QUEUES.map(
      (name) => new NamedQueue<Job>(backend, name, { codec: jsonCodec<Job>(), leaseMs: LEASE_MS }),
    ) as [NamedQueue<Job>, NamedQueue<Job>];
    const options = { concurrency, backoff: { firstMs: 20, maximumMs: 500 }, keepLeasesWhileBusy: false };
    manager.work(
      parse,
      async (job, { deliveryCount, forward }) => {
        const verdict = await perform(job, deliveryCount);
        if (verdict !== undefined) return verdict;
        appendFileSync(record, `0 ${job.number}\n`);
        if (job.manner === "give-up") return giveUp("given up on purpose");
        if (job.handing === "forward") await forward(index, job, { id: `job-${job.number}` });
        else await index.enqueue(job, { id: `job-${job.number}` });
        return undefined;
      },
      options,
    );
    manager.work(
      index,
      async (job, { deliveryCount }) => {
        const verdict = await perform({ ...job, manner: job.manner === "give-up" ? "quick" : job.manner }, deliveryCount);
        if (verdict !== undefined) return verdict;
        appendFileSync(record, `1 ${job.number}\n`);
        return undefined;
      },
      options,
    );
    stopOnSignals(
      { stop: () => manager.stop({ graceMs: 300 }) },
      {
        async onStopped() {
          await backend.close();
          process.disconnect();
        },
      },
    );
    current = manager.start();
  },
};

/** What a worker process of the soak can be asked. */
export type SoakPrograms = typeof programs;

if (process.send !== undefined) serve(programs);
