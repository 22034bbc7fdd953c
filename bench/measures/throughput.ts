/** Calls per second: enqueue and cycle by 1, 64 and 1,000 callers at once, drain by 64; and the latency of the serial cycle. */

import { type Contender, type Contest, Load } from "../contender.ts";
import { quantile } from "../results.ts";
import { type Run, turns } from "../settings.ts";

/** One measure of throughput. */
export interface Throughput {
  readonly name: string;
  readonly kind: "enqueue" | "cycle" | "drain";
  readonly callers: number;
}

/** All of them. */
export const THROUGHPUT: readonly Throughput[] = [
  { name: "enqueue x1", kind: "enqueue", callers: 1 },
  { name: "enqueue x64", kind: "enqueue", callers: 64 },
  { name: "enqueue x1000", kind: "enqueue", callers: 1_000 },
  { name: "cycle x1", kind: "cycle", callers: 1 },
  { name: "cycle x64", kind: "cycle", callers: 64 },
  { name: "drain x64", kind: "drain", callers: 64 },
];

/** The part of a measurement that is run before it and not counted. */
const WARM_UP = 0.25;

/** Lets the contenders take turns in each measure, on a fresh store each time. The first round only warms up. */
export async function measureThroughput(run: Run, suite: string, contenders: readonly Contender[], measures = THROUGHPUT): Promise<void> {
  for (let round = 0; round <= run.settings.rounds; round += 1) {
    for (const measure of measures) {
      for (const contender of turns(contenders, round)) {
        if (contender.only !== undefined && contender.only !== measure.name) continue;
        run.tell(`${suite}, ${round === 0 ? "warming up" : `round ${round}`}: ${measure.name}, ${contender.name}`);
        await run.inFolder(async (folder) => {
          const contest = await contender.open(folder);
          try {
            const windowMs = round === 0 ? run.settings.windowMs * WARM_UP : run.settings.windowMs;
            const values = await measureOne(run, windowMs, contender, contest, measure);
            if (round > 0) recordAll(run, suite, measure, contender, values);
          } finally {
            await contest.close();
          }
        });
      }
    }
  }
}

/** What one measurement gives. */
interface Values {
  readonly perSecond: number;
  /** Time of the processor per call, in microseconds, threads of the runtime included. */
  readonly processorUs: number;
  readonly latenciesMs: readonly number[];
}

async function measureOne(run: Run, windowMs: number, contender: Contender, contest: Contest, measure: Throughput): Promise<Values> {
  if (measure.kind === "drain") {
    const messages = Math.ceil(contender.drainMessages * run.settings.drainPart);
    await contest.fill(messages);
    const before = process.cpuUsage();
    const begunMs = performance.now();
    const taken = await contest.drain(measure.callers);
    const seconds = (performance.now() - begunMs) / 1_000;
    if (taken !== messages) throw new Error(`${contender.name} drained ${taken} of ${messages} messages`);
    return { perSecond: taken / seconds, processorUs: processorUsSince(before) / taken, latenciesMs: [] };
  }
  await contest[measure.kind](new Load(measure.callers, { durationMs: windowMs * WARM_UP }));
  const load = new Load(measure.callers, { durationMs: windowMs });
  const before = process.cpuUsage();
  await contest[measure.kind](load);
  return { perSecond: load.perSecond, processorUs: processorUsSince(before) / load.done, latenciesMs: load.latenciesMs };
}

function processorUsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function recordAll(run: Run, suite: string, measure: Throughput, contender: Contender, values: Values): void {
  const { results } = run;
  results.record(suite, measure.name, contender.name, "/s", values.perSecond);
  const processorSuite = `${suite}-processor`;
  if (results.suites[processorSuite] !== undefined) results.record(processorSuite, measure.name, contender.name, "us", values.processorUs);
  if (measure.name !== "cycle x1") return;
  results.record(suite, "cycle x1 p50", contender.name, "us", quantile(values.latenciesMs, 0.5) * 1_000);
  results.record(suite, "cycle x1 p99", contender.name, "us", quantile(values.latenciesMs, 0.99) * 1_000);
}
