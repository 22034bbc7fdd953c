/**
 * Workers as programs of their own, from the built package: ended by signals, and kept busy so that only the second thread can renew their
 * leases.
 */

import { spawn } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { waitComplete } from "../../src/queue/index.ts";
import { redisStores, sqliteStores } from "../faults/store-kinds.ts";
import { openStore, type StoreSpec } from "../faults/store-spec.ts";
import { locationOf, type Told, type WorkOrder } from "../faults/worker-programs/order.ts";

const root = join(import.meta.dirname, "..", "..");
const QUEUE = parseQueueName("jobs");
const sweepIntervalMs = 50;

/** A worker's process. */
interface Program {
  readonly told: readonly Told[];
  /** Resolves when it has told something that is as wanted. */
  whenTold(isWanted: (told: Told) => boolean): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** How it ended and when, and what it wrote to standard error. */
  readonly ended: Promise<{ readonly how: number | NodeJS.Signals | null; readonly atMs: number; readonly errors: string }>;
}

const running = new Set<Program>();

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function start(order: WorkOrder & { readonly exit?: boolean }): Program {
  const program = join(root, "test", "faults", "worker-programs", "main.ts");
  const library = pathToFileURL(join(root, "dist", "index.js")).href;
  const child = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify({ ...order, library })], { cwd: root });
  const told: Told[] = [];
  const watchers = new Set<() => void>();
  let rest = "";
  let errors = "";
  let isOver = false;
  child.stdout.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    told.push(...lines.map((line) => JSON.parse(line) as Told));
    for (const look of [...watchers]) look();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const ended = new Promise<Awaited<Program["ended"]>>((resolve) => {
    let atMs = 0;
    child.once("exit", () => {
      atMs = nowMs();
    });
    child.once("close", (code, signal) => {
      isOver = true;
      running.delete(program_);
      resolve({ how: signal ?? code, atMs, errors });
      for (const look of [...watchers]) look();
    });
  });
  const program_: Program = {
    told,
    ended,
    whenTold: (isWanted) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const isThere = told.some(isWanted);
          if (!isThere && !isOver) return;
          watchers.delete(look);
          if (isThere) resolve();
          else reject(new Error(`the program ended before it told that: ${JSON.stringify(told)} ${errors}`));
        };
        watchers.add(look);
        look();
      }),
    signal: (name) => void child.kill(name),
  };
  running.add(program_);
  return program_;
}

const isBegun = ({ text, count = 1 }: { text: string; count?: number }) => {
  let seen = 0;
  return (told: Told): boolean => told.kind === "begun" && told.text.startsWith(text) && told.deliveryCount >= 1 && ++seen >= count;
};

describe.each([sqliteStores({ sweepIntervalMs }), redisStores({ sweepIntervalMs })])("on $name", (kind) => {
  let spec: StoreSpec;
  let store: Backend;

  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    spec = kind.fresh();
    store = await openStore(spec, () => {});
    await store.createQueue(QUEUE);
  });
  afterEach(async () => {
    const left = [...running];
    for (const program of left) program.signal("SIGKILL");
    await Promise.all(left.map((program) => program.ended));
    await store.close();
  });

  const order = (more: Partial<WorkOrder> = {}): WorkOrder => ({
    location: locationOf(spec),
    queue: QUEUE,
    sweepIntervalMs,
    pollIntervalMs: 60_000,
    ...more,
  });
  const enqueue = (...texts: string[]): Promise<unknown> =>
    store.enqueue(
      QUEUE,
      texts.map((text) => ({ data: new TextEncoder().encode(text) })),
    );
  const begun = (program: Program): string[] =>
    program.told.flatMap((told) => (told.kind === "begun" ? [`${told.text} #${told.deliveryCount}`] : []));

  it.each([
    { handlers: "hang for nothing", hang: "hang", exit: false },
    { handlers: "hang and hold the process", hang: "hang-alive", exit: true },
  ])("SIGTERM: two handlers end, two $handlers: released before the process ends, by itself and in time (C18)", async ({ hang, exit }) => {
    const graceMs = 1_000;
    const program = start({ ...order({ concurrency: 4, prefetch: 4, graceMs }), exit });
    await enqueue("sleep 600; enqueue others", hang, "sleep 600", hang, "after", "after");
    await program.whenTold(isBegun({ text: hang, count: 2 }));
    await program.whenTold(isBegun({ text: "sleep", count: 2 }));
    const signalledMs = nowMs();
    program.signal("SIGTERM");
    await program.whenTold(({ kind }) => kind === "settled");
    program.signal("SIGTERM");
    program.signal("SIGINT");
    const { how, atMs, errors } = await program.ended;
    // Before any lease could have ended: the default is half a minute.
    expect(await store.status(QUEUE)).toEqual({ pending: 4, processing: 0 });
    expect({ how, errors }).toEqual({ how: 0, errors: "" });
    expect(atMs - signalledMs).toBeLessThan(graceMs + 2_000);
    expect(program.told.filter(({ kind }) => kind === "settled")).toMatchObject([{ outcome: "done" }, { outcome: "done" }]);
    expect(program.told.find(({ kind }) => kind === "stopped")).toMatchObject({ finished: 2, released: 2 });
    expect(begun(program)).toHaveLength(4);
    expect(await store.status(parseQueueName("others"))).toEqual({ pending: 1, processing: 0 });
    // The deliveries that were cut off do not count.
    expect((await store.dequeue(QUEUE, { limit: 4 })).map(({ deliveryCount }) => deliveryCount)).toEqual([1, 1, 1, 1]);
  });

  it("an idle worker that gets a signal ends at once", async () => {
    const program = start(order());
    await enqueue("done");
    await program.whenTold(({ kind }) => kind === "settled");
    const signalledMs = nowMs();
    program.signal("SIGINT");
    const { how, atMs } = await program.ended;
    expect(how).toBe(0);
    expect(atMs - signalledMs).toBeLessThan(1_000);
  });

  it("a handler that keeps the event loop busy for three leases: the second thread renews, one delivery (C15)", async () => {
    const leaseMs = 2_000;
    const programs = [start(order({ leaseMs })), start(order({ leaseMs }))];
    await Promise.all(programs.map((program) => program.whenTold(({ kind }) => kind === "started")));
    await enqueue("burn 6000");
    await waitComplete(store, { queues: [QUEUE] }, { timeoutMs: 60_000 });
    await Promise.race(programs.map((program) => program.whenTold(({ kind }) => kind === "settled")));
    expect(programs.flatMap(begun)).toEqual(["burn 6000 #1"]);
    expect(await store.statistics(QUEUE)).toMatchObject({ delivered: 1, acked: 1, returned: 0 });
    for (const program of programs) program.signal("SIGTERM");
    expect(await Promise.all(programs.map(({ ended }) => ended))).toMatchObject(programs.map(() => ({ how: 0, errors: "" })));
  });

  it("one that keeps it busy for longer than a handler may take counts as hung: its message is let go of, and another worker does it", async () => {
    const limits = { leaseMs: 1_000, handlerTimeoutMs: 1_000, graceMs: 0 };
    const programs = [start(order(limits)), start(order(limits))];
    await Promise.all(programs.map((program) => program.whenTold(({ kind }) => kind === "started")));
    await enqueue("first burn 3000");
    await waitComplete(store, { queues: [QUEUE] }, { timeoutMs: 60_000 });
    await Promise.all(programs.map((program) => program.whenTold(({ kind }) => kind === "settled")));
    expect(programs.flatMap(begun).toSorted()).toEqual(["first burn 3000 #1", "first burn 3000 #2"]);
    const outcomes = programs.flatMap(({ told }) => told.flatMap((one) => (one.kind === "settled" ? [one.outcome] : [])));
    expect(outcomes.toSorted()).toEqual(["done", "lost"]);
  });
});
