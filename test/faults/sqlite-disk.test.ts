/** A disk that is full, for real: a small file system of its own, mounted for each test. */

import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, type TestContext } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite, type SqliteOptions } from "../../src/backend/sqlite/index.ts";
import type { DeliveredMessage } from "../../src/core/message.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { childProcesses } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openRemote } from "./remote-store.ts";
import { untilStatus } from "./until.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUE = parseQueueName("jobs");
const MEBIBYTE = 1024 * 1024;
const DISK_BYTES = 12 * MEBIBYTE;
const BALLAST_BYTES = 4 * MEBIBYTE;

let folder: string;
let path: string;
let isMounted: boolean;
const opened: Backend[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-disk-"));
  path = join(folder, "queue.db");
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", folder], { stdio: "pipe" });
    isMounted = true;
  } catch {
    isMounted = false;
  }
});

afterEach(async () => {
  await children.end();
  await Promise.all(opened.splice(0).map((backend) => backend.close()));
  if (isMounted) execFileSync("umount", [folder]);
  rmdirSync(folder);
});

/** Only the superuser may mount; where that is not possible the test says so and is skipped. Root on Linux must be able to. */
function needDisk(context: TestContext, mebibytes?: number): void {
  if (!isMounted) context.skip("a file system of its own cannot be mounted here");
  if (mebibytes !== undefined) execFileSync("mount", ["-o", `remount,size=${mebibytes}m`, folder]);
}

function freeBytes(): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Another program's file that takes all that is left but `leave` bytes. */
function fillDisk(leave: number): void {
  const file = openSync(join(folder, "filler"), "a");
  try {
    while (freeBytes() > leave) writeSync(file, Buffer.alloc(Math.min(MEBIBYTE, Math.max(4_096, freeBytes() - leave)), 1));
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
  } finally {
    closeSync(file);
  }
}

function freeDisk(): void {
  rmSync(join(folder, "filler"));
}

/** Opens the store, and waits until its sweep has put the ballast in place that is given up for acks. */
async function openWith(options: Partial<SqliteOptions>): Promise<Backend> {
  const backend = await openSqlite({ path, sweepIntervalMs: 10, onError: () => {}, ...options });
  opened.push(backend);
  await backend.createQueue(QUEUE, { maxDeliveries: 0 });
  const ballastBytes = (): number => statSync(`${path}-ballast`, { throwIfNoEntry: false })?.size ?? 0;
  // Where there is room for it: it takes half of what is left.
  while (ballastBytes() < BALLAST_BYTES && freeBytes() > 2 * (BALLAST_BYTES - ballastBytes()))
    await new Promise((resolve) => setImmediate(resolve));
  return backend;
}

const message = (fill: number): { data: Uint8Array } => ({ data: new Uint8Array(4_000).fill(fill) });

async function expectSound(backend: Backend, status: { pending: number; processing: number }): Promise<void> {
  expect(await backend.status(QUEUE)).toEqual(status);
  expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
}

describe("a full disk", () => {
  it("can be had where the tests run as root on Linux", (context) => {
    if (process.platform !== "linux" || process.getuid?.() !== 0) context.skip("not root on Linux");
    expect(isMounted).toBe(true);
  });

  it("refuses messages as store-full, lets every other step go on, and takes messages again once there is room", async (context) => {
    needDisk(context);
    const backend = await openWith({ minFreeBytes: 0 });
    await backend.enqueue(
      QUEUE,
      Array.from({ length: 600 }, (_none, index) => message(index % 256)),
    );
    const held = await backend.dequeue(QUEUE, { limit: 400 });
    fillDisk(0);
    // Bits of room may be left in the file and its log; then there is none.
    let stored = 600;
    const refusal = await (async (): Promise<unknown> => {
      for (;;) {
        try {
          await backend.enqueue(QUEUE, [message(1)]);
          stored += 1;
        } catch (error) {
          return error;
        }
      }
    })();
    expect(refusal).toMatchObject({ code: "store-full", errno: "ENOSPC" });
    await expectSound(backend, { pending: stored - 400, processing: 400 });
    // One transaction each, far more log than the ballast has room for.
    for (const { receipt } of held.slice(0, 300)) expect(await backend.ack(QUEUE, [{ receipt }])).toMatchObject([{ outcome: "acked" }]);
    expect(
      await backend.nack(
        QUEUE,
        held.slice(300).map(({ receipt }) => ({ receipt, reason: "no room" })),
      ),
    ).toEqual(held.slice(300).map(() => "pending"));
    const [again] = await backend.dequeue(QUEUE);
    expect(again).toMatchObject({ id: (held[300] as DeliveredMessage).id, deliveryCount: 2 });
    await expectSound(backend, { pending: stored - 301, processing: 1 });
    freeDisk();
    expect(await backend.enqueue(QUEUE, [message(2)])).toMatchObject([{ outcome: "enqueued" }]);
  });

  it("is never reached: enqueue is refused below the floor, and acks go on", async (context) => {
    needDisk(context, 40);
    const backend = await openWith({ durability: "normal" });
    let stored = 0;
    const refusal = await (async (): Promise<unknown> => {
      for (;;) {
        try {
          await backend.enqueue(
            QUEUE,
            Array.from({ length: 50 }, () => message(1)),
          );
          stored += 50;
        } catch (error) {
          return error;
        }
      }
    })();
    expect(refusal).toMatchObject({ code: "store-full", message: expect.stringContaining("minFreeBytes") });
    // The floor of a disk this small is a twentieth of it; a checkpoint may go below, but not to the ground.
    expect(freeBytes()).toBeGreaterThan(0);
    let acked = 0;
    while (acked < stored) {
      const messages = await backend.dequeue(QUEUE, { limit: 500 });
      expect(messages.length).toBeGreaterThan(0);
      acked += (
        await backend.ack(
          QUEUE,
          messages.map(({ receipt }) => ({ receipt })),
        )
      ).length;
    }
    await expectSound(backend, { pending: 0, processing: 0 });
  });

  it("that others have filled is seen at the next enqueue, and so is the room they leave", async (context) => {
    needDisk(context);
    fillDisk(400 * 1024);
    const backend = await openWith({});
    await expect(backend.enqueue(QUEUE, [message(1)])).rejects.toMatchObject({ code: "store-full" });
    freeDisk();
    expect(await backend.enqueue(QUEUE, [message(1)])).toMatchObject([{ outcome: "enqueued" }]);
    await expectSound(backend, { pending: 1, processing: 0 });
  });

  it("survives the kill of a process that could not write any more", async (context) => {
    needDisk(context);
    const backend = await openWith({ minFreeBytes: 0 });
    await backend.enqueue(
      QUEUE,
      Array.from({ length: 20 }, () => message(1)),
    );
    const child = await children.start();
    const store = await openRemote(child, { kind: "sqlite", path, minFreeBytes: 0, sweepIntervalMs: 3_600_000 });
    const [taken] = await store.dequeue(QUEUE);
    fillDisk(0);
    await expect(
      store.enqueue(
        QUEUE,
        Array.from({ length: 500 }, () => message(2)),
      ),
    ).rejects.toMatchObject({ code: "store-full" });
    await child.kill();
    const [again] = await untilStatus(backend, QUEUE, ({ pending }) => pending === 20).then(() => backend.dequeue(QUEUE));
    expect(again).toMatchObject({ id: taken?.id, deliveryCount: 2 });
    await expectSound(backend, { pending: 19, processing: 1 });
    freeDisk();
    expect(await backend.enqueue(QUEUE, [message(2)])).toMatchObject([{ outcome: "enqueued" }]);
  });
});
