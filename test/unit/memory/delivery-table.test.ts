import fc from "fast-check";
import { expect, it } from "vitest";
import { DeliveryTable } from "../../../src/backend/memory/delivery-table.ts";
import { Entry, NO_BYTES } from "../../../src/backend/memory/entry.ts";
import { makeReceipt, type Receipt } from "../../../src/core/names.ts";

function held(place: number, token: number): Entry {
  const entry = new Entry(place, undefined, 0, NO_BYTES, 0, 0, undefined);
  entry.receipt = makeReceipt(1, place, token);
  return entry;
}

/** Places in a row, far apart at equal distances, and beyond 32 bits. */
const places = fc.oneof(
  fc.nat(200),
  fc.nat(200).map((one) => one * 1024),
  fc.nat(200).map((one) => one * 65_536 + 7),
  fc.nat(200).map((one) => 2 ** 32 + one),
  fc.maxSafeNat(),
);

it("is a map from receipts to what they name", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(places, fc.nat(3)), { maxLength: 400 }), (list) => {
      const table = new DeliveryTable();
      const naive = new Map<number, Entry>();
      for (const [place, token] of list) {
        const before = naive.get(place);
        if (before !== undefined) {
          table.delete(before);
          naive.delete(place);
          expect(table.find(before.receipt as Receipt)).toBeUndefined();
        } else {
          const entry = held(place, token);
          table.add(entry);
          naive.set(place, entry);
          expect(table.find(makeReceipt(1, place, token + 1))).toBeUndefined();
          expect(table.find(makeReceipt(2, place, token))).toBeUndefined();
        }
        expect(table.size).toBe(naive.size);
      }
      expect([...naive.values()].filter((entry) => table.find(entry.receipt as Receipt) !== entry)).toEqual([]);
    }),
  );
});

it("finds nothing for what is no receipt of a delivery, whatever it is", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("r", "-", "1", "z", "Z", " ", "/", "9") })), (text) => {
      const table = new DeliveryTable();
      for (let place = 1; place <= 40; place += 1) table.add(held(place, 77));
      expect(table.find(text as Receipt)).toBeUndefined();
    }),
  );
});

it("stays quick when every thousandth message is held", () => {
  const table = new DeliveryTable();
  const entries = Array.from({ length: 100_000 }, (_, index) => held(index * 1024, index));
  for (const entry of entries) table.add(entry);
  expect(entries.filter((entry) => table.find(entry.receipt as Receipt) !== entry)).toEqual([]);
  for (const entry of entries) table.delete(entry);
  expect(table.size).toBe(0);
});
