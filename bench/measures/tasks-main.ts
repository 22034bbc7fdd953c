/**
 * One measurement of tasks, in a process of its own, so that no heap and no compiled code of another is measured with it: a million messages of
 * another contender change what a message costs by more than tasks do.
 */

import type { Backend } from "../../src/backend/contract.ts";
import type { NewMessage } from "../../src/core/message.ts";
import type { TaskId } from "../../src/core/names.ts";
import { PAYLOAD } from "../contender.ts";
import { QUEUE } from "../contenders/queuefs.ts";
import { loadBuiltLibrary } from "../library.ts";
import { openPlace, type Place } from "../stores.ts";
import type { Shape } from "./task-shapes.ts";

/** What the process is to do. */
export interface TasksTask {
  /** Where it warms up, and where it is measured. */
  readonly warmUp: Place;
  readonly place: Place;
  readonly shape: Shape;
  readonly size: Size;
  readonly isWith: boolean;
}

/** What it tells: when it is warm, `undefined`; at the end, its figures. */
export interface TasksFigures {
  /** Milliseconds of each part. */
  readonly parts: Readonly<Record<string, number>>;
  /** Time of the processor, all threads of the process, in microseconds. */
  readonly processorUs: number;
}

const LEASE_MS = 600_000;
/** Tasks that are opened and sealed at once. */
const PRODUCERS = 64;
/** Enough for the compiler. */
const WARM_UP_TASKS = 300;

/** How many there are. */
export interface Size {
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

const { warmUp, place, shape, size, isWith } = JSON.parse(process.argv[2] as string) as TasksTask;
const library = await loadBuiltLibrary();
const warm = await openPlace(library, warmUp);
await timeParts(warm, shape, { ...size, tasks: Math.min(WARM_UP_TASKS, size.tasks) }, isWith);
await warm.close();
const store = await openPlace(library, place);
globalThis.gc?.();
const told = new Promise((resolve) => process.once("message", resolve));
process.send?.("warm");
await told;
const before = process.cpuUsage();
const { parts, ids } = await timeParts(store, shape, size, isWith);
const { user, system } = process.cpuUsage(before);
await checkEnded(store, ids, size.messagesPerTask);
const figures: TasksFigures = { parts, processorUs: user + system };
process.send?.(figures);
await store.close();
process.disconnect();
