/** One import: a task that owns the messages of both queues, made with all its documents in one step, and over when the task has ended. */

import { type Backend, batch, type QueueName, type QueueStatus, type Statistics, type Task, Tasks, waitComplete } from "../../src/index.ts";
import { Crew } from "./crew.ts";
import { idOf, queuesOf, type WorkerSettings } from "./job.ts";
import type { Screen } from "./screen.ts";
import type { Check } from "./verify.ts";
import { checkMoment } from "./verify-task.ts";

/** An import that takes longer has failed, in milliseconds. */
const TIMEOUT_MS = 300_000;
const WORKERS = 2;

/** What is to be imported, and how. */
export interface ImportRequest {
  readonly store: Backend;
  readonly documents: readonly string[];
  /** What each worker process needs to know. */
  readonly workers: Omit<WorkerSettings, "number" | "holdAtStep">;
  /** In the middle of which of its steps a worker is killed; absent: none is. */
  readonly killAtStep?: number;
  readonly screen: Screen;
  /** Aborted when the import cannot go on, whoever finds that. */
  readonly ending: AbortController;
}

/** What became of it. */
export interface Imported {
  /** The task as it ended. */
  readonly task: Task;
  /** The snapshot of both queues that was complete. */
  readonly final: readonly QueueStatus[];
  /** The statistics of each queue, by its name. */
  readonly statistics: ReadonlyMap<QueueName, Statistics>;
  /** Snapshots that were seen, and those with nothing pending although work was in hand. */
  readonly seen: { readonly snapshots: number; readonly nonePending: number };
  /** Whether the end of the task and the completion of its queues were one moment. */
  readonly moment: Check;
  /** Whether a worker was killed, and somebody else got its message. */
  readonly killed: Check;
}

/** Runs an import to the end of its task, and its workers to theirs. */
export async function importFolder(request: ImportRequest): Promise<Imported> {
  const { store, documents, workers, killAtStep, screen, ending } = request;
  const { folder } = workers;
  const tasks = new Tasks(store);
  const { parse, index } = queuesOf(store);
  await index.ensure();
  const crew = new Crew(store, workers, screen, (error) => ending.abort(error));
  try {
    const jobs = documents.map((document) => ({ document }));
    const documentsToParse = batch(parse, jobs, ({ document }) => ({ id: idOf(folder, document) }));
    let task = await tasks.create({ type: "import", resource: folder }, [documentsToParse]);
    screen.event(`task ${task.id} made, with ${task.progress.total} documents in import/parse, in one step`);
    await crew.start(WORKERS, killAtStep);

    const queues = [parse.name, index.name];
    const seen = { snapshots: 0, nonePending: 0 };
    const onSnapshot = (statuses: readonly QueueStatus[]): void => {
      const isInHand = statuses.some(({ processing }) => processing > 0);
      seen.snapshots += 1;
      if (isInHand && statuses.every(({ pending }) => pending === 0)) seen.nonePending += 1;
      screen.show(statuses, task);
    };
    const wait = { timeoutMs: TIMEOUT_MS, signal: ending.signal };
    const onProgress = (now: Task): void => {
      task = now;
    };
    // The import is over when its task is. Whoever watches the queues instead must see neither more nor less, so both look at once.
    const [atEnd, atComplete] = await Promise.all([
      tasks.wait(task.id, { ...wait, onProgress }).then(async (ended) => ({ ended, statuses: await store.statuses({ queues }) })),
      waitComplete(store, { queues }, { ...wait, onProgress: onSnapshot }).then(async (statuses) => ({
        statuses,
        task: await tasks.get(task.id),
      })),
    ]);
    const { ended } = atEnd;
    screen.show(atComplete.statuses, ended, true);
    screen.clear();
    screen.event(`the task ended as ${ended.status}: ${ended.progress.done} messages done, ${ended.progress.failed} failed`);
    screen.event("complete: one snapshot of both queues says that nothing is pending and nothing in processing");
    await crew.end();

    const statistics = new Map<QueueName, Statistics>();
    for (const queue of queues) statistics.set(queue, await store.statistics(queue));
    const moment = checkMoment(atEnd.statuses, atComplete.task.status);
    return { task: ended, final: atComplete.statuses, statistics, seen, moment, killed: crew.checkKilled() };
  } finally {
    await crew.kill();
  }
}
