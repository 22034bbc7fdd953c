/**
 * Workers in processes of their own. Started by a test through child-process.ts, or, where a test needs a process that ends by itself, as a
 * program of its own: then its argument is the order and what it tells are lines of JSON on standard output.
 */

import type * as Library from "../../../src/index.ts";
import * as source from "../../../src/index.ts";
import { reportFault, serve, tell } from "../../support/child-process-main.ts";
import { perform } from "./handler.ts";
import type { StoreOrder, Told, WorkOrder } from "./order.ts";

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

let say: (told: Told) => void = tell;

async function open(order: StoreOrder): Promise<{ library: typeof Library; backend: Library.Backend }> {
  const library = order.library === undefined ? source : ((await import(/* @vite-ignore */ order.library)) as typeof Library);
  const { sweepIntervalMs } = order;
  const options = { onError: reportFault, ...(sweepIntervalMs === undefined ? {} : { sweepIntervalMs }) };
  return { library, backend: await library.openStore(order.location, options) };
}

interface Work {
  readonly worker: Library.Worker<string>;
  readonly backend: Library.Backend;
  readonly library: typeof Library;
}

async function begin(order: WorkOrder): Promise<Work> {
  const { library, backend } = await open(order);
  const { queue: name, leaseMs, library: _library, location: _location, sweepIntervalMs: _sweep, ...options } = order;
  const queue = new library.NamedQueue<string>(backend, name, { codec: library.textCodec, ...(leaseMs === undefined ? {} : { leaseMs }) });
  const tools = {
    gate,
    async enqueue(other: string) {
      await new library.NamedQueue<string>(backend, other, { codec: library.textCodec }).enqueue("done");
    },
  };
  const worker = new library.Worker(
    queue,
    async (text, context) => {
      say({ kind: "begun", text, id: context.id, deliveryCount: context.deliveryCount, atMs: nowMs() });
      await perform(text, context, tools);
    },
    {
      backoff: { firstMs: 5, maximumMs: 20 },
      // From the sources there is no thread to be had.
      keepLeasesWhileBusy: order.library !== undefined,
      onSettled: (outcome, id) => say({ kind: "settled", id, outcome, atMs: nowMs() }),
      onError: (error) => say({ kind: "error", text: library.errorText(error) }),
      ...options,
    },
  ).start();
  return { worker, backend, library };
}

let current: Work | undefined;
let openGate: () => void = () => {};
const gate = new Promise<void>((resolve) => {
  openGate = resolve;
});

const programs = {
  /** Starts a worker; answers when it runs. */
  async work(order: WorkOrder): Promise<void> {
    current = await begin(order);
  },

  /** Lets handlers go on that wait for it. */
  openGate: () => openGate(),

  /** Stops the worker and closes its store. */
  async stopWork(): Promise<Library.StopReport | undefined> {
    const report = await current?.worker.stop();
    await current?.backend.close();
    return report;
  },

  /** Opens the store and runs a worker on a queue, so many times one after the other. */
  async openWorkAndClose(order: WorkOrder, times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      const { worker, backend } = await begin(order);
      await worker.stop();
      await backend.close();
    }
  },

  /** Waits until a queue is complete; answers when that was. */
  async waitForQueue(order: StoreOrder, queue: string, rounds: number): Promise<number[]> {
    const { library, backend } = await open(order);
    const named = new library.NamedQueue<string>(backend, queue, { codec: library.textCodec });
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await named.enqueue("sleep 20");
      await named.waitComplete({ timeoutMs: 30_000 });
      times.push(nowMs());
    }
    await backend.close();
    return times;
  },

  /** The part of a core that a worker with nothing to do takes, over so many milliseconds. */
  async costOfIdling(order: WorkOrder, overMs: number): Promise<number> {
    const { worker, backend } = await begin(order);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const before = process.cpuUsage();
    const beganMs = nowMs();
    await new Promise((resolve) => setTimeout(resolve, overMs));
    const { user, system } = process.cpuUsage(before);
    const part = (user + system) / 1_000 / (nowMs() - beganMs);
    await worker.stop();
    await backend.close();
    return part;
  },

  /** Keeps a schedule for so long; answers how many instants that took in. */
  async keepSchedule(order: StoreOrder, queue: string, everyMs: number, forMs: number): Promise<void> {
    const { library, backend } = await open(order);
    const named = new library.NamedQueue<string>(backend, queue, { codec: library.textCodec });
    const repetition = await library.repeat(named, "tick", { everyMs }, (instant) => `done ${instant.getTime()}`, { onError: reportFault });
    await new Promise((resolve) => setTimeout(resolve, forMs));
    await repetition.stop();
    await backend.close();
  },
};

/** What a child of the worker tests can be asked. */
export type WorkerPrograms = typeof programs;

/** Works until a signal stops it, and leaves it to the process to end by itself, but for handlers that hold it (`exit`). */
async function workUntilSignalled(order: WorkOrder & { readonly exit?: boolean }): Promise<void> {
  say = (told) => void process.stdout.write(`${JSON.stringify(told)}\n`);
  const { exit = false, ...work } = order;
  const { worker, backend, library } = await begin(work);
  library.stopOnSignals(worker, {
    exit,
    async onStopped(report) {
      await backend.close();
      say({ kind: "stopped", ...report, atMs: nowMs() });
    },
  });
  say({ kind: "started" });
}

if (process.send === undefined) await workUntilSignalled(JSON.parse(process.argv[2] ?? "{}") as WorkOrder);
else serve(programs);
