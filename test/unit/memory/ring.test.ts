import fc from "fast-check";
import { expect, it } from "vitest";
import { Ring } from "../../../src/backend/memory/ring.ts";

/** What can be done with a ring, as numbers: how many are pushed, shifted, dropped, or which index is replaced. */
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("push" as const), count: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ do: fc.constant("shift" as const), count: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ do: fc.constant("drop" as const), count: fc.nat(60) }),
    fc.record({ do: fc.constant("set" as const), count: fc.nat() }),
  ),
  { maxLength: 60 },
);

it("is an array whose ends are cheap", () => {
  fc.assert(
    fc.property(steps, (list) => {
      const ring = new Ring<number>();
      const naive: number[] = [];
      let next = 0;
      for (const step of list) {
        if (step.do === "push") {
          for (let index = 0; index < step.count; index += 1) {
            next += 1;
            ring.push(next);
            naive.push(next);
          }
        } else if (step.do === "shift") {
          for (let index = 0; index < step.count; index += 1) expect(ring.shift()).toBe(naive.shift());
        } else if (step.do === "drop") {
          const count = Math.min(step.count, naive.length);
          ring.dropFirst(count);
          naive.splice(0, count);
        } else if (naive.length > 0) {
          next += 1;
          ring.set(step.count % naive.length, next);
          naive[step.count % naive.length] = next;
        }
        expect(ring.length).toBe(naive.length);
        expect(ring.first()).toBe(naive[0]);
        expect(ring.last()).toBe(naive.at(-1));
        expect(naive.map((_, index) => ring.at(index))).toEqual(naive);
      }
    }),
  );
});
