/** The thread of lease-thread.ts: opens the store once it is needed, and renews what the main thread is too busy to renew. */

import { parentPort, workerData } from "node:worker_threads";
import type { Backend } from "../backend/contract.ts";
import type { QueueName, Receipt } from "../core/names.ts";
import type { ThreadData, ThreadLease, ThreadMessage } from "./lease-thread.ts";

/** How often to look whether the main thread still turns, in milliseconds. */
const LOOK_MS = 20;
/** Part of a lease after which the main thread is late with renewing: it renews after a third. */
const LATE_PART = 0.45;

interface Held extends ThreadLease {
  renewedMs: number;
}

const { reopening, beat } = workerData as ThreadData;
const lastBeat = new Float64Array(beat);
const held = new Map<Receipt, Held>();
let backend: Promise<Backend> | undefined;
let renewing = false;

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function openBackend(): Promise<Backend> {
  const module = (await import(reopening.module)) as Record<string, (options: unknown) => Promise<Backend>>;
  const open = module[reopening.exportName];
  if (open === undefined) throw new Error(`${reopening.module} has no ${reopening.exportName}`);
  return open(reopening.options);
}

/** Leases that are late, of a main thread that has not turned since it should have renewed them. */
function lateLeases(): Map<QueueName, Held[]> {
  const now = nowMs();
  const byQueue = new Map<QueueName, Held[]>();
  for (const lease of held.values()) {
    if (lease.untilMs <= now) {
      held.delete(lease.receipt);
      continue;
    }
    const lateMs = lease.leaseMs * LATE_PART;
    if (now - lease.renewedMs < lateMs || now - (lastBeat[0] ?? now) < lateMs / 2) continue;
    const same = byQueue.get(lease.queue);
    if (same === undefined) byQueue.set(lease.queue, [lease]);
    else same.push(lease);
  }
  return byQueue;
}

async function renewLate(): Promise<void> {
  const late = lateLeases();
  if (late.size === 0 || renewing) return;
  renewing = true;
  try {
    backend ??= openBackend();
    const open = await backend;
    for (const [queue, leases] of late) {
      const now = nowMs();
      const answers = await open.extend(
        queue,
        leases.map(({ receipt, leaseMs }) => ({ receipt, leaseMs })),
      );
      for (const [index, lease] of leases.entries()) {
        if (answers[index] === "extended") lease.renewedMs = now;
        else held.delete(lease.receipt);
      }
    }
  } catch {
    // The main thread meets the same trouble when it turns again, and tells; until then the next look tries anew.
    backend = undefined;
  } finally {
    renewing = false;
  }
}

async function closeBackend(): Promise<void> {
  try {
    await (await backend)?.close();
  } catch {
    // It never opened, or is gone: there is nothing to close.
  }
}

const timer = setInterval(() => void renewLate(), LOOK_MS);
parentPort?.on("message", (message: ThreadMessage) => {
  if (message === "close") {
    clearInterval(timer);
    parentPort?.close();
    void closeBackend();
    return;
  }
  if ("drop" in message) for (const receipt of message.drop) held.delete(receipt);
  else for (const lease of message.hold) held.set(lease.receipt, { ...lease, renewedMs: lease.sinceMs });
});
