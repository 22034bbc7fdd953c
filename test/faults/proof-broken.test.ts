/** The checks are held to backends that are broken on purpose: each must be caught, and the real ones must not. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openMemory } from "../../src/backend/memory/index.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { BROKEN } from "./proof/broken-backends.ts";
import { check } from "./proof/check/check.ts";
import { STRICT_PROMISES } from "./proof/check/promises.ts";
import { describeReport } from "./proof/describe.ts";
import { runInProcess } from "./proof/in-process.ts";

const SEED = 7;
const OPTIONS = { seed: SEED, operations: 4_000, lanes: 8, drainMs: 3_000 };

describe("histories of real backends", () => {
  it("are legal: memory", async () => {
    const backend = await openMemory({ sweepIntervalMs: 20 });
    const report = check(await runInProcess(backend, OPTIONS), STRICT_PROMISES);
    await backend.close();
    expect(describeReport(report)).toBe("");
    for (const [property, { telling }] of Object.entries(report.tallies))
      expect(telling, `looks at ${property} that tell`).toBeGreaterThan(0);
  });

  it("are legal: sqlite", async () => {
    const folder = await mkdtemp(join(tmpdir(), "queuefs-proof-"));
    const backend = await openSqlite({ path: join(folder, "queue.db"), durability: "normal", sweepIntervalMs: 20 });
    const report = check(await runInProcess(backend, OPTIONS), STRICT_PROMISES);
    await backend.close();
    await rm(folder, { recursive: true });
    expect(describeReport(report)).toBe("");
  });
});

describe("backends broken on purpose", () => {
  it.each(BROKEN)("$name: caught by $caughtBy", async ({ caughtBy, wrap }) => {
    const backend = await openMemory({ sweepIntervalMs: 20 });
    const report = check(await runInProcess(wrap(backend), OPTIONS), STRICT_PROMISES);
    await backend.close();
    const found = Object.entries(report.tallies)
      .filter(([, { violations }]) => violations > 0)
      .map(([property]) => property);
    expect(found).toEqual(expect.arrayContaining([...caughtBy]));
    for (const { proof, property } of report.violations) expect(proof.length, property).toBeGreaterThan(0);
  });
});
