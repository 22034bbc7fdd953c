import { describe, expect, it } from "vitest";
import { ProgressMeter } from "../../../src/cli/progress-meter.ts";

describe("ProgressMeter", () => {
  it("begins with nothing done and no idea of the time left", () => {
    expect(new ProgressMeter().add(10, 0)).toEqual({ done: 0, total: 10, perSecond: 0 });
  });

  it("counts what leaves, its speed, and the time that is left at that speed", () => {
    const meter = new ProgressMeter();
    meter.add(10, 0);
    expect(meter.add(6, 2_000)).toEqual({ done: 4, total: 10, perSecond: 2, leftMs: 3_000 });
    expect(meter.add(0, 4_000)).toEqual({ done: 10, total: 10, perSecond: 2.5, leftMs: 0 });
  });

  it("never goes back when messages arrive meanwhile", () => {
    const meter = new ProgressMeter();
    meter.add(10, 0);
    meter.add(8, 1_000);
    expect(meter.add(12, 2_000)).toMatchObject({ done: 2, total: 14 });
    expect(meter.add(5, 3_000)).toMatchObject({ done: 9, total: 14 });
  });

  it("takes the speed of the last ten seconds", () => {
    const meter = new ProgressMeter();
    meter.add(1_000, 0);
    meter.add(900, 1_000);
    for (let second = 2; second <= 20; second += 1) meter.add(900, second * 1_000);
    expect(meter.add(900, 21_000)).toEqual({ done: 100, total: 1_000, perSecond: 0 });
  });
});
