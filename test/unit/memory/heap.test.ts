import fc from "fast-check";
import { expect, it } from "vitest";
import { Heap } from "../../../src/backend/memory/heap.ts";

interface Pushed {
  readonly key: number;
  readonly stamp: number;
}

/** Few keys, so that many are equal; a pop now and then; seldom a cleaning that keeps stamps of one remainder. */
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("push" as const), value: fc.nat(9) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("pop" as const), value: fc.constant(0) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("compact" as const), value: fc.nat(2) }) },
  ),
  { maxLength: 200 },
);

it("gives the smallest key first, and of equal keys the one that came first", () => {
  fc.assert(
    fc.property(steps, (list) => {
      const heap = new Heap<string>();
      let naive: Pushed[] = [];
      for (const step of list) {
        if (step.do === "push") {
          const stamp = heap.push(step.value, `item ${naive.length}`);
          expect(naive.every((one) => one.stamp < stamp)).toBe(true);
          naive.push({ key: step.value, stamp });
        } else if (step.do === "pop") {
          const [first] = naive.toSorted((left, right) => left.key - right.key || left.stamp - right.stamp);
          if (first !== undefined) expect(heap.firstStamp()).toBe(first.stamp);
          expect(heap.pop() === undefined).toBe(first === undefined);
          naive = naive.filter((one) => one !== first);
        } else {
          heap.compact((_, stamp) => stamp % 3 === step.value);
          naive = naive.filter((one) => one.stamp % 3 === step.value);
        }
        expect(heap.size).toBe(naive.length);
        expect(heap.firstKey()).toBe(Math.min(Number.POSITIVE_INFINITY, ...naive.map((one) => one.key)));
      }
    }),
  );
});

it("keeps each item with its key", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true }), { maxLength: 100 }), (keys) => {
      const heap = new Heap<number>();
      for (const key of keys) heap.push(key, key);
      const popped = Array.from(keys, () => heap.pop());
      expect(popped).toEqual(keys.toSorted((left, right) => left - right));
      expect(heap.pop()).toBeUndefined();
    }),
  );
});
