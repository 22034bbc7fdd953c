/** Tasks: what the same messages cost with tasks and without, on each store. */

import { type Run, turns } from "../settings.ts";
import { STORES, type StoreName, type Stores, startProcess, withStores } from "../stores.ts";
import { SHAPES, type Shape } from "./task-shapes.ts";
import type { TasksFigures, TasksTask } from "./tasks-main.ts";

/** The rows of the table. */
export const WITHOUT = "without tasks";
/** The other one. */
export const WITH = "with tasks";
/** The column that counts: from the making of the tasks to the end of the last. */
export const IN_ALL = "in all";

/** A run that goes through a million messages makes fewer rounds. */
const MANY_MESSAGES = 500_000;
const ROUNDS_OF_MANY = 1;

/** Everything about tasks. */
export async function runTasks(run: Run): Promise<void> {
  const { tasks, messagesPerTask } = run.settings;
  const about = { base: WITHOUT, order: [WITHOUT, WITH] };
  const size = `${tasks.toLocaleString("en")} tasks of ${messagesPerTask} messages`;
  const note = `${size}, each measurement in a process of its own. Task by task: each is made with its messages in one step, and neighbours belong to the same. Interleaved: neighbouring messages belong to different tasks, all of which are open at once, and a batch has messages of ${Math.min(100, tasks)} of them; the worst that can be asked.`;
  run.results.begin("tasks", { ...about, title: `Tasks: time per message, ${size}`, note });
  run.results.begin("tasks-processor", {
    ...about,
    title: "Tasks: time of the processor per message",
    note: "The same, all threads of the process and the server of Redis together.",
  });
  const rounds = tasks * messagesPerTask > MANY_MESSAGES ? Math.min(ROUNDS_OF_MANY, run.settings.rounds) : run.settings.rounds;
  await withStores(run, async (stores) => {
    for (const name of STORES) for (const shape of SHAPES) await measureShape(run, stores, name, shape, rounds);
  });
}

/** The name of a measure. */
export function taskMeasure(store: string, shape: Shape, part: string): string {
  return `${store}, ${shape.name}: ${part}`;
}

async function measureShape(run: Run, stores: Stores, name: StoreName, shape: Shape, rounds: number): Promise<void> {
  const { tasks, messagesPerTask } = run.settings;
  const messages = tasks * messagesPerTask;
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of turns([WITHOUT, WITH], round)) {
      run.tell(`tasks, round ${round + 1}: ${name}, ${shape.name}, ${contender}`);
      await run.inFolder(async (folder) => {
        const task: TasksTask = {
          warmUp: stores.newPlace(name, folder),
          place: stores.newPlace(name, folder),
          shape,
          size: { tasks, messagesPerTask },
          isWith: contender === WITH,
        };
        const child = startProcess<TasksFigures | "warm">("tasks-main.ts", task);
        await child.next();
        const serverBeforeUs = name === "Redis" ? await stores.serverProcessorUs() : 0;
        child.send("go on");
        const { parts, processorUs } = (await child.next()) as TasksFigures;
        const serverUs = name === "Redis" ? (await stores.serverProcessorUs()) - serverBeforeUs : 0;
        await child.ended;
        for (const [part, ms] of Object.entries({ ...parts, [IN_ALL]: Object.values(parts).reduce((sum, each) => sum + each, 0) })) {
          run.results.record("tasks", taskMeasure(name, shape, part), contender, "us", (ms * 1_000) / messages);
        }
        run.results.record("tasks-processor", taskMeasure(name, shape, IN_ALL), contender, "us", (processorUs + serverUs) / messages);
      });
      if (name === "Redis") await stores.clear();
    }
  }
}
