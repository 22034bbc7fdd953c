import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock, systemRandom } from "../../../src/core/clock.ts";

describe("the host's clock", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("its monotonic clock has fractions of a millisecond, never goes back, and goes on with real time", async () => {
    const readings = Array.from({ length: 1000 }, () => systemClock.monotonicMs());
    expect(readings).toEqual(readings.toSorted((left, right) => left - right));
    expect(readings.some((reading) => !Number.isInteger(reading))).toBe(true);
    const before = systemClock.monotonicMs();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(systemClock.monotonicMs() - before).toBeGreaterThanOrEqual(19);
  });

  it("is the clock that all processes of this boot share, and a step of the wall clock does not move it", () => {
    const before = systemClock.monotonicMs();
    vi.spyOn(Date, "now").mockReturnValue(0);
    expect(systemClock.wallMs()).toBe(0);
    expect(systemClock.monotonicMs() - before).toBeLessThan(10_000);
    expect(Math.abs(systemClock.monotonicMs() - Number(process.hrtime.bigint()) / 1e6)).toBeLessThan(1000);
  });

  it("a timer fires once, not early, and not after it was called off", async () => {
    let fired = 0;
    const begun = systemClock.monotonicMs();
    const cancelled = systemClock.setTimer(() => {
      fired += 100;
    }, 5);
    cancelled.cancel();
    cancelled.cancel();
    await new Promise<void>((resolve) => {
      // The timer does not keep the process alive; this one does.
      const alive = setInterval(() => {}, 1000);
      systemClock.setTimer(() => {
        fired += 1;
        clearInterval(alive);
        resolve();
      }, 15.2);
    });
    expect(systemClock.monotonicMs() - begun).toBeGreaterThanOrEqual(14.9);
    expect(fired).toBe(1);
  });

  it("takes delays that are negative, or longer than a timer of the runtime can", () => {
    const set = vi.spyOn(globalThis, "setTimeout");
    for (const [delayMs, expected] of [
      [-5, 0],
      [0, 0],
      [0.2, 1],
      [2 ** 31, 2 ** 31 - 1],
      [Number.POSITIVE_INFINITY, 2 ** 31 - 1],
    ] as const) {
      systemClock.setTimer(() => {}, delayMs).cancel();
      expect(set.mock.lastCall?.[1]).toBe(expected);
    }
  });
});

describe("the host's randomness", () => {
  it("has fractions in [0, 1) and tokens that are whole, below 2^48 and different", () => {
    const tokens = new Set<number>();
    let sum = 0;
    let high = 0;
    for (let index = 0; index < 5000; index += 1) {
      const fraction = systemRandom.fraction();
      expect(fraction >= 0 && fraction < 1).toBe(true);
      sum += fraction;
      const token = systemRandom.token();
      expect(Number.isSafeInteger(token) && token >= 0 && token < 2 ** 48).toBe(true);
      if (token >= 2 ** 47) high += 1;
      tokens.add(token);
    }
    expect(tokens.size).toBe(5000);
    // Ten standard deviations: a fair source fails this less than once in 10^20 runs.
    expect(Math.abs(sum / 5000 - 0.5)).toBeLessThan(0.041);
    expect(Math.abs(high - 2500)).toBeLessThan(354);
  });
});
