/** The checks are held to backends that are broken on purpose: each must be caught, and the real ones must not. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openMemory } from "../../src/backend/memory/index.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { BROKEN } from "./proof/broken-backends.ts";
import { check } from "./proof/check/check.ts";
import { PROPERTIES, STRICT_PROMISES } from "./proof/check/promises.ts";
import { describeReport } from "./proof/describe.ts";
import { runInProcess } from "./proof/in-process.ts";

const FIRST_SEED = 7;
/** Which calls meet is decided by the machine too, not only by the seed: what one run does not show another does. */
const MOST_RUNS = 10;
const optionsOf = (seed: number) => ({ seed, operations: 4_000, lanes: 8, drainMs: 3_000 });

describe("histories of real backends", () => {
  it("are legal: memory", async () => {
    const untold = new Set<string>(PROPERTIES);
    for (let run = 0; run < MOST_RUNS && untold.size > 0; run += 1) {
      const backend = await openMemory({ sweepIntervalMs: 20 });
      const report = check(await runInProcess(backend, optionsOf(FIRST_SEED + run)), STRICT_PROMISES);
      await backend.close();
      expect(describeReport(report)).toBe("");
      for (const [property, { telling }] of Object.entries(report.tallies)) if (telling > 0) untold.delete(property);
    }
    expect([...untold], "properties of which no look could tell anything").toEqual([]);
  });

  it("are legal: sqlite", async () => {
    const folder = await mkdtemp(join(tmpdir(), "queuefs-proof-"));
    const backend = await openSqlite({ path: join(folder, "queue.db"), durability: "normal", sweepIntervalMs: 20 });
    const report = check(await runInProcess(backend, optionsOf(FIRST_SEED)), STRICT_PROMISES);
    await backend.close();
    await rm(folder, { recursive: true });
    expect(describeReport(report)).toBe("");
  });
});

describe("backends broken on purpose", () => {
  it.each(BROKEN)("$name: caught by $caughtBy", async ({ caughtBy, wrap }) => {
    const found = new Set<string>();
    for (let run = 0; run < MOST_RUNS && !caughtBy.every((property) => found.has(property)); run += 1) {
      const backend = await openMemory({ sweepIntervalMs: 20 });
      const report = check(await runInProcess(wrap(backend), optionsOf(FIRST_SEED + run)), STRICT_PROMISES);
      await backend.close();
      for (const [property, { violations }] of Object.entries(report.tallies)) if (violations > 0) found.add(property);
      for (const { proof, property } of report.violations) expect(proof.length, property).toBeGreaterThan(0);
    }
    expect([...found]).toEqual(expect.arrayContaining([...caughtBy]));
  });
});
