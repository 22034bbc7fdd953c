/** Values that a caller may pass by mistake or on purpose: what code that parses meets first. */

import fc from "fast-check";

/** Texts that mean something to some language on the way. */
const MEANINGFUL = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "toJSON",
  "then",
  "..",
  "../../etc/passwd",
  "%2e%2e%2f",
  "\0",
  "\r\n",
  "\ufeff",
  "\ud800",
  "'; DROP TABLE message; --",
  "{}",
  "[]",
  "null",
  "-0",
  "1e400",
  "NaN",
];

/** Any text: of any characters, lone surrogates included, short or long. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...MEANINGFUL),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.string({ maxLength: 20 }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)), maxLength: 8 }),
  fc.tuple(fc.string({ minLength: 1, maxLength: 2 }), fc.integer({ min: 100, max: 5_000 })).map(([text, times]) => text.repeat(times)),
);

/** Any number, also those that are none. */
export const anyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, -0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 31, 2 ** 32, 2 ** 53, 1e308),
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
);

/** Values that break what is careless with them. */
const treacherous: fc.Arbitrary<unknown> = fc
  .constantFrom<() => unknown>(
    () => Object.create(null),
    () => new Proxy({}, {}),
    () => Symbol("s"),
    () => 10n,
    () => new Date(Number.NaN),
    () => /x/,
    () => new Map([["a", 1]]),
    () => () => undefined,
    () => new Uint8Array(3),
    () => JSON.parse('{"__proto__":{"polluted":true}}') as unknown,
    () => {
      const ring: Record<string, unknown> = {};
      ring.self = ring;
      return ring;
    },
    () => ({
      toJSON() {
        throw new Error("toJSON");
      },
    }),
    () => ({
      toString() {
        throw new Error("toString");
      },
    }),
    () => JSON.parse("[".repeat(20_000) + "]".repeat(20_000)) as unknown,
  )
  .map((make) => make());

/** Any value at all. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  anyText,
  anyNumber,
  fc.constantFrom(undefined, null, true, false),
  treacherous,
  fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withTypedArray: true, withSparseArray: true, maxDepth: 2 }),
);

/** Any JSON value. */
export const anyJson: fc.Arbitrary<unknown> = fc.oneof(fc.jsonValue({ maxDepth: 3 }), anyText, anyNumber, fc.constant(null));

/** Any bytes. */
export const anyBytes: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  anyText.map((text) => new TextEncoder().encode(text)),
);
