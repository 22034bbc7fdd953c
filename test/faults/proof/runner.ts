/**
 * Runs clients on one store under faults, epoch by epoch: each has queues of its own, ends with a drain, and is checked and thrown away, so that
 * a run may last for as long as one likes.
 */

import { existsSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "../../../src/backend/contract.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { SeededRandom } from "../../../src/testing/seeded-random.ts";
import { type Child, childProcesses } from "../../support/child-process.ts";
import { RecordedCalls } from "./calls.ts";
import { check } from "./check/check.ts";
import { PROPERTIES, type Property, type Report, type Tally, type Violation } from "./check/promises.ts";
import type { ClientPrograms } from "./client-main.ts";
import { openClient } from "./client-store.ts";
import { drain, unansweredRequests } from "./drain.ts";
import { planOf, queuesOf } from "./in-process.ts";
import { keepHistory } from "./kept-history.ts";
import type { Plan } from "./lane.ts";
import { Nemesis, type Victim } from "./nemesis.ts";
import type { Fault, Operation, OperationOf } from "./operation.ts";
import { openPlace, type Place, type ProofBackend } from "./place.ts";
import { fileSink, nanoseconds, Recorder, readRecord } from "./record.ts";

/** What to do. */
export interface ProofOptions {
  readonly backend: ProofBackend;
  readonly seconds: number;
  readonly seed: number;
  /** Client processes at a time. */
  readonly clients: number;
  /** How long one epoch works before it is drained and checked, in seconds. */
  readonly epochSeconds: number;
  /** A control: the server keeps nothing on disk and is killed, which must be seen. Redis only. */
  readonly forgets?: boolean;
  /** A folder for the histories of epochs that violated something, to be looked at and checked again. */
  readonly keepFolder?: string;
  readonly onProgress?: (line: string) => void;
}

/** What came of it. */
export interface ProofReport {
  readonly backend: ProofBackend;
  readonly seed: number;
  readonly seconds: number;
  readonly epochs: number;
  readonly operations: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly checks: Readonly<Record<Property, Tally>>;
  readonly violations: readonly Violation[];
  /** What went wrong with the runner itself. */
  readonly troubles: readonly string[];
}

const LANES = 3;
const DRAIN_MS = 60_000;
const CALM_MS = 8_000;
/** A store that lost its queues never gets empty; so long is enough to see that. */
const CONTROL_DRAIN_MS = 3_000;
const KEPT_VIOLATIONS = 50;

type Way = Awaited<ReturnType<Place["connect"]>>;

interface Client extends Victim {
  readonly slot: number;
  readonly child: Child<ClientPrograms>;
  readonly record: string;
}

/** One run. */
class Run {
  readonly #options: ProofOptions;
  readonly #random: SeededRandom;
  readonly #folder: string;
  readonly #place: Place;
  readonly #originNs = process.hrtime.bigint();
  #removePrograms: () => void = () => {};
  readonly #children = childProcesses<ClientPrograms>("test/faults/proof/client-main.ts", (remove) => {
    this.#removePrograms = remove;
  });
  readonly #ways: Way[] = [];
  readonly #clients = new Map<number, Client>();
  readonly #starting = new Set<Promise<void>>();
  readonly #records: string[] = [];
  readonly #faults: Fault[] = [];
  readonly #counts: Record<string, Record<string, number>> = {};
  readonly #faultCounts: Record<string, number> = {};
  readonly #tallies = Object.fromEntries(PROPERTIES.map((name) => [name, { checks: 0, telling: 0, violations: 0 }])) as Record<
    Property,
    Tally
  >;
  readonly #violations: Violation[] = [];
  readonly #troubles: string[] = [];
  #plan: Plan | undefined;
  #resume: readonly OperationOf<"dequeue">[] = [];
  #started = 0;
  #epochs = 0;
  #total = 0;

  constructor(options: ProofOptions, folder: string, place: Place) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#folder = folder;
    this.#place = place;
  }

  readonly #now = (): number => nanoseconds(this.#originNs);

  #trouble(text: string): void {
    if (this.#troubles.length < 20) this.#troubles.push(text);
  }

  async run(): Promise<ProofReport> {
    const begun = performance.now();
    const backend = await openClient(this.#place.direct, systemClock);
    try {
      for (let slot = 0; slot < this.#options.clients; slot += 1) this.#ways.push(await this.#place.connect());
      await this.#newPlan(backend);
      await Promise.all(this.#ways.map((_, slot) => this.#startClient(slot)));
      while (performance.now() - begun < this.#options.seconds * 1_000) {
        const leftMs = this.#options.seconds * 1_000 - (performance.now() - begun);
        await this.#epoch(backend, Math.min(leftMs, this.#options.epochSeconds * 1_000));
      }
      for (const { severity, check: name, message } of await backend.inspect())
        if (severity === "error") this.#trouble(`${name}: ${message}`);
    } finally {
      await this.#children.end().catch((error: unknown) => this.#trouble(String(error)));
      this.#removePrograms();
      await backend.close();
    }
    const { backend: kind, seed } = this.#options;
    const seconds = Math.round((performance.now() - begun) / 100) / 10;
    return {
      backend: kind,
      seed,
      seconds,
      epochs: this.#epochs - 1,
      operations: this.#counts,
      faults: this.#faultCounts,
      checks: this.#tallies,
      violations: this.#violations,
      troubles: this.#troubles,
    };
  }

  async #newPlan(backend: Backend): Promise<void> {
    this.#epochs += 1;
    const times = { shortestLeaseMs: 400, longestLeaseMs: 1_500, turnMs: 800, longestWaitMs: 7_000, pauseMs: 12 };
    this.#plan = planOf(`epoch-${this.#epochs}`, times);
    for (const queue of queuesOf(this.#plan)) await backend.createQueue(parseQueueName(queue), { maxDeliveries: 0 });
  }

  async #startClient(slot: number): Promise<void> {
    this.#started += 1;
    const name = `c${this.#started}`;
    const child = await this.#children.start();
    const way = this.#ways[slot] as Way;
    await child.call("open", way.store);
    const client: Client = {
      name,
      slot,
      child,
      record: join(this.#folder, `${name}.jsonl`),
      ...(way.proxy === undefined ? {} : { proxy: way.proxy }),
      signal: (signal) => child.signal(signal),
      stepWallClock: (byMs) => void child.call("stepWallClock", byMs).catch(() => {}),
      kill: () => this.#killClient(client),
    };
    await this.#beginClient(client);
    // Only now may it be killed: a call that its death cuts off would look like a trouble of the runner.
    this.#clients.set(slot, client);
  }

  async #beginClient({ name, child, record }: Client): Promise<void> {
    if (this.#plan === undefined) return;
    const file = `${record}.${this.#epochs}`;
    this.#records.push(file);
    const resume = this.#resume;
    this.#resume = [];
    const seed = this.#random.token() % 2 ** 30;
    await child.call("begin", { client: name, lanes: LANES, seed, originNs: this.#originNs, record: file, plan: this.#plan, resume });
  }

  async #killClient({ slot, child, record }: Client): Promise<void> {
    this.#clients.delete(slot);
    await child.kill();
    const file = `${record}.${this.#epochs}`;
    // Half of the requests that were not answered are asked again by another client, the others are left to their leases.
    if (existsSync(file)) this.#resume = unansweredRequests(readRecord(file)).filter(() => this.#random.fraction() < 0.5);
    const starting = this.#startClient(slot).catch((error: unknown) => this.#trouble(`a client did not start: ${error}`));
    this.#starting.add(starting);
    void starting.finally(() => this.#starting.delete(starting));
  }

  async #epoch(backend: Backend, workMs: number): Promise<void> {
    const plan = this.#plan as Plan;
    const nemesis = new Nemesis({
      random: new SeededRandom(this.#random.token()),
      server: this.#place.server,
      stopsHoldOthers: this.#options.backend === "sqlite",
      leaseMs: plan.longestLeaseMs,
      killsServerFirst: this.#options.forgets ?? false,
      victims: () => [...this.#clients.values()],
      now: this.#now,
      onFault: (fault) => this.#onFault(fault),
    });
    const harming = nemesis.run();
    // The last part of a longer epoch is calm, so that failures and late waking are not excused by faults.
    const calmMs = workMs >= 3 * CALM_MS ? CALM_MS : 0;
    await sleep(workMs - calmMs);
    await nemesis.end();
    await harming;
    // One that still starts would begin unseen, and go on while the records are read.
    while (this.#starting.size > 0) await Promise.all([...this.#starting]);
    const lost: number[] = [];
    const endClient = ({ child, name, slot }: Client): Promise<void> =>
      child.call("end").catch((error: unknown) => {
        // Nobody killed it: what it wrote at its end says why.
        this.#trouble(`${name}: ${error}`);
        this.#clients.delete(slot);
        lost.push(slot);
      });
    await Promise.all([...this.#clients.values()].map(endClient));
    await this.#judge(backend, plan);
    for (const queue of queuesOf(plan)) {
      await backend.createQueue(parseQueueName(queue));
      await backend.removeQueue(parseQueueName(queue));
    }
    await this.#newPlan(backend);
    await Promise.all([...this.#clients.values()].map((client) => this.#beginClient(client)));
    await Promise.all(lost.map((slot) => this.#startClient(slot)));
  }

  #onFault(fault: Fault): void {
    this.#faults.push(fault);
    this.#faultCounts[fault.kind] = (this.#faultCounts[fault.kind] ?? 0) + 1;
  }

  /** Drains the epoch, checks it and throws its records away. */
  async #judge(backend: Backend, plan: Plan): Promise<void> {
    const operations: Operation[] = [];
    for (const file of this.#records) if (existsSync(file)) for (const operation of readRecord(file)) operations.push(operation);
    const file = join(this.#folder, `drain.jsonl.${this.#epochs}`);
    const recorder = new Recorder(fileSink(file), this.#now);
    const calls = new RecordedCalls(`drain${this.#epochs}.0`, backend, recorder);
    const drained = await drain(calls, plan, operations, this.#options.forgets ? CONTROL_DRAIN_MS : DRAIN_MS);
    for (const operation of readRecord(file)) operations.push(operation);
    const begun = performance.now();
    const history = { operations, faults: this.#faults.splice(0), drained };
    const report = check(history, this.#place.promises);
    this.#add(report, operations);
    const { backend: kind, seed, keepFolder } = this.#options;
    if (keepFolder !== undefined && report.violations.length > 0)
      keepHistory(join(keepFolder, `${kind}-${seed}-${this.#epochs}.jsonl`), kind, history);
    // Told at once: whoever lets it run for an hour wants to know.
    for (const { property, text } of report.violations.slice(0, 3)) this.#options.onProgress?.(`${property}: ${text}`);
    for (const record of [...this.#records.splice(0), file]) rmSync(record, { force: true });
    const violations = Object.values(this.#tallies).reduce((sum, tally) => sum + tally.violations, 0);
    const memory = Math.round(process.memoryUsage().rss / 2 ** 20);
    this.#options.onProgress?.(
      `epoch ${this.#epochs}: ${operations.length} operations checked in ${Math.round(performance.now() - begun)} ms, ${this.#total} in all; ` +
        `${violations} violations; ${Object.entries(this.#faultCounts)
          .map(([kind, count]) => `${kind} ${count}`)
          .join(", ")}; ${memory} MiB`,
    );
  }

  #add({ tallies, violations }: Report, operations: readonly Operation[]): void {
    this.#total += operations.length;
    for (const property of PROPERTIES) {
      const tally = this.#tallies[property];
      tally.checks += tallies[property].checks;
      tally.telling += tallies[property].telling;
      tally.violations += tallies[property].violations;
    }
    this.#violations.push(...violations.slice(0, KEPT_VIOLATIONS - this.#violations.length));
    for (const { op, outcome, error } of operations) {
      const counts = this.#counts[op] ?? {};
      this.#counts[op] = counts;
      const key = error === undefined ? outcome : `${outcome}: ${error}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
  }
}

/** Runs clients under faults on a store of its own, and checks all they saw. */
export async function prove(options: ProofOptions): Promise<ProofReport> {
  const folder = await mkdtemp(join(tmpdir(), "queuefs-proof-"));
  const place = await openPlace(options.backend, folder, options.forgets);
  try {
    return await new Run(options, folder, place).run();
  } finally {
    await place.end();
    await rm(folder, { recursive: true, force: true });
  }
}
