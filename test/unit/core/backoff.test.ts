import fc from "fast-check";
import { expect, it } from "vitest";
import { backoffMs } from "../../../src/core/backoff.ts";

const draws = (fraction: number) => ({ fraction: () => fraction, token: () => 0 });

it("doubles from half the first wait to half the longest, plus up to as much again", () => {
  const backoff = { firstMs: 100, maximumMs: 1000 };
  expect([1, 2, 3, 4, 5, 6].map((attempt) => backoffMs(backoff, attempt, draws(0)))).toEqual([50, 100, 200, 400, 500, 500]);
  expect([1, 2, 3, 4, 5, 6].map((attempt) => backoffMs(backoff, attempt, draws(0.5)))).toEqual([75, 150, 300, 600, 750, 750]);
});

it("stays within its bounds for every attempt and draw, and never falls from one attempt to the next", () => {
  const span = fc.double({ min: 0.1, max: 1e9, noNaN: true });
  fc.assert(
    fc.property(
      span,
      span,
      fc.integer({ min: 1, max: 1_000_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (firstMs, maximumMs, attempt, fraction) => {
        const wait = backoffMs({ firstMs, maximumMs }, attempt, draws(fraction));
        expect(wait).toBeGreaterThanOrEqual(Math.min(firstMs, maximumMs) / 2);
        expect(wait).toBeLessThanOrEqual(maximumMs);
        expect(backoffMs({ firstMs, maximumMs }, attempt + 1, draws(fraction))).toBeGreaterThanOrEqual(wait);
      },
    ),
  );
});
