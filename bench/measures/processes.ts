/** Two processes on one file: whether both together do as much as one alone, and neither starves. */

import { fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Run, turns } from "../settings.ts";
import type { ProcessAnswer, ProcessTask } from "./process-main.ts";

/** Callers in each process. */
const CALLERS = 64;
/** Windows are longer here, since a process that waits for another one is seen only then. */
const WINDOWS = 3;

/** Lets one and two processes take turns. */
export async function measureProcesses(run: Run, suite: string, durability: "full" | "normal"): Promise<void> {
  const name = `QueueFS, ${durability}`;
  const record = (measure: string, unit: "/s" | "ms" | "ratio" | "errors", value: number): void =>
    run.results.record(suite, measure, name, unit, value);
  for (let round = 0; round < run.settings.rounds; round += 1) {
    for (const count of turns(["1", "2"], round).map(Number)) {
      run.tell(`${suite}, round ${round + 1}: ${count} ${count === 1 ? "process" : "processes"}, ${durability}`);
      const answers = await run.inFolder((folder) =>
        runProcesses(count, { path: join(folder, "queue.db"), durability, callers: CALLERS, durationMs: run.settings.windowMs * WINDOWS }),
      );
      const rates = answers.map(({ perSecond }) => perSecond);
      record(
        `${count} ${count === 1 ? "process" : "processes"}, cycles together`,
        "/s",
        rates.reduce((sum, rate) => sum + rate, 0),
      );
      if (count === 1) continue;
      record("longest wait of a call", "ms", Math.max(...answers.map(({ longestMs }) => longestMs)));
      record("fairness (slower by faster)", "ratio", Math.min(...rates) / Math.max(...rates));
      record(
        "calls that failed",
        "errors",
        answers.reduce((sum, { errors }) => sum + errors, 0),
      );
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
