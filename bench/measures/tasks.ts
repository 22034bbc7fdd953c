/** Tasks: what the same messages cost with tasks and without, on each store. */

import { join } from "node:path";
import { Redis } from "ioredis";
import type { Backend } from "../../src/backend/contract.ts";
import type { NewMessage } from "../../src/core/message.ts";
import type { TaskId } from "../../src/core/names.ts";
import { startRedisServer } from "../../test/support/redis-server.ts";
import { PAYLOAD } from "../contender.ts";
import { QUEUE } from "../contenders/queuefs.ts";
import { type Run, turns } from "../settings.ts";

/** The rows of the table. */
export const WITHOUT = "without tasks";
/** The other one. */
export const WITH = "with tasks";
/** The column that counts: from the making of the tasks to the end of the last. */
export const IN_ALL = "in all";

/** How messages and tasks are made, and how the messages are taken. */
export interface Shape {
  readonly name: string;
  /** Calls at once. */
  readonly callers: number;
  /** Messages of one call, whether it stores, takes or acks. */
  readonly batch: number;
  /** Whether a task is made with all its messages, or opened, added to between the others, and sealed. */
  readonly isMadeWhole: boolean;
}

/** All of them. */
export const SHAPES: readonly Shape[] = [
  { name: "interleaved, one by one x64", callers: 64, batch: 1, isMadeWhole: false },
  { name: "interleaved, batches of 100", callers: 4, batch: 100, isMadeWhole: false },
  { name: "task by task, batches of 100", callers: 4, batch: 100, isMadeWhole: true },
];

/** The stores. */
export const TASK_STORES = ["memory", "SQLite", "Redis"] as const;

const LEASE_MS = 600_000;
/** Tasks that are opened and sealed at once. */
const PRODUCERS = 64;
/** A run that goes through a million messages makes fewer rounds. */
const MANY_MESSAGES = 500_000;
const ROUNDS_OF_MANY = 3;

interface Place {
  readonly store: Backend;
  /** Time of the processor that others spend for this store, in microseconds. */
  readonly othersUs: () => Promise<number>;
  readonly close: () => Promise<void>;
}

/** Everything about tasks. */
export async function runTasks(run: Run): Promise<void> {
  const { tasks, messagesPerTask } = run.settings;
  const about = { base: WITHOUT, order: [WITHOUT, WITH] };
  const size = `${tasks.toLocaleString("en")} tasks of ${messagesPerTask} messages`;
  const note = `${size}. Interleaved: neighbouring messages belong to different tasks, which are opened before and sealed after; task by task: each is made with its messages in one step, and neighbours belong to the same. Redis' own time is included.`;
  run.results.begin("tasks", { ...about, title: `Tasks: time per message, ${size}`, note });
  run.results.begin("tasks-processor", {
    ...about,
    title: "Tasks: time of the processor per message",
    note: "The same, all threads of the process and the server of Redis together.",
  });
  const server = await startRedisServer();
  const client = new Redis(server.port, "127.0.0.1");
  const serverUs = async (): Promise<number> => {
    const information = await client.info("cpu");
    const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(information)?.[1]);
    return (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1_000_000;
  };
  const none = async (): Promise<number> => 0;
  const open: Record<(typeof TASK_STORES)[number], (folder: string) => Promise<Place>> = {
    memory: async () => {
      const store = await run.library.openMemory({ maxBytes: 8 * 1024 ** 3 });
      return { store, othersUs: none, close: () => store.close() };
    },
    SQLite: async (folder) => {
      const store = await run.library.openSqlite({ path: join(folder, "queue.db"), durability: "normal" });
      return { store, othersUs: none, close: () => store.close() };
    },
    Redis: async () => {
      const store = await run.library.openRedis({ url: server.url });
      const close = async (): Promise<void> => {
        await store.close();
        await client.flushall();
      };
      return { store, othersUs: serverUs, close };
    },
  };
  const rounds = tasks * messagesPerTask > MANY_MESSAGES ? Math.min(ROUNDS_OF_MANY, run.settings.rounds) : run.settings.rounds;
  try {
    for (const name of TASK_STORES) for (const shape of SHAPES) await measureShape(run, name, open[name], shape, rounds);
  } finally {
    client.disconnect();
    await server.stop();
  }
}

/** The name of a measure. */
export function taskMeasure(store: string, shape: Shape, part: string): string {
  return `${store}, ${shape.name}: ${part}`;
}

async function measureShape(run: Run, name: string, open: (folder: string) => Promise<Place>, shape: Shape, rounds: number): Promise<void> {
  const { tasks, messagesPerTask } = run.settings;
  for (let round = 0; round <= rounds; round += 1) {
    // The first round only warms up, with fewer tasks.
    const size = { tasks: round === 0 ? Math.ceil(tasks / 4) : tasks, messagesPerTask };
    if (round === 0 && size.tasks * messagesPerTask > MANY_MESSAGES / 10) size.tasks = Math.ceil(MANY_MESSAGES / 10 / messagesPerTask);
    for (const contender of turns([WITHOUT, WITH], round)) {
      run.tell(`tasks, ${round === 0 ? "warming up" : `round ${round}`}: ${name}, ${shape.name}, ${contender}`);
      await run.inFolder(async (folder) => {
        const place = await open(folder);
        try {
          const othersBeforeUs = await place.othersUs();
          const before = process.cpuUsage();
          const { parts, ids } = await timeParts(place.store, shape, size, contender === WITH);
          const { user, system } = process.cpuUsage(before);
          const others = (await place.othersUs()) - othersBeforeUs;
          await checkEnded(place.store, ids, messagesPerTask);
          if (round === 0) return;
          const messages = size.tasks * messagesPerTask;
          for (const [part, ms] of Object.entries({ ...parts, [IN_ALL]: Object.values(parts).reduce((sum, each) => sum + each, 0) })) {
            run.results.record("tasks", taskMeasure(name, shape, part), contender, "us", (ms * 1_000) / messages);
          }
          const processorUs = (user + system + others) / messages;
          run.results.record("tasks-processor", taskMeasure(name, shape, IN_ALL), contender, "us", processorUs);
        } finally {
          await place.close();
        }
      });
    }
  }
}

interface Size {
  readonly tasks: number;
  readonly messagesPerTask: number;
}

/** What a round gives. */
interface Timed {
  /** Milliseconds of each part. */
  readonly parts: Readonly<Record<string, number>>;
  readonly ids: readonly TaskId[];
}

/** Stores all messages, takes and acks them; with tasks, these are made before or with them, and have ended after. */
async function timeParts(store: Backend, shape: Shape, size: Size, isWith: boolean): Promise<Timed> {
  const { callers, batch, isMadeWhole } = shape;
  const { tasks, messagesPerTask } = size;
  const total = tasks * messagesPerTask;
  await store.createQueue(QUEUE);
  const ids: TaskId[] = [];
  const producers: string[] = [];
  const parts = { enqueue: 0, "dequeue and ack": 0 };

  let begunMs = performance.now();
  if (isMadeWhole) {
    await inTurn(callers, tasks, async () => {
      const messages = Array.from({ length: messagesPerTask }, () => ({ data: PAYLOAD }));
      if (isWith) ids.push((await store.createTask({ type: "bench" }, [{ queue: QUEUE, messages }])).task.id);
      else await store.enqueue(QUEUE, messages);
    });
  } else {
    if (isWith) {
      await inTurn(PRODUCERS, tasks, async (index) => {
        const created = await store.createTask({ type: "bench", producer: { leaseMs: LEASE_MS } });
        ids[index] = created.task.id;
        if (created.outcome === "created") producers[index] = created.producer as string;
      });
    }
    await inTurn(callers, Math.ceil(total / batch), (call) => {
      const first = call * batch;
      const messages = Array.from({ length: Math.min(batch, total - first) }, (_, index): NewMessage => {
        return isWith ? { data: PAYLOAD, task: ids[(first + index) % tasks] as TaskId } : { data: PAYLOAD };
      });
      return store.enqueue(QUEUE, messages);
    });
    if (isWith) await inTurn(PRODUCERS, tasks, (index) => store.sealTask(ids[index] as TaskId, { producer: producers[index] as string }));
  }
  parts.enqueue = performance.now() - begunMs;

  begunMs = performance.now();
  let acked = 0;
  await inTurn(callers, Math.ceil(total / batch), async () => {
    const deliveries = await store.dequeue(QUEUE, { limit: batch, leaseMs: LEASE_MS });
    const answers = await store.ack(
      QUEUE,
      deliveries.map(({ receipt }) => ({ receipt })),
    );
    acked += answers.filter(({ outcome }) => outcome === "acked").length;
  });
  parts["dequeue and ack"] = performance.now() - begunMs;

  if (acked !== total) throw new Error(`${acked} of ${total} messages were acked`);
  return { parts, ids };
}

/** Every task is completed with its last message, or the figures are worth nothing. */
async function checkEnded(store: Backend, ids: readonly TaskId[], messages: number): Promise<void> {
  await inTurn(PRODUCERS, ids.length, async (index) => {
    const { id, status, progress } = await store.task(ids[index] as TaskId);
    if (status !== "completed" || progress.done !== messages) throw new Error(`${id} is ${status}, ${progress.done} done`);
  });
}

/** Lets callers make so many calls together, each one after the other. */
async function inTurn(callers: number, calls: number, call: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < calls) {
      const index = next;
      next += 1;
      await call(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(callers, calls) }, one));
}
