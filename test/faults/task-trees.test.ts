/** Tasks tell the truth while the processes that work for them are killed: C5, S12 and C24 of the properties and cases. */

import { expect, test } from "vitest";
import { childProcesses } from "../support/child-process.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";
import type { TreePrograms } from "./task-trees/programs.ts";
import { growTrees } from "./task-trees/trees.ts";

const sweepIntervalMs = 50;
const seconds = Number(process.env.QUEUEFS_TREES_SECONDS ?? 8);
const children = childProcesses<TreePrograms>("test/faults/task-trees/programs.ts");
const say = (line: string): void => void process.stderr.write(`${line}\n`);

test.each([
  { kind: sqliteStores({ durability: "normal", sweepIntervalMs }), leaseMs: 30_000 },
  { kind: redisStores({ sweepIntervalMs }), leaseMs: 1_000 },
])(
  "$kind.name: trees of messages whose workers and producers are killed at random end as their tasks say",
  { timeout: (seconds + 180) * 1_000 },
  async ({ kind, leaseMs }) => {
    const seed = Number(process.env.QUEUEFS_SEED ?? Date.now() % 1_000_000);
    say(`trees on ${kind.name} for ${seconds} s, seed ${seed}: replay with QUEUEFS_SEED=${seed}`);
    await kind.begin();
    try {
      const report = await growTrees({ spec: kind.fresh(), children, seconds, seed, leaseMs });
      say(JSON.stringify(report));
      expect(report.tasks).toBeGreaterThan(0);
      expect(report.kills).toBeGreaterThan(0);
    } finally {
      await kind.end();
    }
  },
);
