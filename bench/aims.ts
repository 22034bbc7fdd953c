/** The aims: ratios of one run, what they should be, and what they are. */

import { HELD, MESSAGES_EACH, SETTLINGS, settlingAt, snapshotOf, statusAt } from "./measures/depth.ts";
import { DEEP_CYCLE, SHALLOW_CYCLE } from "./measures/memory.ts";
import { PING } from "./measures/redis.ts";
import { logOf } from "./measures/storage.ts";
import { IN_ALL, SHAPES, TASK_STORES, taskMeasure, WITH, WITHOUT } from "./measures/tasks.ts";
import type { Results } from "./results.ts";

/** One aim, judged. */
export interface Verdict {
  readonly aim: string;
  /** The bound, as text. */
  readonly bound: string;
  readonly measured: number;
  readonly isMet: boolean;
  /** Whether missing it makes a run with `--gate` fail. */
  readonly isGate: boolean;
}

const NORMAL = "QueueFS, normal";
const FULL = "QueueFS, full";
const SQLITE_PEERS = ["plainjob", "liteque"];

/** Judges the aims of what was measured; the others are left out. */
export function judge(results: Results): Verdict[] {
  const verdicts = [
    ...judgeSqlite(results),
    ...judgeFlatness(results),
    ...judgeRedis(results),
    ...judgeMemory(results),
    ...judgeTasks(results),
  ];
  const storeOf = ({ aim }: Verdict): number => ["SQLite", "Redis", "memory"].findIndex((store) => aim.startsWith(store));
  return verdicts.filter(({ measured }) => !Number.isNaN(measured)).sort((left, right) => storeOf(left) - storeOf(right));
}

function atLeast(aim: string, bound: number, measured: number, isGate = false): Verdict {
  return { aim, bound: `at least ${bound}`, measured, isMet: measured >= bound, isGate };
}

function atMost(aim: string, bound: number, measured: number, isGate = false): Verdict {
  return { aim, bound: `at most ${bound.toLocaleString("en")}`, measured, isMet: measured <= bound, isGate };
}

/** The ratio to the best of several: the smallest of the ratios, or the largest where less is better. */
function against(results: Results, suite: string, measure: string, contender: string, others: readonly string[]): number {
  const ratios = others.map((other) => results.ratio(suite, measure, contender, other)).filter((ratio) => !Number.isNaN(ratio));
  return ratios.length === 0 ? Number.NaN : Math.min(...ratios);
}

function judgeSqlite(results: Results): Verdict[] {
  const peers = (measure: string, contender: string): number => against(results, "sqlite", measure, contender, SQLITE_PEERS);
  const limit = (measure: string): number => results.ratio("sqlite", measure, NORMAL, "raw batches, normal");
  const latency = SQLITE_PEERS.map((peer) => results.ratio("sqlite", "cycle x1 p99", NORMAL, peer)).filter((ratio) => !Number.isNaN(ratio));
  return [
    atLeast(
      "SQLite full: enqueue x64 / a transaction per call, full",
      10,
      results.ratio("sqlite", "enqueue x64", FULL, "per call, full"),
      true,
    ),
    atLeast(
      "SQLite normal: enqueue x64 / a transaction per call, normal",
      10,
      results.ratio("sqlite", "enqueue x64", NORMAL, "per call, normal"),
    ),
    atLeast(
      "SQLite full: enqueue x64 / the same statements, a transaction per call",
      10,
      results.ratio("sqlite", "enqueue x64", FULL, "raw batches, full", "enqueue x1"),
    ),
    atLeast("SQLite normal: enqueue x64 / best peer", 10, peers("enqueue x64", NORMAL)),
    atLeast("SQLite normal: cycle x64 / best peer", 10, peers("cycle x64", NORMAL)),
    atLeast("SQLite normal: enqueue x64 / raw batches", 0.7, limit("enqueue x64")),
    atLeast("SQLite normal: cycle x64 / raw batches", 0.7, limit("cycle x64")),
    atLeast("SQLite full: enqueue x1000 / best peer, which does not wait for the disk", 10, peers("enqueue x1000", FULL)),
    atLeast("SQLite full: cycle x64 / best peer, which does not wait for the disk", 5, peers("cycle x64", FULL)),
    atLeast("SQLite normal: cycle x1 / best peer", 1.2, peers("cycle x1", NORMAL)),
    atMost("SQLite normal: cycle x1 p99 / best peer's", 0.5, latency.length === 0 ? Number.NaN : Math.max(...latency)),
    atMost("SQLite: log bytes per cycle", 20_000, results.median("sqlite-storage", logOf(1), NORMAL), true),
    atMost(
      "SQLite: bytes per stored message beyond its payload",
      40,
      results.median("sqlite-storage", "bytes per message beyond its payload", NORMAL),
      true,
    ),
    ...[NORMAL, FULL].flatMap((contender) => judgeProcesses(results, contender)),
  ];
}

function judgeProcesses(results: Results, contender: string): Verdict[] {
  const suite = "sqlite-processes";
  const about = contender.replace("QueueFS, ", "SQLite ");
  const one = results.rounds(suite, "1 process, cycles together", contender);
  if (one.length === 0) return [];
  return [
    atLeast(
      `${about}: two processes / one`,
      1,
      results.ratio(suite, "2 processes, cycles together", contender, contender, "1 process, cycles together"),
    ),
    atMost(`${about}: two processes, longest wait in ms`, 25, results.median(suite, "longest wait of a call", contender)),
    atLeast(`${about}: two processes, fairness`, 0.85, results.median(suite, "fairness (slower by faster)", contender)),
    atMost(`${about}: two processes, failed calls`, 0, Math.max(...results.rounds(suite, "calls that failed", contender))),
  ];
}

/** Whether costs stay the same in depth, on each store. */
function judgeFlatness(results: Results): Verdict[] {
  const stores: readonly (readonly [string, string, string])[] = [
    ["SQLite", "sqlite-depth", NORMAL],
    ["Redis", "redis", "QueueFS"],
    ["memory", "memory", "QueueFS"],
  ];
  return stores.flatMap(([store, suite, contender]) => {
    const ratio = (deep: string, shallow: string): number => results.ratio(suite, deep, contender, contender, shallow);
    const depths = Object.keys(results.suites[suite]?.measures ?? {}).filter((measure) => measure.startsWith("status at "));
    const deepest = depths.filter((measure) => results.rounds(suite, measure, contender).length > 0).at(-1) ?? statusAt(10);
    return [
      atMost(`${store}: ${deepest} / at 10`, 1.5, ratio(deepest, statusAt(10)), true),
      atMost(
        `${store}: snapshot of ${snapshotOf(MESSAGES_EACH[1])} / ${MESSAGES_EACH[0]} each`,
        1.5,
        ratio(snapshotOf(MESSAGES_EACH[1]), snapshotOf(MESSAGES_EACH[0])),
        true,
      ),
      ...SETTLINGS.map((settling) =>
        atMost(
          `${store}: ${settlingAt(settling, HELD[1])} / ${HELD[0]}`,
          1.5,
          ratio(settlingAt(settling, HELD[1]), settlingAt(settling, HELD[0])),
        ),
      ),
    ];
  });
}

function judgeRedis(results: Results): Verdict[] {
  const ratio = (measure: string, other: string): number => results.ratio("redis", measure, "QueueFS", other);
  return [
    atLeast("Redis: enqueue x1000 / BullMQ", 10, ratio("enqueue x1000", "BullMQ")),
    atLeast("Redis: enqueue x1000 / bee-queue", 4, ratio("enqueue x1000", "bee-queue")),
    atLeast("Redis: cycle x64 / BullMQ", 6, ratio("cycle x64", "BullMQ")),
    atLeast("Redis: cycle x64 / bee-queue", 4, ratio("cycle x64", "bee-queue")),
    atLeast("Redis: cycle x1 / bee-queue", 1, ratio("cycle x1", "bee-queue")),
    atMost("Redis: cycle x1 p50 / three PINGs", 1.2, ratio("cycle x1 p50", PING) / 3),
    atMost("Redis: bytes per message / BullMQ", 1 / 3, ratio("bytes per message", "BullMQ")),
  ];
}

function judgeMemory(results: Results): Verdict[] {
  const half = results.ratio("memory", "cycle x1", "QueueFS", "ring and map");
  const rate = results.median("memory", "cycle x1", "QueueFS");
  return [
    // Either is enough; where the ratio is met the rate need not be.
    half >= 0.5 ? atLeast("memory: cycle x1 / ring and map", 0.5, half) : atLeast("memory: cycle x1 per second", 700_000, rate),
    atMost("memory: cycle x1 nearly empty / deep", 1.3, results.ratio("memory", SHALLOW_CYCLE, "QueueFS", "QueueFS", DEEP_CYCLE)),
  ];
}

/** What tasks add to the cost of a message, by the time of the processor: the clock says the same, with more noise. */
function judgeTasks(results: Results): Verdict[] {
  return TASK_STORES.flatMap((store) =>
    SHAPES.map((shape) =>
      atMost(
        `${store}: messages with tasks / without, ${shape.name}`,
        1.5,
        results.ratio("tasks-processor", taskMeasure(store, shape, IN_ALL), WITH, WITHOUT),
      ),
    ),
  );
}
