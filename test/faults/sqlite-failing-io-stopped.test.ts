/**
 * A process that stands still (SIGSTOP) inside a call of the C library, in the middle of QueueFS's own transaction: at the first and a later
 * write of a commit, at its sync, and inside a checkpoint.
 */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type Child, childProcesses } from "../support/child-process.ts";
import { buildFileCalls, type CallKind, FileCallControl, prepareFileCalls } from "./sqlite-io/file-calls.ts";
import type { FileCallPrograms } from "./sqlite-io/programs.ts";

const children = childProcesses<FileCallPrograms>("test/faults/sqlite-io/programs.ts");
const QUEUE = parseQueueName("jobs");
const BUSY_TIMEOUT_MS = 300;
let folder: string;
let library: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-stopped-"));
  library = buildFileCalls(folder);
});

afterEach(() => children.end());
afterAll(() => rmSync(folder, { recursive: true }));

/** Resolves when the process stands still, of which nothing tells but its state (T, the third field of proc(5)). */
async function untilStopped(child: Child<FileCallPrograms>): Promise<void> {
  for (;;) {
    const state = (await readFile(`/proc/${child.processId}/stat`, "latin1")).replace(/^.*\) /s, "")[0];
    if (state === "T") return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function open(): Promise<{
  path: string;
  child: Child<FileCallPrograms>;
  control: FileCallControl;
  stop(kind: CallKind, number: number): void;
}> {
  const place = mkdtempSync(join(folder, "run-"));
  mkdirSync(join(place, "counted"));
  const { environment } = prepareFileCalls(library, join(place, "counted"), place);
  const control = new FileCallControl(join(place, "control"));
  const child = await children.start({ environment });
  const stop = (kind: CallKind, number: number): void => control.arm({ kind, action: "stop", number, sticky: false });
  return { path: join(place, "counted", "queue.db"), child, control, stop };
}

/** Counts the turns of this process's event loop until it is asked. */
function countTurns(): { turns(): number } {
  let count = 0;
  let isCounting = true;
  const turn = (): void => {
    count += 1;
    if (isCounting) setImmediate(turn);
  };
  turn();
  return {
    turns() {
      isCounting = false;
      return count;
    },
  };
}

const message = (fill: number) => ({ data: new Uint8Array(5_000).fill(fill) });

describe("a process stopped inside its transaction", () => {
  describe.each([
    ["the first write of its commit", "write", 1],
    ["a later write of its commit", "write", 5],
    ["the sync of its commit", "sync", 1],
  ] as const)("at %s", (_what, kind, number) => {
    it.each(["SIGCONT", "SIGKILL"] as const)("makes others busy, keeps no reader waiting, and all goes on after %s", async (signal) => {
      const { path, child, control, stop } = await open();
      const backend = await openSqlite({ path, busyTimeoutMs: BUSY_TIMEOUT_MS, sweepIntervalMs: 3_600_000 });
      await backend.createQueue(QUEUE);
      await backend.enqueue(QUEUE, [message(1)]);
      await child.call("openHeld", path);
      stop(kind, number);
      const held = child.call("enqueueHeld", QUEUE, 5_000).then(
        () => "answered" as const,
        () => "died" as const,
      );
      await untilStopped(child);
      const loop = countTurns();
      await expect(backend.enqueue(QUEUE, [message(2)])).rejects.toMatchObject({ code: "store-busy", retryable: true });
      await expect(backend.dequeue(QUEUE)).rejects.toMatchObject({ code: "store-busy", retryable: true });
      expect(await backend.status(QUEUE)).toEqual({ pending: 1, processing: 0 });
      expect((await backend.messages(QUEUE)).items.map(({ data }) => data[0])).toEqual([1]);
      // Waiting is done outside SQLite. A loop that waited inside would have turned a few times only.
      expect(loop.turns()).toBeGreaterThan(50);
      child.signal(signal);
      expect(await held).toBe(signal === "SIGCONT" ? "answered" : "died");
      expect(await backend.enqueue(QUEUE, [message(3)])).toMatchObject([{ outcome: "enqueued" }]);
      const fills = (await backend.dequeue(QUEUE, { limit: 10 })).map(({ data }) => data[0]);
      // What a process was killed in the middle of had not been answered; the commit is not in the shared index, so it did not happen.
      expect(fills).toEqual(signal === "SIGCONT" ? [1, 9, 3] : [1, 3]);
      expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
      await backend.close();
      control.close();
    });
  });

  it.each(["SIGCONT", "SIGKILL"] as const)("inside a checkpoint it keeps nobody waiting, and all goes on after %s", async (signal) => {
    const { path, child, control, stop } = await open();
    const backend = await openSqlite({ path, busyTimeoutMs: BUSY_TIMEOUT_MS, sweepIntervalMs: 3_600_000 });
    await backend.createQueue(QUEUE);
    await backend.enqueue(QUEUE, [message(1), message(2)]);
    await child.call("openHeld", path);
    // The third write goes into the file, the log being synced first.
    stop("write", 3);
    const checkpointing = child.call("checkpointOnce", path).then(
      () => "answered" as const,
      () => "died" as const,
    );
    await untilStopped(child);
    expect(await backend.enqueue(QUEUE, [message(3)])).toMatchObject([{ outcome: "enqueued" }]);
    expect((await backend.dequeue(QUEUE, { limit: 10 })).map(({ data }) => data[0])).toEqual([1, 2, 3]);
    child.signal(signal);
    expect(await checkpointing).toBe(signal === "SIGCONT" ? "answered" : "died");
    expect(await backend.status(QUEUE)).toEqual({ pending: 0, processing: 3 });
    expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
    await backend.close();
    control.close();
  });
});
