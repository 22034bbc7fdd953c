/** The short form of `npm run faults`, two minutes in all: clients under faults on each backend, every answer checked. QUEUEFS_FAULTS_SECONDS makes it longer. */

import { expect, test } from "vitest";
import { describeReport } from "./proof/describe.ts";
import { prove } from "./proof/runner.ts";

const seconds = Number(process.env.QUEUEFS_FAULTS_SECONDS ?? 40);
const say = (line: string): void => void process.stderr.write(`${line}\n`);

test.each(["sqlite", "redis", "http"] as const)(
  "%s: no history of killed, stopped and disconnected clients violates a property",
  { timeout: (seconds * 2 + 180) * 1_000 },
  async (backend) => {
    const seed = Number(process.env.QUEUEFS_SEED ?? Date.now() % 1_000_000);
    say(
      `faults on ${backend} for ${seconds} s, seed ${seed}: replay with QUEUEFS_SEED=${seed}, or npm run faults -- --backend ${backend} --seed ${seed}`,
    );
    const report = await prove({ backend, seconds, seed, clients: 3, epochSeconds: Math.min(30, seconds), onProgress: say });
    expect(describeReport(report)).toBe("");
    expect(report.troubles).toEqual([]);
    // The history is worth something only if it was disturbed and could have shown a wrong; how often depends on the machine.
    expect(Object.values(report.faults).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
    for (const property of ["S1", "S2", "S3", "S5", "S6", "L2"] as const)
      expect(report.checks[property].telling, `looks at ${property} that tell`).toBeGreaterThan(0);
  },
);

test("control: a server that forgets what it answered, when it is killed, is found out", { timeout: 180_000 }, async () => {
  const report = await prove({ backend: "redis", seconds: 8, seed: 1, clients: 2, epochSeconds: 8, forgets: true });
  expect(report.faults["server killed"] ?? 0).toBeGreaterThan(0);
  expect(new Set(report.violations.map(({ property }) => property))).toContain("L2");
});
