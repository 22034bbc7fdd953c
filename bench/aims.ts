/** The aims: ratios of one run, what they should be, and what they are. */

import { HELD, MESSAGES_EACH, SETTLINGS, settlingAt, snapshotOf } from "./measures/depth.ts";
import { FIRST_MARK, GROWTH_SUITE, growthOf, LAST_MARK } from "./measures/growth.ts";
import {
  BATCH_SUITE,
  batchMeasure,
  CALL_SUITE,
  EMPTY_HANDLER,
  ENQUEUE_CALL,
  IN_PROCESS as IN_THE_PROCESS,
  OVER_HTTP,
  SERVER,
} from "./measures/http.ts";
import { IDLE_SHARE, IDLE_SUITE, NO_WORKER } from "./measures/idle.ts";
import { DEEP_CYCLE, SHALLOW_CYCLE } from "./measures/memory.ts";
import { PROCESSES_SUITE, processesOf, SHARING, SHARING_SUITE } from "./measures/processes.ts";
import { PING } from "./measures/redis.ts";
import { logOf } from "./measures/storage.ts";
import { DEPTH_SUITES, rowOf } from "./measures/sweeps.ts";
import { SHAPES } from "./measures/task-shapes.ts";
import { IN_ALL, taskMeasure, WITH, WITHOUT } from "./measures/tasks.ts";
import { BETWEEN_PROCESSES, IN_PROCESS, WAITS_SUITE, waitOf } from "./measures/waits.ts";
import { median, type Results } from "./results.ts";
import { STORES } from "./stores.ts";

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
const SQLITE_PEERS = ["plainjob", "liteque", "better-queue"];
/** How much larger the heap may be at the end than it was at the beginning: what compiled code and the collector leave lying. */
const HEAP_MARGIN = 1.1;

/** Judges the aims of what was measured; the others are left out. */
export function judge(results: Results): Verdict[] {
  const verdicts = [
    ...judgeSqlite(results),
    ...judgeFlatness(results),
    ...judgeRedis(results),
    ...judgeMemory(results),
    ...judgeTasks(results),
    ...judgeStores(results),
    ...judgeHttp(results),
  ];
  const storeOf = ({ aim }: Verdict): number => ["SQLite", "Redis", "memory", "HTTP"].findIndex((store) => aim.startsWith(store));
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
  const about = contender.replace("QueueFS, ", "SQLite ");
  const two = (measure: (count: number) => string): readonly number[] => results.rounds(SHARING_SUITE, measure(2), contender);
  if (two(SHARING.failed).length === 0) return [];
  return [
    atLeast(`${about}: two processes / one`, 1, results.ratio(PROCESSES_SUITE, processesOf(2), contender, contender, processesOf(1))),
    atMost(`${about}: two processes, longest wait in ms`, 25, median(two(SHARING.longest))),
    atLeast(`${about}: two processes, fairness`, 0.85, median(two(SHARING.fairness))),
    atMost(`${about}: two processes, failed calls`, 0, Math.max(...two(SHARING.failed))),
  ];
}

/** Whether costs stay the same in depth, on each store. */
function judgeFlatness(results: Results): Verdict[] {
  const suites = { SQLite: ["sqlite-depth", NORMAL], Redis: ["redis-depth", "QueueFS"], memory: ["memory-depth", "QueueFS"] } as const;
  return STORES.flatMap((store) => {
    const [suite, contender] = suites[store];
    const ratio = (deep: string, shallow: string): number => results.ratio(suite, deep, contender, contender, shallow);
    const depths = Object.keys(results.suites[DEPTH_SUITES.status]?.measures ?? {});
    const deepest = depths.at(-1) ?? "";
    const atDepth = (call: keyof typeof DEPTH_SUITES): number => results.ratio(DEPTH_SUITES[call], deepest, store, store, rowOf(10));
    return [
      atMost(`${store}: status at ${deepest} messages / at 10`, 1.5, atDepth("status"), true),
      atMost(`${store}: enqueue at ${deepest} messages / at 10`, 1.5, atDepth("enqueue")),
      atMost(`${store}: dequeue and ack at ${deepest} messages / at 10`, 1.5, atDepth("dequeue and ack")),
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

/** What holds for every store alike: who waits hears soon, idle workers take next to nothing, nothing grows. */
function judgeStores(results: Results): Verdict[] {
  const waitMs = (where: string, store: string): number => results.median(WAITS_SUITE, waitOf(where, "p50"), store) / 1_000;
  const idleShare = (name: string): number => results.median(IDLE_SUITE, IDLE_SHARE, name);
  return STORES.flatMap((store) => [
    atMost(`${store}: last ack to the return of who waits, in process, ms`, 1, waitMs(IN_PROCESS, store)),
    atMost(`${store}: last ack to the return of who waits, between processes, ms`, 10, waitMs(BETWEEN_PROCESSES, store)),
    atMost(`${store}: what an idle worker adds, % of a processor`, 0.1, idleShare(store) - idleShare(NO_WORKER)),
    ...(["heap", "server"] as const).map((what) => {
      const column = growthOf(store, what);
      return atMost(
        `${store}: ${what} at the end of all messages / at the beginning`,
        HEAP_MARGIN,
        results.ratio(GROWTH_SUITE, LAST_MARK, column, column, FIRST_MARK),
      );
    }),
  ]);
}

function judgeRedis(results: Results): Verdict[] {
  const ratio = (measure: string, other: string): number => results.ratio("redis", measure, "QueueFS", other);
  return [
    atLeast("Redis: enqueue x1000 / BullMQ", 10, ratio("enqueue x1000", "BullMQ")),
    atLeast("Redis: enqueue x1000 / bee-queue", 4, ratio("enqueue x1000", "bee-queue")),
    atLeast("Redis: cycle x64 / BullMQ", 6, ratio("cycle x64", "BullMQ")),
    atLeast("Redis: cycle x64 / bee-queue", 4, ratio("cycle x64", "bee-queue")),
    atLeast("Redis: cycle x1 / bee-queue", 1, ratio("cycle x1", "bee-queue")),
    atMost("Redis: cycle x1 p50 / three PINGs", 1.2, ratio("cycle x1 p50", PING)),
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
  return STORES.flatMap((store) =>
    SHAPES.map((shape) =>
      atMost(
        `${store}: messages with tasks / without, ${shape.name}`,
        1.5,
        results.ratio("tasks-processor", taskMeasure(store, shape, IN_ALL), WITH, WITHOUT),
      ),
    ),
  );
}

/** What a server between a program and its store costs. */
function judgeHttp(results: Results): Verdict[] {
  return [
    ...(["memory", "SQLite"] as const).map((store) =>
      atLeast(
        `HTTP: batches of 100 over HTTP / in the process, ${store}`,
        0.5,
        results.ratio(BATCH_SUITE, batchMeasure(store), OVER_HTTP, IN_THE_PROCESS),
      ),
    ),
    atMost(
      "HTTP: an empty handler's single calls per second / the server's",
      2,
      results.ratio(CALL_SUITE, ENQUEUE_CALL, EMPTY_HANDLER, SERVER),
    ),
  ];
}
