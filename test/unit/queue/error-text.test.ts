/** Whatever is thrown becomes a text that every store can keep. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { errorText } from "../../../src/queue/index.ts";

test("texts of every shape are made storable", () => {
  const circular = new Error("outer");
  circular.cause = circular;
  const hostile = {
    get message(): string {
      throw new Error("no");
    },
    toString(): string {
      throw new Error("no");
    },
    toJSON(): string {
      throw new Error("no");
    },
  };
  const cases: [unknown, string | RegExp][] = [
    [new Error("plain"), "plain"],
    [new TypeError("wrong"), "TypeError: wrong"],
    [new Error("outer", { cause: new Error("inner") }), "outer, because: inner"],
    [circular, "outer"],
    [new Error("a\0b"), "a\u2400b"],
    [new Error("\ud800x"), "\ufffdx"],
    [new Error(""), "an error without a message"],
    ["text", "text"],
    [undefined, "undefined"],
    [null, "null"],
    [{ a: 1 }, '{"a":1}'],
    [Symbol("s"), "Symbol(s)"],
    [hostile, /cannot be turned into text/],
    [Object.create(null), "{}"],
  ];
  for (const [thrown, expected] of cases) {
    const text = errorText(thrown);
    if (typeof expected === "string") expect(text).toBe(expected);
    else expect(text).toMatch(expected);
  }
});

test("a text of five megabytes is cut", () => {
  expect(errorText(new Error("x".repeat(5 * 1024 * 1024))).length).toBe(4096);
});

test("anything at all gives a text without NUL and lone surrogates, at most 4,096 characters", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.anything(),
        fc.string({ unit: "binary" }).map((text) => new Error(text)),
      ),
      (thrown) => {
        const text = errorText(thrown);
        expect(text.length).toBeLessThanOrEqual(4096);
        expect(text).not.toMatch(/\0|[\ud800-\udfff]/u);
      },
    ),
  );
});
