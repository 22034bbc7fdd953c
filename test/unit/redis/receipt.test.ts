/** Receipts of the Redis store: those of plain messages are as everywhere, those of messages of tasks tell the number of the task. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { deliveryOf, makeDeliveryReceipt } from "../../../src/backend/redis/receipt.ts";
import { makeReceipt, placeOfReceipt } from "../../../src/core/names.ts";

const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const number48 = fc.integer({ min: 0, max: 2 ** 48 - 1 });

test("what is made is read again, and without a task it is what other stores make", () => {
  void fc.assert(
    fc.property(whole, whole, whole, number48, (slot, sequence, token, task) => {
      const receipt = makeDeliveryReceipt(slot, sequence, token, task);
      expect(deliveryOf(receipt)).toEqual({ slot, sequence, token, task });
      if (task === 0) expect(receipt).toBe(makeReceipt(slot, sequence, token));
    }),
  );
});

test("any text is read as the receipt it is, or as none", () => {
  const text = fc.stringMatching(/^r?(-?[0-9a-zA-Z]{0,12}){0,5}-?$/);
  void fc.assert(
    fc.property(text, (receipt) => {
      const delivery = deliveryOf(receipt);
      if (delivery !== undefined)
        expect(makeDeliveryReceipt(delivery.slot, delivery.sequence, delivery.token, delivery.task)).toBe(receipt);
      const place = placeOfReceipt(receipt);
      if (place !== undefined) expect(delivery).toEqual({ ...place, task: 0 });
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  "",
  "r-",
  "r-1",
  "r-1-2",
  "r-1-2-",
  "r-1-2-3-",
  "r-1-2-3-0",
  "r-1-2-3-04",
  "r-01-2-3",
  "r-1-2-3-4-5",
  "m-1-2-3",
  "r-1-2-A",
  "r--1-2-3",
])("%j names no delivery", (text) => {
  expect(deliveryOf(text)).toBeUndefined();
});
