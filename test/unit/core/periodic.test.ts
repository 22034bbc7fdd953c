import { expect, it } from "vitest";
import { startPeriodic } from "../../../src/core/periodic.ts";
import { ManualClock } from "../../../src/testing/index.ts";

const unexpected = (error: unknown): never => {
  throw error;
};

it("runs at each interval, from the end of one run to the start of the next", async () => {
  const clock = new ManualClock();
  const begun = clock.monotonicMs();
  const starts: number[] = [];
  const stop = startPeriodic(
    clock,
    1000,
    async () => {
      starts.push(clock.monotonicMs() - begun);
      return false;
    },
    unexpected,
  );
  await clock.advanceAndSettle(999);
  expect(starts).toEqual([]);
  await clock.advanceAndSettle(2501);
  expect(starts).toEqual([1000, 2000, 3000]);
  await stop();
  expect(clock.timerCount).toBe(0);
});

it("never runs twice at a time, however long a run takes", async () => {
  const clock = new ManualClock();
  let runs = 0;
  let finish: (more: boolean) => void = () => {};
  const stop = startPeriodic(
    clock,
    1000,
    () => {
      runs += 1;
      return new Promise((resolve) => {
        finish = resolve;
      });
    },
    unexpected,
  );
  await clock.advanceAndSettle(10_000);
  expect(runs).toBe(1);
  finish(false);
  await clock.advanceAndSettle(999);
  expect(runs).toBe(1);
  await clock.advanceAndSettle(1);
  expect(runs).toBe(2);
  finish(false);
  await stop();
});

it("runs again at once while there is more to do", async () => {
  const clock = new ManualClock();
  let left = 5;
  const stop = startPeriodic(
    clock,
    1000,
    async () => {
      left -= 1;
      return left > 0;
    },
    unexpected,
  );
  await clock.advanceAndSettle(1000);
  expect(left).toBe(0);
  await stop();
});

it("tells of an error and goes on", async () => {
  const clock = new ManualClock();
  const errors: unknown[] = [];
  let runs = 0;
  const stop = startPeriodic(
    clock,
    1000,
    async () => {
      runs += 1;
      throw new Error(`run ${runs}`);
    },
    (error) => void errors.push(error),
  );
  await clock.advanceAndSettle(3000);
  expect(errors.map(String)).toEqual(["Error: run 1", "Error: run 2", "Error: run 3"]);
  await stop();
});

it("stop waits for the run at hand, whose error then concerns nobody, and may be called twice", async () => {
  const clock = new ManualClock();
  const errors: unknown[] = [];
  let fail: (error: Error) => void = () => {};
  const stop = startPeriodic(
    clock,
    1000,
    () =>
      new Promise((_, reject) => {
        fail = reject;
      }),
    (error) => void errors.push(error),
  );
  await clock.advanceAndSettle(1000);
  let stopped = false;
  const stopping = Promise.all([stop(), stop()]).then(() => {
    stopped = true;
  });
  await clock.advanceAndSettle(5000);
  expect(stopped).toBe(false);
  fail(new Error("closed underneath"));
  await stopping;
  expect(errors).toEqual([]);
  expect(clock.timerCount).toBe(0);
});

it("never runs when it was stopped before its first time", async () => {
  const clock = new ManualClock();
  const stop = startPeriodic(clock, 1000, async () => expect.fail("it ran"), unexpected);
  await stop();
  await clock.advanceAndSettle(5000);
  expect(clock.timerCount).toBe(0);
});
