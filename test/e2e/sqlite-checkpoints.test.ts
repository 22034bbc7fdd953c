/** Checkpoints on a second thread, which only the built package has: the log stays bounded, nothing is lost, and the process ends by itself. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { parseQueueName } from "../../src/core/names.ts";

const root = join(import.meta.dirname, "..", "..");
const built = pathToFileURL(join(root, "dist", "backend", "sqlite", "index.js")).href;
const JOBS = parseQueueName("jobs");
let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-checkpoints-"));
  path = join(folder, "queue.db");
});
afterEach(() => rm(folder, { recursive: true }));

/** Stores batches, printing how many messages are confirmed, and at the end the names of its threads. */
const PROGRAM = `
  import { readdirSync, readFileSync } from "node:fs";
  const { openSqlite } = await import(process.argv[1]);
  const store = await openSqlite({ path: process.argv[2], durability: "normal" });
  await store.createQueue("jobs");
  const data = new Uint8Array(1024);
  for (let batch = 1; batch <= Number(process.argv[3]); batch += 1) {
    await store.enqueue("jobs", Array.from({ length: 10 }, () => ({ data })));
    process.stdout.write(batch * 10 + "\\n");
  }
  const threads = readdirSync("/proc/self/task").map((id) => readFileSync("/proc/self/task/" + id + "/comm", "utf8").trim());
  process.stderr.write(threads.join());
  await store.close();
`;

function run(batches: number) {
  return spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, "--", built, path, String(batches)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

// One process alone may find the log all moved; where two write, it is so only while others are kept waiting.
test.for([1, 2])("the log stays bounded while %i processes write, and they end by themselves with the log taken in", async (count) => {
  let largest = 0;
  let errors = "";
  const ends = Array.from({ length: count }, () => {
    const child = run(2_500);
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.stdout.on("data", () => {
      void stat(`${path}-wal`).then(
        ({ size }) => {
          largest = Math.max(largest, size);
        },
        () => {},
      );
    });
    return once(child, "exit");
  });
  expect(await Promise.all(ends)).toEqual(ends.map(() => [0, null]));
  expect(largest).toBeGreaterThan(0);
  expect(largest).toBeLessThan(count * 24 * 1024 * 1024);
  expect(errors).not.toMatch(/Error|Warning/);
  await expect(stat(`${path}-wal`)).rejects.toMatchObject({ code: "ENOENT" });
  const store = await openSqlite({ path });
  expect(await store.status(JOBS)).toEqual({ pending: count * 25_000, processing: 0 });
  expect((await store.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
  await store.close();
});

test("a kill at any moment loses nothing that was confirmed", async () => {
  for (let round = 0; round < 4; round += 1) {
    await rm(path, { force: true });
    const child = run(1_000_000);
    let told = "";
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (chunk) => {
        told += chunk;
        // By then the thread is at work.
        if (told.split("\n").length > 2_200 + round * 97) resolve();
      });
    });
    child.kill("SIGKILL");
    await once(child, "close");
    const confirmed = Number(told.trimEnd().split("\n").at(-1));
    const store = await openSqlite({ path });
    const { pending } = await store.status(JOBS);
    expect(pending).toBeGreaterThanOrEqual(confirmed);
    expect(pending % 10).toBe(0);
    expect((await store.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
    await store.close();
    for (const suffix of ["-wal", "-shm", "-ballast"]) await rm(path + suffix, { force: true });
  }
});
