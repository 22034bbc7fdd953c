/**
 * Measures QueueFS against its peers and against what the stores can do.
 *
 *     npm run bench                      a few minutes
 *     npm run bench -- --quick           about one minute
 *     npm run bench -- --full            deeper and longer, to be written down
 *     npm run bench -- --tiny            a few seconds: whether everything runs; the figures mean nothing
 *     npm run bench -- --only sqlite     one suite; several times for several; a prefix is enough
 *     npm run bench -- --write           writes docs/benchmarks.md as well, with its pictures in docs/benchmarks
 *     npm run bench -- --docs FOLDER     writes the same into another folder
 *     npm run bench -- --with FILE       takes over the suites of an earlier result of this day that are not measured now
 *     npm run bench -- --gate            exit code 1 when an aim is missed that must not be
 *     npm run bench -- --json FILE       where the result goes as JSON (test-results/bench.json)
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { judge } from "./aims.ts";
import { type EarlierResult, takeOver } from "./earlier.ts";
import { loadLibrary } from "./library.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { runEventLoop } from "./measures/event-loop.ts";
import { runGrowth } from "./measures/growth.ts";
import { runHttp } from "./measures/http.ts";
import { runIdle } from "./measures/idle.ts";
import { runMemory } from "./measures/memory.ts";
import { runRedis } from "./measures/redis.ts";
import { runSqlite, runSqliteDepth, runSqliteProcesses, runSqliteStorage } from "./measures/sqlite.ts";
import { runStartUp } from "./measures/start-up.ts";
import { runCallersSweep, runDepths, runPayloads } from "./measures/sweeps.ts";
import { runTasks } from "./measures/tasks.ts";
import { runWaits } from "./measures/waits.ts";
import { drawPlots } from "./plots.ts";
import { jsonReport, markdownReport, type Report, textReport } from "./report.ts";
import { Results } from "./results.ts";
import { FULL, NORMAL, QUICK, type Run, TINY } from "./settings.ts";

// Memory comes first: what others leave on the heap of this process costs most where a call takes a microsecond.
const SUITES: Readonly<Record<string, (run: Run) => Promise<void>>> = {
  memory: runMemory,
  sqlite: runSqlite,
  "sqlite-storage": runSqliteStorage,
  "sqlite-depth": runSqliteDepth,
  "sqlite-processes": runSqliteProcesses,
  redis: runRedis,
  tasks: runTasks,
  depth: runDepths,
  callers: runCallersSweep,
  payload: runPayloads,
  growth: runGrowth,
  "event-loop": runEventLoop,
  waits: runWaits,
  "start-up": runStartUp,
  idle: runIdle,
  http: runHttp,
};

const root = join(import.meta.dirname, "..");
const { values } = parseArgs({
  options: {
    tiny: { type: "boolean" },
    quick: { type: "boolean" },
    full: { type: "boolean" },
    only: { type: "string", multiple: true },
    rounds: { type: "string" },
    write: { type: "boolean" },
    docs: { type: "string" },
    gate: { type: "boolean" },
    json: { type: "string" },
    with: { type: "string" },
  },
});

const chosen = Object.keys(SUITES).filter((name) => values.only === undefined || values.only.some((only) => name.startsWith(only)));
if (chosen.length === 0) throw new Error(`--only takes one of ${Object.keys(SUITES).join(", ")}`);
const settings = values.tiny === true ? TINY : values.quick === true ? QUICK : values.full === true ? FULL : NORMAL;
const rounds = values.rounds === undefined ? settings.rounds : Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds takes a whole number from 1, got ${values.rounds}`);

const results = new Results();
const run: Run = {
  settings: { ...settings, rounds },
  library: await loadLibrary(),
  results,
  tell: (text) => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text.slice(0, (process.stderr.columns ?? 80) - 1)}`);
  },
  inFolder: async (use) => {
    const folder = mkdtempSync(join(tmpdir(), "queuefs-bench-"));
    try {
      return await use(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
const conditions = {
  date: new Date().toISOString().slice(0, 10),
  machine: describeMachine(),
  versions: describeVersions(),
  settings: run.settings,
};
const seconds: Record<string, number> = {};
if (values.with !== undefined) {
  const earlier = JSON.parse(readFileSync(values.with, "utf8")) as EarlierResult;
  takeOver(results, earlier, conditions);
  Object.assign(seconds, earlier.seconds);
}
for (const name of chosen) {
  const begunMs = performance.now();
  await SUITES[name]?.(run);
  seconds[name] = Math.round((performance.now() - begunMs) / 1_000);
}
run.tell("");

const report: Report = { ...conditions, seconds, results, verdicts: judge(results) };
const path = values.json ?? join(root, "test-results", "bench.json");
mkdirSync(dirname(path), { recursive: true });
writeFileSync(path, jsonReport(report));
console.log(textReport(report));
if (values.write === true || values.docs !== undefined) {
  const docs = values.docs ?? join(root, "docs");
  const plots = drawPlots(results, `${report.date}, ${report.machine.processor}, ${report.machine.cores} cores.`);
  // Pictures of suites that there are no more go.
  rmSync(join(docs, "benchmarks"), { recursive: true, force: true });
  mkdirSync(join(docs, "benchmarks"), { recursive: true });
  for (const [suite, picture] of Object.entries(plots)) writeFileSync(join(docs, "benchmarks", `${suite}.svg`), picture);
  writeFileSync(join(docs, "benchmarks.md"), markdownReport(report, Object.keys(plots)));
}
if (values.gate === true && report.verdicts.some(({ isGate, isMet }) => isGate && !isMet)) process.exitCode = 1;
