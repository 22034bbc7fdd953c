/**
 * Mixed load for a while, with worker processes killed at random: every message must be processed at least once, and no snapshot may say
 * complete before that.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Backend } from "../../../src/backend/contract.ts";
import { isComplete } from "../../../src/core/message.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { waitComplete } from "../../../src/queue/index.ts";
import { SeededRandom } from "../../../src/testing/index.ts";
import type { Child, Children } from "../../support/child-process.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";
import type { SoakPrograms } from "./programs.ts";

/** One soak. */
export interface SoakSettings {
  readonly spec: StoreSpec;
  /** Where worker processes come from. */
  readonly children: Children<SoakPrograms>;
  /** A folder for the records of the workers. */
  readonly folder: string;
  readonly seconds: number;
  /** Replays the choices of load and kills, though not the moments at which they fall. */
  readonly seed: number;
  readonly leaseMs: number;
  readonly onProgress?: (line: string) => void;
}

/** What a soak saw. */
export interface SoakReport {
  readonly enqueued: number;
  /** Distinct messages that the second queue's handler has done. */
  readonly processed: number;
  /** How often it did one again. */
  readonly repeated: number;
  readonly kills: number;
  readonly rounds: number;
  readonly snapshots: number;
  /** What must not be: each a sentence. */
  readonly violations: readonly string[];
}

const FIRST = parseQueueName("soak/first");
const SECOND = parseQueueName("soak/second");
const WORKERS = 3;
/** How long a round may take to become complete, in milliseconds: many leases. */
const ROUND_TIMEOUT_MS = 60_000;

class Soak {
  readonly #settings: SoakSettings;
  readonly #random: SeededRandom;
  readonly #children: Children<SoakPrograms>;
  readonly #workers: (Child<SoakPrograms> | undefined)[] = [];
  readonly #violations: string[] = [];
  #enqueued = 0;
  #kills = 0;
  #snapshots = 0;
  #ended = false;

  constructor(settings: SoakSettings) {
    this.#settings = settings;
    this.#children = settings.children;
    this.#random = new SeededRandom(settings.seed);
  }

  #record(worker: number): string {
    return join(this.#settings.folder, `worker-${worker}.txt`);
  }

  async #start(worker: number): Promise<void> {
    const { spec, leaseMs } = this.#settings;
    const child = await this.#children.start();
    this.#workers[worker] = child;
    await child.call("work", { spec, first: FIRST, second: SECOND, leaseMs, record: this.#record(worker) });
  }

  /** How often each message was done, from what the workers wrote. */
  #done(): Map<number, number> {
    const counts = new Map<number, number>();
    for (let worker = 0; worker < WORKERS; worker += 1) {
      for (const line of readText(this.#record(worker)).split("\n")) {
        if (line !== "") counts.set(Number(line), (counts.get(Number(line)) ?? 0) + 1);
      }
    }
    return counts;
  }

  /** Looks all the time; a snapshot that says complete must find done whatever was enqueued before it began. */
  async #poll(store: Backend): Promise<void> {
    while (!this.#ended) {
      const before = this.#enqueued;
      const statuses = await store.statuses({ queues: [FIRST, SECOND] });
      this.#snapshots += 1;
      if (before > 0 && isComplete(statuses)) this.#judge(before, "a snapshot said complete");
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #judge(enqueued: number, when: string): void {
    const done = this.#done();
    const missing = Array.from({ length: enqueued }, (_, value) => value).filter((value) => !done.has(value));
    if (missing.length > 0) this.#violations.push(`${when} although ${missing.length} messages were not done, such as ${missing[0]}`);
  }

  async #killNow(): Promise<void> {
    const worker = Math.floor(this.#random.fraction() * WORKERS);
    await this.#workers[worker]?.kill();
    this.#kills += 1;
    await this.#start(worker);
  }

  async #round(store: Backend): Promise<void> {
    const batches = 5 + Math.floor(this.#random.fraction() * 30);
    for (let batch = 0; batch < batches; batch += 1) {
      const count = 1 + Math.floor(this.#random.fraction() * 50);
      const texts = Array.from({ length: count }, (_, index) => `${this.#enqueued + index}`);
      await store.enqueue(
        FIRST,
        texts.map((text) => ({ data: new TextEncoder().encode(text) })),
      );
      this.#enqueued += count;
      if (this.#random.fraction() < 0.15) await this.#killNow();
    }
    try {
      await waitComplete(store, { queues: [FIRST, SECOND] }, { timeoutMs: ROUND_TIMEOUT_MS });
      this.#judge(this.#enqueued, "a wait ended");
    } catch (error) {
      this.#violations.push(`a round did not become complete: ${String(error)}`);
    }
  }

  async run(): Promise<SoakReport> {
    const { spec, seconds, onProgress } = this.#settings;
    const errors: unknown[] = [];
    const store = await openStore(spec, (error) => void errors.push(error));
    try {
      for (const queue of [FIRST, SECOND]) await store.createQueue(queue, { maxDeliveries: 0 });
      await Promise.all(Array.from({ length: WORKERS }, (_, worker) => this.#start(worker)));
      const polling = this.#poll(store);
      const endMs = performance.now() + seconds * 1000;
      let rounds = 0;
      while (performance.now() < endMs && this.#violations.length === 0) {
        await this.#round(store);
        rounds += 1;
        onProgress?.(`${this.#enqueued} messages, ${this.#kills} kills, ${rounds} rounds, ${this.#snapshots} snapshots`);
      }
      this.#ended = true;
      await polling;
      await this.#children.end();
      await this.#audit(store);
      if (errors.length > 0) this.#violations.push(`errors in the background: ${errors.map(String).join("; ")}`);
      const done = this.#done();
      const runs = [...done.values()].reduce((total, count) => total + count, 0);
      return {
        enqueued: this.#enqueued,
        processed: done.size,
        repeated: runs - done.size,
        kills: this.#kills,
        rounds,
        snapshots: this.#snapshots,
        violations: this.#violations,
      };
    } finally {
      this.#ended = true;
      await this.#children.end();
      await store.close();
    }
  }

  async #audit(store: Backend): Promise<void> {
    for (const finding of await store.inspect()) {
      if (finding.severity === "error") this.#violations.push(`${finding.check}: ${finding.message}`);
    }
    for (const queue of [FIRST, SECOND]) {
      const { enqueued, acked, dead } = await store.statistics(queue);
      if (enqueued !== this.#enqueued || acked !== enqueued || dead !== 0) {
        this.#violations.push(`${queue} counts ${enqueued} enqueued, ${acked} acked, ${dead} dead of ${this.#enqueued}`);
      }
    }
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // A worker that has done nothing yet has no record.
    return "";
  }
}

/** Runs a soak. It ends early at the first violation. */
export function soak(settings: SoakSettings): Promise<SoakReport> {
  return new Soak(settings).run();
}
