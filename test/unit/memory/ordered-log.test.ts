import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, it } from "vitest";
import { OrderedLog, type Placed } from "../../../src/backend/memory/ordered-log.ts";

class Item implements Placed {
  readonly place: number;
  removed = false;
  constructor(place: number) {
    this.place = place;
  }
}

/** Collects garbage now; the function is there only while the flag is set. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  setFlagsFromString("--no-expose-gc");
}

function shown(log: OrderedLog<Item>, from: number, atMost = Number.POSITIVE_INFINITY): number[] {
  const places: number[] = [];
  log.visit(from, (item) => {
    places.push(item.place);
    return places.length < atMost;
  });
  return places;
}

/** Appending, removing the item of a rank, putting some of the removed back to their old places. */
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant("push" as const), number: fc.integer({ min: 1, max: 90 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("remove some" as const), number: fc.nat(100) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("remove first" as const), number: fc.integer({ min: 1, max: 100 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("insert" as const), number: fc.integer({ min: 1, max: 50 }) }) },
  ),
  { maxLength: 40 },
);

it("is a sorted list from which any item leaves and to which it may return", () => {
  fc.assert(
    fc.property(steps, fc.infiniteStream(fc.nat(1_000_000)), (list, numbers) => {
      const log = new OrderedLog<Item>();
      let naive: Item[] = [];
      const removed: number[] = [];
      let place = 0;
      const draw = (below: number): number => (numbers.next().value as number) % below;
      for (const step of list) {
        if (step.do === "push") {
          for (let index = 0; index < step.number; index += 1) {
            place += 1 + draw(3);
            const item = new Item(place);
            log.push(item);
            naive.push(item);
          }
        } else if (step.do === "insert") {
          const back = [...new Set(removed.splice(0, step.number))].toSorted((left, right) => left - right).map((one) => new Item(one));
          log.insert(back);
          naive = [...naive, ...back].toSorted((left, right) => left.place - right.place);
        } else {
          for (let count = 0; count < step.number && naive.length > 0; count += 1) {
            const [item] = naive.splice(step.do === "remove first" ? 0 : draw(naive.length), 1);
            log.remove(item as Item);
            removed.push((item as Item).place);
          }
        }
        const places = naive.map((item) => item.place);
        expect(log.length).toBe(naive.length);
        expect(log.first()).toBe(naive[0]);
        expect(shown(log, 0)).toEqual(places);
        const from = draw(place + 2);
        expect(shown(log, from, 5)).toEqual(places.filter((one) => one >= from).slice(0, 5));
        expect(log.find(from)).toBe(naive.find((item) => item.place === from));
      }
    }),
  );
});

it("lets go of what left behind an item that stays", async () => {
  const log = new OrderedLog<Item>();
  log.push(new Item(0));
  const left: WeakRef<Item>[] = [];
  for (let place = 1; place <= 10_000; place += 1) {
    const item = new Item(place);
    log.push(item);
    log.remove(item);
    left.push(new WeakRef(item));
  }
  // A reference that is read lives on to the end of the turn.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(left.filter((one) => one.deref() !== undefined).length).toBeLessThan(200);
  expect(shown(log, 0)).toEqual([0]);
});

it("refuses an item out of order, as a broken invariant", () => {
  const log = new OrderedLog<Item>();
  log.push(new Item(5));
  expect(() => log.push(new Item(5))).toThrow(expect.objectContaining({ code: "internal" }));
});
