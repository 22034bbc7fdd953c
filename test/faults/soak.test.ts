/** The short form of `npm run soak`: mixed load, workers killed, stopped and ended at random. */

import { expect, it } from "vitest";
import { soak } from "../soak/soak.ts";

it.each(["sqlite", "redis"] as const)("every job is done at least once, and complete is said only then: %s", async (backend) => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  process.stdout.write(`${backend}: seed ${seed}\n`);
  const report = await soak({ backend, seconds: 8, seed });
  process.stdout.write(`${JSON.stringify(report)}\n`);
  expect(report.faults).toEqual([]);
  // It did something, or it would prove nothing.
  expect(report.jobs).toBeGreaterThan(20);
  expect(report.killed + report.stopped + report.ended).toBeGreaterThan(2);
  expect(report.waits).toBeGreaterThan(1);
});
