/** How soon somebody who waits for a queue to be complete hears of it, from the call of the last ack: in the same process, and in another one. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "../../src/backend/contract.ts";
import { PAYLOAD } from "../contender.ts";
import { QUEUE } from "../contenders/queuefs.ts";
import { quantile } from "../results.ts";
import type { Run } from "../settings.ts";
import { openPlace, STORES, type StoreName, startProcess, type Told, withStores } from "../stores.ts";

/** How long a wait is left alone until it surely waits, in milliseconds. */
const SETTLE_MS = 3;

/** The suite. */
export const WAITS_SUITE = "waits";
/** The measures. */
export const IN_PROCESS = "in the same process";
/** The other one. */
export const BETWEEN_PROCESSES = "in another process";

/** The name of a measure. */
export function waitOf(where: string, part: "p50" | "p99"): string {
  return `${where}, ${part}`;
}

/** Everything about waits. */
export async function runWaits(run: Run): Promise<void> {
  run.results.begin(WAITS_SUITE, {
    title: "Waits: from the call of the last ack to the return of who waits",
    base: "SQLite",
    order: STORES,
    note: "waitComplete on one queue whose last message is acked; the time of the ack itself is included. SQLite commits with normal.",
  });
  await withStores(run, async (stores) => {
    for (const name of STORES) {
      await run.inFolder(async (folder) => {
        const place = stores.newPlace(name, folder);
        const store = await openPlace(run.library, place);
        await store.createQueue(QUEUE);
        const other = name === "memory" ? undefined : startProcess<number>("wait-main.ts", place);
        try {
          await other?.next();
          for (let round = 0; round < run.settings.rounds; round += 1) {
            run.tell(`waits, round ${round + 1}: ${name}`);
            await record(run, name, IN_PROCESS, () => waitHere(run, store));
            if (other !== undefined) await record(run, name, BETWEEN_PROCESSES, () => waitThere(store, other));
          }
        } finally {
          other?.send("end");
          await other?.ended;
          await store.close();
        }
      });
    }
  });
}

async function record(run: Run, name: StoreName, where: string, wait: () => Promise<number>): Promise<void> {
  const times: number[] = [];
  while (times.length < run.settings.waits) times.push(await wait());
  for (const [part, quantileOf] of [["p50", 0.5] as const, ["p99", 0.99] as const]) {
    run.results.record(WAITS_SUITE, waitOf(where, part), name, "us", quantile(times, quantileOf) * 1_000);
  }
}

/** Takes one message, lets `begin` begin a wait, and acks. Answers when the ack was called, in milliseconds. */
async function ackOnceWaiting(store: Backend, begin: () => Promise<unknown>, now: () => number): Promise<number> {
  await store.enqueue(QUEUE, [{ data: PAYLOAD }]);
  const [delivery] = await store.dequeue(QUEUE);
  if (delivery === undefined) throw new Error("a message that was enqueued could not be taken");
  await begin();
  const ackedMs = now();
  await store.ack(QUEUE, [{ receipt: delivery.receipt }]);
  return ackedMs;
}

async function waitHere(run: Run, store: Backend): Promise<number> {
  let waited: Promise<number> | undefined;
  const begin = async (): Promise<void> => {
    waited = run.library.waitComplete(store, { queues: [QUEUE] }).then(() => performance.now());
    await sleep(SETTLE_MS);
  };
  const ackedMs = await ackOnceWaiting(store, begin, () => performance.now());
  return ((await waited) as number) - ackedMs;
}

/** The host's clock is the same in both processes. */
async function waitThere(store: Backend, other: Told<number>): Promise<number> {
  const begin = async (): Promise<void> => {
    other.send("wait");
    await other.next();
  };
  const ackedMs = await ackOnceWaiting(store, begin, () => Number(process.hrtime.bigint()) / 1_000_000);
  return (await other.next()) - ackedMs;
}
