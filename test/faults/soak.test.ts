/** The short form of `npm run soak`, which runs this file for as long as it is told. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { childProcesses } from "../support/child-process.ts";
import type { SoakPrograms } from "./soak/programs.ts";
import { soak } from "./soak/soak.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";

const sweepIntervalMs = 50;
const seconds = Number(process.env.QUEUEFS_SOAK_SECONDS ?? 8);
const isLong = process.env.QUEUEFS_SOAK_SECONDS !== undefined;
const children = childProcesses<SoakPrograms>("test/faults/soak/programs.ts");
// Timers and console of the runner are quiet in a pipe; a soak of minutes should show that it lives.
const say = (line: string): void => void process.stderr.write(`${line}\n`);

test.each([
  { kind: sqliteStores({ durability: "normal", sweepIntervalMs }), leaseMs: 30_000 },
  { kind: redisStores({ sweepIntervalMs }), leaseMs: 1_000 },
])(
  "$kind.name: workers killed at random lose nothing, and complete is said only when all is done",
  { timeout: (seconds + 180) * 1_000 },
  async ({ kind, leaseMs }) => {
    const seed = Number(process.env.QUEUEFS_SEED ?? Date.now() % 1_000_000);
    say(`soak on ${kind.name} for ${seconds} s, seed ${seed}: replay with QUEUEFS_SEED=${seed}`);
    await kind.begin();
    const folder = await mkdtemp(join(tmpdir(), "queuefs-soak-"));
    try {
      const report = await soak({ spec: kind.fresh(), children, folder, seconds, seed, leaseMs, ...(isLong ? { onProgress: say } : {}) });
      if (isLong) say(JSON.stringify(report));
      expect(report.violations).toEqual([]);
      expect(report.processed).toBe(report.enqueued);
      expect(report.rounds).toBeGreaterThan(0);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await kind.end();
    }
  },
);
