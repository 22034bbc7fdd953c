/** What a call costs when the queue is deep: a status by messages in it, an ack, nack and extend by messages in processing. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Backend } from "../../src/backend/contract.ts";
import type { QueueName, Receipt } from "../../src/core/names.ts";
import type { Contender, Contest } from "../contender.ts";
import { fillQueue, QUEUE } from "../contenders/queuefs.ts";
import { median } from "../results.ts";
import type { Run } from "../settings.ts";

/** Calls of one state before the next has its turn, and turns of each in a round. */
const CALLS = 25;
const TURNS = 8;
/** A call that takes longer is made once in a turn, in microseconds. */
const SLOW_US = 2_000;
/** Messages in processing, few and many. */
export const HELD: readonly [number, number] = [10, 100_000];
const CLAIM = 1_000;
const LEASE_MS = 600_000;
/** Queues of a snapshot. */
const QUEUES = 100;
/** Messages in each of them, few and many. */
export const MESSAGES_EACH: readonly [number, number] = [10, 1_000];

/** How long a call took. */
export async function microseconds(call: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await call();
  return (performance.now() - begun) * 1_000;
}

/** One of several states whose calls are compared. */
export interface Timed {
  /** The table, if it is not that of the others. */
  readonly suite?: string;
  /** The name of the measure. */
  readonly measure: string;
  /** Makes the call that is timed, and answers how long it took in microseconds. */
  readonly time: () => Promise<number>;
}

/** Times the calls of several states that are open at the same time, a few at a time in turns, so that what else the machine does meets all. */
export async function timeInTurns(run: Run, suite: string, contender: string, states: readonly Timed[]): Promise<void> {
  for (let round = 0; round < run.settings.rounds; round += 1) {
    const times = new Map(states.map((state) => [state, [] as number[]]));
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (const state of states) {
        for (let index = 0, took = 0; index < CALLS && took < SLOW_US; index += 1) {
          took = await state.time();
          times.get(state)?.push(took);
        }
      }
    }
    for (const [state, values] of times) run.results.record(state.suite ?? suite, state.measure, contender, "us", median(values));
  }
}

/** Reads the status at each depth. */
export async function measureStatus(run: Run, suite: string, contenders: readonly Contender[], depths: readonly number[]): Promise<void> {
  for (const contender of contenders) {
    await run.inFolder(async (folder) => {
      const contests: Contest[] = [];
      try {
        const states: Timed[] = [];
        for (const depth of depths) {
          run.tell(`${suite}: status at ${depth}, ${contender.name}`);
          const contest = await contender.open(makeFolder(folder, depth));
          contests.push(contest);
          await contest.fill(depth);
          states.push({ measure: statusAt(depth), time: () => microseconds(() => contest.status()) });
        }
        await timeInTurns(run, suite, contender.name, states);
      } finally {
        for (const contest of contests) await contest.close();
      }
    });
  }
}

/** The name of the measure. */
export function statusAt(depth: number): string {
  return `status at ${depth.toLocaleString("en")}`;
}

/** How a store is opened for these measures. */
export type OpenStore = (folder: string) => Promise<Backend>;

/** Opens a store for each state, makes the state, and times its calls. */
async function withStates(
  run: Run,
  open: OpenStore,
  states: readonly number[],
  prepare: (store: Backend, state: number) => Promise<Timed[]>,
  use: (timed: readonly Timed[]) => Promise<void>,
): Promise<void> {
  await run.inFolder(async (folder) => {
    const stores: Backend[] = [];
    try {
      const timed: Timed[][] = [];
      for (const state of states) {
        const store = await open(makeFolder(folder, state));
        stores.push(store);
        timed.push(await prepare(store, state));
      }
      await use(timed.flat());
    } finally {
      for (const store of stores) await store.close();
    }
  });
}

function makeFolder(parent: string, state: number): string {
  const folder = join(parent, String(state));
  mkdirSync(folder);
  return folder;
}

/** Ways to settle or renew a delivery, with the cost of each by messages in processing. */
export const SETTLINGS = ["ack", "nack", "extend"] as const;

/** Measures acks, nacks and extensions with few and with many messages in processing. */
export async function measureHeld(run: Run, suite: string, contender: string, open: OpenStore): Promise<void> {
  run.tell(`${suite}: settling with few and with many in processing, ${contender}`);
  const prepare = async (store: Backend, held: number): Promise<Timed[]> => {
    // The same few messages are given back again and again: none of them is to be given up.
    await store.createQueue(QUEUE, { maxDeliveries: 0 });
    const receipts = await hold(store, held);
    return SETTLINGS.map((settling) => ({ measure: settlingAt(settling, held), time: () => settle(store, settling, receipts) }));
  };
  await withStates(run, open, HELD, prepare, (timed) => timeInTurns(run, suite, contender, timed));
}

/** The name of the measure. */
export function settlingAt(settling: (typeof SETTLINGS)[number], held: number): string {
  return `${settling}, ${held.toLocaleString("en")} in processing`;
}

async function hold(store: Backend, count: number): Promise<Receipt[]> {
  await fillQueue(store, QUEUE, count);
  const receipts: Receipt[] = [];
  while (receipts.length < count) {
    const deliveries = await store.dequeue(QUEUE, { limit: Math.min(CLAIM, count - receipts.length), leaseMs: LEASE_MS });
    for (const { receipt } of deliveries) receipts.push(receipt);
  }
  return receipts;
}

let place = 0;

/** Times one call; then the number in processing is made what it was. */
async function settle(store: Backend, settling: (typeof SETTLINGS)[number], receipts: Receipt[]): Promise<number> {
  // Neither the newest nor the oldest ones only.
  place = (place + 7_919) % receipts.length;
  const receipt = receipts[place] as Receipt;
  if (settling === "extend") return microseconds(() => store.extend(QUEUE, [{ receipt, leaseMs: LEASE_MS }]));
  const time = await microseconds(() => (settling === "ack" ? store.ack(QUEUE, [{ receipt }]) : store.nack(QUEUE, [{ receipt }])));
  if (settling === "ack") await fillQueue(store, QUEUE, 1);
  const [delivery] = await store.dequeue(QUEUE, { leaseMs: LEASE_MS });
  receipts[place] = (delivery as { readonly receipt: Receipt }).receipt;
  return time;
}

/** Reads one snapshot of a hundred queues, with few and with many messages in each. */
export async function measureSnapshot(run: Run, suite: string, contender: string, open: OpenStore): Promise<void> {
  run.tell(`${suite}: snapshots of ${QUEUES} queues, ${contender}`);
  const queues = Array.from({ length: QUEUES }, (_, index) => `bench/queue-${index}` as QueueName);
  const prepare = async (store: Backend, messages: number): Promise<Timed[]> => {
    await Promise.all(queues.map((queue) => store.createQueue(queue)));
    for (const queue of queues) await fillQueue(store, queue, messages);
    return [{ measure: snapshotOf(messages), time: () => microseconds(() => store.statuses({ queues })) }];
  };
  await withStates(run, open, MESSAGES_EACH, prepare, (timed) => timeInTurns(run, suite, contender, timed));
}

/** The name of the measure. */
export function snapshotOf(messages: number): string {
  return `${QUEUES} queues, ${messages.toLocaleString("en")} messages each`;
}
