/** The thread of lease-thread.ts: opens the store once it is needed, and renews what the main thread is too busy to renew. */

import { parentPort, workerData } from "node:worker_threads";
import type { Backend } from "../backend/contract.ts";
import { MAX_BATCH_ITEMS } from "../core/limits.ts";
import type { QueueName, Receipt } from "../core/names.ts";
import type { ThreadData, ThreadLease, ThreadMessage } from "./lease-thread.ts";

/** How often to look whether the main thread still turns, while leases are held, in milliseconds. */
const LOOK_MS = 20;
/** Part of a lease after which the main thread is late with renewing: it does so after a third. */
const LATE_PART = 0.36;
/** After so long without a turn of the main thread the store is opened, since that takes its time, in milliseconds. */
const BUSY_MS = 100;
/** After so long without need the store is closed again, in milliseconds. */
const IDLE_MS = 60_000;

interface Held extends ThreadLease {
  renewedMs: number;
}

const { reopening, beat } = workerData as ThreadData;
const lastBeat = new Float64Array(beat);
const held = new Map<Receipt, Held>();
let timer: ReturnType<typeof setInterval> | undefined;
let idle: ReturnType<typeof setTimeout> | undefined;
let backend: Promise<Backend> | undefined;
let renewing = false;

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** For how long the main thread has not turned, in milliseconds. */
function busyForMs(): number {
  return nowMs() - (lastBeat[0] as number);
}

// Loaded at once: for many modules that takes longer than a short lease lasts.
const library = import(reopening.module) as Promise<Record<string, (options: unknown) => Promise<Backend>>>;
library.then(
  () => parentPort?.postMessage("ready"),
  // Where it cannot be loaded, the store cannot be opened either: the main thread renews alone.
  () => process.exit(),
);

async function openBackend(): Promise<Backend> {
  const open = (await library)[reopening.exportName];
  if (open === undefined) throw new Error(`${reopening.module} has no ${reopening.exportName}`);
  return open(reopening.options);
}

async function closeBackend(): Promise<void> {
  const closing = backend;
  backend = undefined;
  try {
    await (await closing)?.close();
  } catch {
    // It never opened, or is gone: there is nothing to close.
  }
}

/** Leases that are late, of a main thread that has not turned for so long although it should have renewed them. */
function lateLeases(): Map<QueueName, Held[]> {
  const now = nowMs();
  const busyMs = busyForMs();
  const byQueue = new Map<QueueName, Held[]>();
  for (const lease of held.values()) {
    const lateMs = lease.leaseMs * LATE_PART;
    if (now - lease.renewedMs < lateMs || busyMs < lateMs / 2 || busyMs > lease.longestBusyMs) continue;
    const same = byQueue.get(lease.queue);
    if (same === undefined) byQueue.set(lease.queue, [lease]);
    else same.push(lease);
  }
  return byQueue;
}

async function renew(open: Backend, queue: QueueName, leases: readonly Held[]): Promise<void> {
  for (let start = 0; start < leases.length; start += MAX_BATCH_ITEMS) {
    const batch = leases.slice(start, start + MAX_BATCH_ITEMS);
    const now = nowMs();
    const answers = await open.extend(
      queue,
      batch.map(({ receipt, leaseMs }) => ({ receipt, leaseMs })),
    );
    for (const [index, lease] of batch.entries()) {
      if (answers[index] === "extended") lease.renewedMs = now;
      else held.delete(lease.receipt);
    }
  }
}

async function renewLate(): Promise<void> {
  if (renewing || busyForMs() < BUSY_MS) return;
  renewing = true;
  clearTimeout(idle);
  try {
    backend ??= openBackend();
    const open = await backend;
    const late = lateLeases();
    // The main thread meets the same trouble when it turns again, and tells; until then the next look tries anew.
    await Promise.allSettled([...late].map(([queue, leases]) => renew(open, queue, leases)));
  } catch {
    // It did not open: the next look tries anew.
    backend = undefined;
  } finally {
    renewing = false;
    idle = setTimeout(() => void closeBackend(), IDLE_MS);
    idle.unref();
  }
}

function look(): void {
  void renewLate();
  if (held.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

parentPort?.on("message", (message: ThreadMessage) => {
  if (message === "close") {
    clearInterval(timer);
    clearTimeout(idle);
    parentPort?.close();
    void closeBackend();
    return;
  }
  if ("drop" in message) {
    for (const receipt of message.drop) held.delete(receipt);
    return;
  }
  for (const lease of message.hold) held.set(lease.receipt, { ...lease, renewedMs: lease.sinceMs });
  timer ??= setInterval(look, LOOK_MS);
});
