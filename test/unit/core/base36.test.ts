import fc from "fast-check";
import { expect, it } from "vitest";
import { joinBase36, NumberedTexts } from "../../../src/core/base36.ts";

/** Whole numbers of all sizes, the edges of digits and of 32 bits among them. */
const numbers = fc.oneof(
  fc.nat(100),
  fc.maxSafeNat(),
  fc.integer({ min: 0, max: 52 }).chain((bits) => fc.constantFrom(2 ** bits - 1, 2 ** bits, 2 ** bits + 1)),
  fc.integer({ min: 0, max: 9 }).chain((digits) => fc.constantFrom(36 ** digits - 1, 36 ** digits, 36 ** digits + 1)),
);

it("joins whole numbers as toString(36) writes them", () => {
  fc.assert(
    fc.property(fc.constantFrom("r", "m"), numbers, numbers, numbers, (letter, first, second, third) => {
      expect(joinBase36(letter, first, second, third)).toBe([letter, ...[first, second, third].map((one) => one.toString(36))].join("-"));
    }),
    { numRuns: 2_000 },
  );
});

it("numbers texts as toString(36) writes the numbers, whatever came before", () => {
  fc.assert(
    fc.property(fc.array(numbers), (values) => {
      const texts = new NumberedTexts("m-store-");
      for (const value of values.flatMap((one) => [one, one + 1, one])) expect(texts.text(value)).toBe(`m-store-${value.toString(36)}`);
    }),
  );
});
