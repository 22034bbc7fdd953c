/** QueueFS on each store while one thing grows: messages in the queue, callers at once, bytes of a message. */

import { Load } from "../contender.ts";
import { contestOf, fillQueue, QUEUE } from "../contenders/queuefs.ts";
import type { Suite } from "../results.ts";
import { type Run, turns } from "../settings.ts";
import { STORES, type StoreName, type Stores, withStores } from "../stores.ts";
import { microseconds, type Timed, timeInTurns } from "./depth.ts";

/** Callers at once in the sweep of payloads. */
const PAYLOAD_CALLERS = 16;
/** Bytes of each message in the sweep of depths, where millions of them are there at once. */
const DEPTH_PAYLOAD = Buffer.alloc(64, "queue ");
const WARM_UP = 0.25;

/** The calls whose cost by depth is measured, with the suites they make. */
export const DEPTH_SUITES = { status: "depth-status", enqueue: "depth-enqueue", "dequeue and ack": "depth-take" } as const;
/** What a caller's rate is by number of callers, and by bytes of a message. */
export const CALLERS_SUITE = "callers";
/** The other one. */
export const PAYLOAD_SUITE = "payload";

/** The name of a row. */
export function rowOf(value: number): string {
  return value.toLocaleString("en");
}

/** What the sweeps of one thing have in common. */
function about(values: readonly number[], x: string, y: string): Pick<Suite, "base" | "baseMeasure" | "order" | "plot"> {
  return {
    base: STORES[0],
    baseMeasure: rowOf(values[0] as number),
    order: STORES,
    plot: { kind: "lines", x, y, at: Object.fromEntries(values.map((value) => [rowOf(value), value])) },
  };
}

/** Costs by messages in the queue. */
export async function runDepths(run: Run): Promise<void> {
  const { depths } = run.settings;
  for (const [call, suite] of Object.entries(DEPTH_SUITES)) {
    run.results.begin(suite, {
      ...about(depths, "messages in the queue", "microseconds"),
      title: `Depth: ${call}, by messages in the queue`,
      note: `Microseconds until the answer of one call after the other, the median; messages of ${DEPTH_PAYLOAD.length} bytes. SQLite commits with normal.`,
    });
  }
  await withStores(run, async (stores) => {
    for (const store of STORES) {
      await run.inFolder((folder) => measureDepths(run, stores, store, folder));
      await stores.clear();
    }
  });
}

/** All depths of one store are open at the same time and take turns. */
async function measureDepths(run: Run, stores: Stores, name: StoreName, folder: string): Promise<void> {
  const message = [{ data: DEPTH_PAYLOAD }];
  const opened = [];
  try {
    const states: Timed[] = [];
    for (const depth of run.settings.depths) {
      run.tell(`depth: filling ${name} with ${rowOf(depth)} messages`);
      const store = await stores.open(name, folder);
      opened.push(store);
      await store.createQueue(QUEUE);
      await fillQueue(store, QUEUE, depth, DEPTH_PAYLOAD);
      const enqueue = async (): Promise<void> => {
        await store.enqueue(QUEUE, message);
      };
      const take = async (): Promise<void> => {
        for (const { receipt } of await store.dequeue(QUEUE)) await store.ack(QUEUE, [{ receipt }]);
      };
      const measure = rowOf(depth);
      states.push({ suite: DEPTH_SUITES.status, measure, time: () => microseconds(() => store.status(QUEUE)) });
      states.push({
        suite: DEPTH_SUITES.enqueue,
        measure,
        time: async () => {
          const time = await microseconds(enqueue);
          await take();
          return time;
        },
      });
      states.push({
        suite: DEPTH_SUITES["dequeue and ack"],
        measure,
        time: async () => {
          await enqueue();
          return microseconds(take);
        },
      });
    }
    run.tell(`depth: ${name}`);
    await timeInTurns(run, DEPTH_SUITES.status, name, states);
  } finally {
    for (const store of opened) await store.close();
  }
}

/** Cycles by callers at once. */
export async function runCallersSweep(run: Run): Promise<void> {
  const { callers } = run.settings;
  run.results.begin(CALLERS_SUITE, {
    ...about(callers, "callers at once", "cycles per second"),
    title: "Callers: cycles per second, by callers at once",
    note: "Each caller enqueues, dequeues and acks one message after the other. SQLite commits with normal.",
  });
  await sweepCycles(run, CALLERS_SUITE, callers, (count) => ({ callers: count, data: undefined }));
}

/** Cycles by bytes of a message. */
export async function runPayloads(run: Run): Promise<void> {
  const { payloadBytes } = run.settings;
  run.results.begin(PAYLOAD_SUITE, {
    ...about(payloadBytes, "bytes of a message", "cycles per second"),
    title: "Payload: cycles per second, by bytes of a message",
    note: `${PAYLOAD_CALLERS} callers at once. SQLite commits with normal.`,
  });
  await sweepCycles(run, PAYLOAD_SUITE, payloadBytes, (bytes) => ({ callers: PAYLOAD_CALLERS, data: Buffer.alloc(bytes, "queue ") }));
}

/** What is different at a value. */
interface Variant {
  readonly callers: number;
  /** Absent: the usual payload. */
  readonly data: Buffer | undefined;
}

/** Measures cycles at each value; stores and values take turns, each time with a fresh store. */
async function sweepCycles(run: Run, suite: string, values: readonly number[], variantOf: (value: number) => Variant): Promise<void> {
  const { rounds, windowMs } = run.settings;
  await withStores(run, async (stores) => {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of turns(STORES, round)) {
        for (const value of values) {
          run.tell(`${suite}, round ${round + 1}: ${rowOf(value)}, ${name}`);
          const { callers, data } = variantOf(value);
          await run.inFolder(async (folder) => {
            const contest = await contestOf(await stores.open(name, folder), data);
            try {
              await contest.cycle(new Load(callers, { durationMs: windowMs * WARM_UP }));
              const load = new Load(callers, { durationMs: windowMs });
              await contest.cycle(load);
              run.results.record(suite, rowOf(value), name, "/s", load.perSecond);
            } finally {
              await contest.close();
            }
          });
          await stores.clear();
        }
      }
    }
  });
}
