/** Several processes on one file: whether they do together as much as one alone, and none starves. */

import { fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Run, turns } from "../settings.ts";
import type { ProcessAnswer, ProcessTask } from "./process-main.ts";

/** Callers in each process. */
const CALLERS = 64;
/** Windows are longer here, since a process that waits for another one is seen only then. */
const WINDOWS = 3;

/** The suites: cycles of all processes together, and how these are shared. */
export const PROCESSES_SUITE = "sqlite-processes";
/** The other one. */
export const SHARING_SUITE = "sqlite-processes-sharing";

/** The name of a number of processes. */
export function processesOf(count: number): string {
  return `${count} ${count === 1 ? "process" : "processes"}`;
}

/** What is told of several processes. */
export const SHARING = {
  longest: (count: number): string => `${processesOf(count)}: longest wait of a call`,
  fairness: (count: number): string => `${processesOf(count)}: fairness (slowest by fastest)`,
  failed: (count: number): string => `${processesOf(count)}: calls that failed`,
} as const;

/** Lets one and several processes take turns. */
export async function measureProcesses(run: Run, durability: "full" | "normal"): Promise<void> {
  const name = `QueueFS, ${durability}`;
  for (let round = 0; round < run.settings.rounds; round += 1) {
    for (const count of turns(run.settings.processes.map(String), round).map(Number)) {
      run.tell(`${PROCESSES_SUITE}, round ${round + 1}: ${processesOf(count)}, ${durability}`);
      const answers = await run.inFolder((folder) =>
        runProcesses(count, { path: join(folder, "queue.db"), durability, callers: CALLERS, durationMs: run.settings.windowMs * WINDOWS }),
      );
      const rates = answers.map(({ perSecond }) => perSecond);
      const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
      run.results.record(PROCESSES_SUITE, processesOf(count), name, "/s", sum(rates));
      if (count === 1) continue;
      const longestMs = Math.max(...answers.map((answer) => answer.longestMs));
      run.results.record(SHARING_SUITE, SHARING.longest(count), name, "ms", longestMs);
      run.results.record(SHARING_SUITE, SHARING.fairness(count), name, "ratio", Math.min(...rates) / Math.max(...rates));
      run.results.record(SHARING_SUITE, SHARING.failed(count), name, "errors", sum(answers.map(({ errors }) => errors)));
    }
  }
}

async function runProcesses(count: number, task: ProcessTask): Promise<ProcessAnswer[]> {
  const children = Array.from({ length: count }, () =>
    fork(fileURLToPath(new URL("./process-main.ts", import.meta.url)), [JSON.stringify(task)]),
  );
  const ready = children.map((child) => new Promise((resolve) => child.once("message", resolve)));
  await Promise.all(ready);
  const answers = children.map(
    (child) =>
      new Promise<ProcessAnswer>((resolve, reject) => {
        child.once("message", (answer) => resolve(answer as ProcessAnswer));
        child.once("exit", (exitCode) => reject(new Error(`a process of the benchmark ended with ${exitCode}`)));
      }),
  );
  for (const child of children) child.send("begin");
  return Promise.all(answers);
}
