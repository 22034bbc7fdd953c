/**
 * Mixed load on workers that are killed, stopped and ended at random, for as long as one likes. Whenever the store says "complete", all that
 * was enqueued before must have been done; at the end everything has, and the store's own counts agree.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isComplete, NamedQueue, openStore, parseQueueName, type Status, waitComplete } from "../../src/index.ts";
import { SeededRandom } from "../../src/testing/index.ts";
import { type Child, childProcesses } from "../support/child-process.ts";
import { startRedisServer } from "../support/redis-server.ts";
import { Records } from "./records.ts";
import { type Job, SOAK_QUEUES, type SoakPrograms } from "./worker.ts";

/** What to do. */
export interface SoakOptions {
  readonly backend: "sqlite" | "redis";
  /** For how long work is added, in seconds; finishing it comes on top. */
  readonly seconds: number;
  readonly seed: number;
  /** Told how it goes, now and then. */
  readonly onProgress?: (line: string) => void;
}

/** What came of it. */
export interface SoakReport {
  readonly seed: number;
  readonly jobs: number;
  /** Handlers that came to their end, over both queues; more than there were messages where one died before its ack. */
  readonly handled: number;
  readonly killed: number;
  readonly stopped: number;
  readonly ended: number;
  /** Snapshots looked at, and how many of them said that all was complete. */
  readonly snapshots: number;
  readonly complete: number;
  /** Waits that ended with "complete". */
  readonly waits: number;
  readonly seconds: number;
  /** Everything that is not as it must be; empty when all is well. */
  readonly faults: readonly string[];
}

const PROCESSES = 3;
const CONCURRENCY = 4;
const QUEUES = SOAK_QUEUES.map(parseQueueName);
/** All must be done so long after the last job was added, or something is stuck. */
const FINISH_MS = 120_000;

/** How often to tell how it goes. */
const TELL_MS = 10_000;

/** One run. */
class Soak {
  readonly #options: SoakOptions;
  readonly #random: SeededRandom;
  readonly #records: Records;
  readonly #folder: string;
  readonly #location: string;
  #removePrograms: () => void = () => {};
  readonly #children = childProcesses<SoakPrograms>("test/soak/worker.ts", (remove) => {
    this.#removePrograms = remove;
  });
  readonly #workers = new Set<Child<SoakPrograms>>();
  /** Jobs whose enqueue was answered, and whether they are to be given up. */
  readonly #added = new Map<number, boolean>();
  readonly #faults: string[] = [];
  #isEnding = false;
  #jobs = 0;
  #started = 0;
  readonly #counts = { killed: 0, stopped: 0, ended: 0, snapshots: 0, complete: 0, waits: 0 };

  constructor(options: SoakOptions, folder: string, location: string) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#folder = folder;
    this.#records = new Records(folder);
    this.#location = location;
  }

  #upTo(limit: number): number {
    return Math.floor(this.#random.fraction() * limit);
  }

  #fault(text: string): void {
    if (this.#faults.length < 20) this.#faults.push(text);
  }

  async run(): Promise<SoakReport> {
    const startedMs = performance.now();
    const backend = await openStore(this.#location, {
      sweepIntervalMs: 100,
      onError: (error) => this.#fault(`in the background: ${error}`),
    });
    try {
      for (const queue of QUEUES) await backend.createQueue(queue, { maxDeliveries: 0 });
      await Promise.all(Array.from({ length: PROCESSES }, () => this.#startWorker()));
      const watching = this.#watch(backend);
      const troubling = this.#trouble();
      await this.#produce(backend, startedMs + this.#options.seconds * 1_000);
      this.#isEnding = true;
      await Promise.all([watching, troubling]);
      await this.#waitForAll(backend);
      await this.#judgeEnd(backend);
    } finally {
      this.#isEnding = true;
      await this.#children.end().catch((error: unknown) => this.#fault(String(error)));
      this.#removePrograms();
      await backend.close();
    }
    this.#records.refresh();
    const handled = this.#records.done.reduce((sum, done) => sum + [...done.values()].reduce((total, count) => total + count, 0), 0);
    const seconds = Math.round((performance.now() - startedMs) / 100) / 10;
    return { seed: this.#options.seed, jobs: this.#jobs, handled, ...this.#counts, seconds, faults: this.#faults };
  }

  async #startWorker(): Promise<void> {
    const child = await this.#children.start();
    this.#workers.add(child);
    this.#started += 1;
    void child.ended.then(() => {
      this.#workers.delete(child);
      if (!this.#isEnding) void this.#startWorker().catch((error: unknown) => this.#fault(`a worker did not start: ${error}`));
    });
    // A worker that is killed before it has answered is just another one killed.
    await child.call("work", this.#location, join(this.#folder, `${this.#started}.record`), CONCURRENCY).catch(() => {});
  }

  /** Kills, stops and ends workers. */
  async #trouble(): Promise<void> {
    while (!this.#isEnding) {
      // Each worker lives for some seconds, so that most of what it begins comes to an end.
      await sleep(200 + this.#upTo(1_800));
      const workers = [...this.#workers];
      const child = workers[this.#upTo(workers.length)];
      const kind = this.#upTo(10);
      if (child === undefined || this.#isEnding) continue;
      if (kind < 6) {
        this.#counts.killed += 1;
        await child.kill();
      } else if (kind < 8) {
        this.#counts.ended += 1;
        child.signal("SIGTERM");
      } else {
        this.#counts.stopped += 1;
        child.signal("SIGSTOP");
        // Some for longer than their leases.
        void sleep(200 + this.#upTo(3_500)).then(() => child.signal("SIGCONT"));
      }
    }
  }

  #newJob(): Job {
    const manners: readonly Job["manner"][] = [
      "quick",
      "quick",
      "quick",
      "quick",
      "slow",
      "slow",
      "busy",
      "fails-first",
      "asks-again",
      "give-up",
    ];
    const manner = manners[this.#upTo(manners.length)] as Job["manner"];
    this.#jobs += 1;
    return {
      number: this.#jobs,
      manner,
      handing: this.#upTo(2) === 0 ? "forward" : "enqueue",
      // Now and then a handler takes longer than a lease; never one that keeps its process from renewing it.
      ms: manner === "slow" && this.#upTo(40) === 0 ? 2_500 : this.#upTo(manner === "busy" ? 15 : 60),
    };
  }

  /** Adds jobs in bursts; after some it waits until all is complete. */
  async #produce(backend: Awaited<ReturnType<typeof openStore>>, untilMs: number): Promise<void> {
    const parse = new NamedQueue<Job>(backend, SOAK_QUEUES[0]);
    while (performance.now() < untilMs && this.#faults.length === 0) {
      const jobs = Array.from({ length: 1 + this.#upTo(200) }, () => this.#newJob());
      if (this.#upTo(2) === 0) await parse.enqueueMany(jobs);
      else await Promise.all(jobs.map((job) => parse.enqueue(job)));
      for (const { number, manner } of jobs) this.#added.set(number, manner === "give-up");
      if (this.#upTo(3) === 0) await sleep(this.#upTo(500));
      else await this.#waitForAll(backend);
    }
  }

  #tellProgress(statuses: readonly Status[]): void {
    const { killed, stopped, ended, waits, complete } = this.#counts;
    const now = statuses.map(({ pending, processing }) => `${pending}+${processing}`).join(" ");
    this.#options.onProgress?.(
      `${this.#jobs} jobs, now ${now}; ${waits} waits, ${complete} complete snapshots; workers: ${killed} killed, ${stopped} stopped, ${ended} ended`,
    );
  }

  async #waitForAll(backend: Awaited<ReturnType<typeof openStore>>): Promise<void> {
    const expected = [...this.#added.keys()];
    try {
      const statuses = await waitComplete(backend, { queues: QUEUES }, { timeoutMs: FINISH_MS });
      this.#counts.waits += 1;
      if (!isComplete(statuses)) this.#fault(`a wait ended with ${JSON.stringify(statuses)}`);
      this.#judgeComplete(expected, "a wait");
    } catch (error) {
      this.#fault(`a wait failed: ${error}`);
      const reports = await Promise.allSettled([...this.#workers].map((worker) => worker.call("report")));
      for (const report of reports) this.#fault(`a worker: ${report.status === "fulfilled" ? report.value : "has ended"}`);
      for (const queue of QUEUES) {
        const { items } = await backend.messages(queue);
        for (const { id, state, deliveryCount } of items) this.#fault(`${queue} ${id} is ${state}, delivery ${deliveryCount}`);
      }
    }
  }

  /** Looks at the status all the time. */
  async #watch(backend: Awaited<ReturnType<typeof openStore>>): Promise<void> {
    let toldMs = performance.now();
    while (!this.#isEnding) {
      const expected = [...this.#added.keys()];
      const statuses = await backend.statuses({ queues: QUEUES });
      this.#counts.snapshots += 1;
      if (isComplete(statuses)) {
        this.#counts.complete += 1;
        this.#judgeComplete(expected, "a snapshot");
      }
      if (performance.now() - toldMs > TELL_MS) {
        toldMs = performance.now();
        this.#tellProgress(statuses);
      }
      await sleep(5);
    }
  }

  /** "Complete" was said: all that was there before must have been done, and written down before it was acked. */
  #judgeComplete(expected: readonly number[], what: string): void {
    this.#records.refresh();
    const [parsed, indexed] = this.#records.done;
    const missing = expected.filter((number) => !parsed.has(number) || (this.#added.get(number) === false && !indexed.has(number)));
    if (missing.length > 0)
      this.#fault(`${what} said complete, but ${missing.length} jobs were not done, such as ${missing.slice(0, 5).join(", ")}`);
  }

  async #judgeEnd(backend: Awaited<ReturnType<typeof openStore>>): Promise<void> {
    const givenUp = [...this.#added.values()].filter(Boolean).length;
    const [parse, index] = await Promise.all(QUEUES.map((queue) => backend.statistics(queue)));
    const compare = (what: string, found: number | undefined, wanted: number): void => {
      if (found !== wanted) this.#fault(`${what}: ${found}, but it should be ${wanted}`);
    };
    compare("jobs enqueued", parse?.enqueued, this.#jobs);
    compare("jobs acked in the first queue", parse?.acked, this.#jobs - givenUp);
    compare("jobs given up", parse?.dead, givenUp);
    compare("jobs enqueued into the second queue", index?.enqueued, this.#jobs - givenUp);
    compare("jobs acked in the second queue", index?.acked, this.#jobs - givenUp);
    for (const { severity, check, message } of await backend.inspect()) if (severity === "error") this.#fault(`${check}: ${message}`);
  }
}

/** Runs a soak on a store of its own. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const folder = await mkdtemp(join(tmpdir(), "queuefs-soak-"));
  const server = options.backend === "redis" ? await startRedisServer() : undefined;
  try {
    return await new Soak(options, folder, server?.url ?? `sqlite:${join(folder, "queue.db")}`).run();
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
