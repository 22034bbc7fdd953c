import fc from "fast-check";
import { expect, it } from "vitest";
import { ManualClock, SeededRandom } from "../../../src/testing/index.ts";

it("stands still until it is moved, and then moves both clocks alike", () => {
  const clock = new ManualClock({ monotonicMs: 5, wallMs: 1000 });
  expect([clock.monotonicMs(), clock.wallMs()]).toEqual([5, 1000]);
  clock.advance(2.5);
  expect([clock.monotonicMs(), clock.wallMs()]).toEqual([7.5, 1002.5]);
  clock.stepWall(-3000);
  expect([clock.monotonicMs(), clock.wallMs()]).toEqual([7.5, -1997.5]);
  for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY]) expect(() => clock.advance(bad)).toThrow(RangeError);
});

it("fires timers in the order in which they are due, those of one instant in the order in which they were set, each at its instant", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 30 }), fc.nat(25), (delays, passed) => {
      const clock = new ManualClock({ monotonicMs: 0 });
      const fired: [number, number][] = [];
      for (const [index, delay] of delays.entries()) {
        clock.setTimer(() => {
          expect(clock.monotonicMs()).toBe(delay);
          fired.push([delay, index]);
        }, delay);
      }
      clock.advance(passed);
      const due = delays.map((delay, index): [number, number] => [delay, index]).filter(([delay]) => delay <= passed);
      expect(fired).toEqual(due.toSorted((left, right) => left[0] - right[0] || left[1] - right[1]));
      expect(clock.timerCount).toBe(delays.length - due.length);
      expect(clock.monotonicMs()).toBe(passed);
    }),
  );
});

it("fires timers that a timer sets within the same step, and none that was called off", () => {
  const clock = new ManualClock({ monotonicMs: 0 });
  const fired: string[] = [];
  const second = clock.setTimer(() => fired.push("called off"), 20);
  clock.setTimer(() => {
    fired.push("first");
    second.cancel();
    clock.setTimer(() => fired.push("third"), 10);
    clock.setTimer(() => fired.push("at once"), -5);
  }, 10);
  clock.advance(20);
  expect(fired).toEqual(["first", "at once", "third"]);
  expect(clock.timerCount).toBe(0);
});

it("advanceAndSettle lets asynchronous work run between timers", async () => {
  const clock = new ManualClock({ monotonicMs: 0 });
  const times: number[] = [];
  const again = async (): Promise<void> => {
    await Promise.resolve();
    times.push(clock.monotonicMs());
    if (times.length < 5) clock.setTimer(() => void again(), 10);
  };
  clock.setTimer(() => void again(), 10);
  await clock.advanceAndSettle(35);
  expect(times).toEqual([10, 20, 30]);
  await clock.advanceAndSettle(100);
  expect(times).toEqual([10, 20, 30, 40, 50]);
});

it("the same seed gives the same numbers, another seed others, all within bounds", () => {
  const draw = (seed: number): number[] => {
    const random = new SeededRandom(seed);
    return Array.from({ length: 1000 }, (_, index) => (index % 2 ? random.fraction() : random.token()));
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
  const numbers = draw(1);
  expect(new Set(numbers).size).toBe(1000);
  for (const [index, number] of numbers.entries()) {
    if (index % 2) expect(number >= 0 && number < 1).toBe(true);
    else expect(Number.isSafeInteger(number) && number >= 0 && number < 2 ** 48).toBe(true);
  }
});
