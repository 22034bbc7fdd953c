import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CONTROL_FILES } from "../../../src/core/control-files.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import { MAX_ID_BYTES, MAX_NAME_COMPONENT_BYTES, MAX_NAME_DEPTH } from "../../../src/core/limits.ts";
import {
  compareNames,
  isWithin,
  makeMessageId,
  makeReceipt,
  parseChosenMessageId,
  parseMessageId,
  parseQueueName,
  parseReceipt,
  parseRequestId,
  placeOfMessageId,
  placeOfReceipt,
  RESERVED_COMPONENTS,
  utf8Length,
} from "../../../src/core/names.ts";

/** The code with which `parse` refuses, or "good". */
function verdict(parse: (value: unknown) => string, value: unknown): string {
  try {
    return parse(value) === value ? "good" : "changed";
  } catch (error) {
    if (isQueueFSError(error)) return error.code;
    throw error;
  }
}

/** Valid UTF-16 without lone surrogates, of any characters. */
const anyText = fc.string({ unit: "binary" });
const utf8 = (text: string): Buffer => Buffer.from(text, "utf8");

describe("queue names", () => {
  it.each([
    "a",
    "a/b",
    "A",
    "a b",
    " a",
    "a ",
    "a.b",
    "a..",
    "..a".slice(2),
    "日本/q",
    "é",
    "e\u0301",
    "😀",
    "a\u00a0b",
    "\ufeff",
    "\ufffd",
    "a:b",
    "{}",
    "%",
    "_",
    "*",
    "\\",
    "'",
    '"',
    "`",
    "$(x)",
    "-",
    "--help",
    "~",
    "__proto__",
    "constructor",
    "Enqueue",
    "STATUS",
    "enqueue2",
    "acks",
    "dead",
    "x".repeat(MAX_NAME_COMPONENT_BYTES),
    "é".repeat(127),
    Array(MAX_NAME_DEPTH).fill("d").join("/"),
    Array(MAX_NAME_DEPTH).fill("x".repeat(MAX_NAME_COMPONENT_BYTES)).join("/"),
  ])("takes %j", (name) => {
    expect(verdict(parseQueueName, name)).toBe("good");
  });

  it.each([
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    "//",
    ".",
    "..",
    "a/.",
    "a/..",
    "./a",
    "../a",
    "a/../b",
    "a\0b",
    "\0",
    "a\nb",
    "a\tb",
    "a\rb",
    "\u001f",
    "\u007f",
    "\u0080",
    "\u009f",
    "\ud800",
    "a\udfffb",
    "\udc00\ud800",
    "x".repeat(MAX_NAME_COMPONENT_BYTES + 1),
    "é".repeat(128),
    "😀".repeat(64),
    Array(MAX_NAME_DEPTH + 1)
      .fill("d")
      .join("/"),
    "x".repeat(100_000),
    "a/".repeat(50_000),
    undefined,
    null,
    5,
    {},
    ["a"],
  ])("refuses %j as malformed", (name) => {
    expect(verdict(parseQueueName, name)).toBe("invalid-name");
  });

  it.each([
    ...RESERVED_COMPONENTS,
    ...[...RESERVED_COMPONENTS].map((one) => `a/${one}`),
    "status/a",
    "a/ack/b",
    ".a",
    "a/.b",
    ".nack",
    "...",
    ".…",
  ])("refuses %j as reserved", (name) => {
    expect(verdict(parseQueueName, name)).toBe("reserved-name");
  });

  it("reserves exactly the control files without a dot, and dots reserve the others", () => {
    const control = Object.keys(CONTROL_FILES);
    expect([...RESERVED_COMPONENTS].toSorted()).toEqual(control.filter((one) => !one.startsWith(".")).toSorted());
    for (const name of control) expect(verdict(parseQueueName, `q/${name}`)).toBe("reserved-name");
  });
});

describe("queue names, every one of them", () => {
  it("judges every code unit in the middle of a component by the rules and nothing else", () => {
    for (let unit = 0; unit <= 0xffff; unit += 1) {
      const character = String.fromCharCode(unit);
      const isControl = unit < 0x20 || (unit >= 0x7f && unit < 0xa0);
      const isSurrogate = unit >= 0xd800 && unit < 0xe000;
      const expected = isControl || isSurrogate ? "invalid-name" : "good";
      const actual = verdict(parseQueueName, `a${character}b`);
      if (actual !== expected) expect.fail(`U+${unit.toString(16)}: ${actual} instead of ${expected}`);
    }
  });

  it("accepts a name exactly when each of its components is good", () => {
    const component = fc.oneof(
      anyText,
      fc.constantFrom("", ".", "..", "ack", ".x", "a", "status", "é".repeat(127), "é".repeat(128)),
      fc.string({ unit: fc.constantFrom("é", "x", "日", "😀"), minLength: 60, maxLength: 260 }),
    );
    fc.assert(
      fc.property(fc.array(component, { minLength: 1, maxLength: 40 }), (components) => {
        const name = components.join("/");
        const parts = name.split("/");
        const isGood =
          parts.length <= MAX_NAME_DEPTH &&
          parts.every(
            (part) =>
              part !== "" &&
              !part.startsWith(".") &&
              !RESERVED_COMPONENTS.has(part) &&
              utf8(part).length <= MAX_NAME_COMPONENT_BYTES &&
              !/\p{Cc}|\p{Cs}/u.test(part),
          );
        expect(verdict(parseQueueName, name) === "good").toBe(isGood);
      }),
    );
  });

  it("never changes a name: two different texts stay different", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const answer = verdict(parseQueueName, text);
        expect(["good", "invalid-name", "reserved-name"]).toContain(answer);
      }),
    );
  });

  it("tells what is wrong, with which value, shortened", () => {
    const long = "x".repeat(10_000);
    for (const [name, words] of [
      ["a//b", /single slashes/],
      ["a\nb", /control character/],
      ["ack", /control file/],
      [".x", /kept for QueueFS/],
      [long, /too long|10000 bytes/],
    ] as const) {
      try {
        parseQueueName(name);
        expect.fail("it was taken");
      } catch (error) {
        const { message } = error as Error;
        expect(message).toMatch(words);
        expect(message.length).toBeLessThan(400);
      }
    }
  });
});

describe("the order of names", () => {
  it("is that of their UTF-8 bytes", () => {
    const unit = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      fc.constantFrom("\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}", "/", "a", "~", "é"),
    );
    const text = fc.string({ unit, maxLength: 6 });
    fc.assert(
      fc.property(text, text, text, (prefix, left, right) => {
        const expected = Math.sign(Buffer.compare(utf8(prefix + left), utf8(prefix + right)));
        expect(Math.sign(compareNames(prefix + left, prefix + right))).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("isWithin", () => {
  it.each([
    ["a", "a", true],
    ["a/b", "a", true],
    ["a/b/c", "a/b", true],
    ["ab", "a", false],
    ["a_b", "a", false],
    ["a", "a/b", false],
    ["b/a", "a", false],
    ["a/", "a", true],
    ["A/b", "a", false],
    ["a/b", "a/bc", false],
  ])("%j in %j: %j", (queue, ancestor, expected) => {
    expect(isWithin(queue, ancestor)).toBe(expected);
  });
});

describe("ids", () => {
  const parsers = [
    ["message id", parseMessageId],
    ["receipt", parseReceipt],
    ["request id", parseRequestId],
    ["chosen message id", parseChosenMessageId],
  ] as const;

  it.each(parsers)("%s: 1 to 255 bytes without white space or control characters", (_, parse) => {
    for (const id of [
      "a",
      "A-b_9",
      "é",
      "e\u0301",
      "日本",
      "😀",
      "a/b",
      "a:b",
      "{}",
      "%",
      "__proto__",
      "\ufffd",
      "x".repeat(MAX_ID_BYTES),
      "é".repeat(127),
    ])
      expect(verdict(parse, id)).toBe("good");
    for (const id of [
      "",
      " ",
      "a b",
      "a\n",
      "\ta",
      "a\u00a0b",
      "a\u2028b",
      "a\u3000b",
      "\ufeffa",
      "a\0",
      "\u007f",
      "\u0085",
      "\ud800",
      "x".repeat(MAX_ID_BYTES + 1),
      "é".repeat(128),
      undefined,
      null,
      5,
      {},
      [],
    ]) {
      expect(verdict(parse, id), JSON.stringify(id)).toBe("invalid-name");
    }
  });

  it("an id that a caller chooses does not look like one that the store makes", () => {
    for (const id of ["m-", "m-1", "r-", "r-1-2-3"]) {
      expect(verdict(parseChosenMessageId, id)).toBe("invalid-name");
      expect(verdict(parseMessageId, id)).toBe("good");
      expect(verdict(parseReceipt, id)).toBe("good");
    }
    for (const id of ["m", "r", "M-1", "x-m-1", "-m", "m1-"]) expect(verdict(parseChosenMessageId, id)).toBe("good");
  });

  it("any text is either kept exactly or refused", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        for (const [, parse] of parsers) expect(["good", "invalid-name"]).toContain(verdict(parse, text));
      }),
    );
  });
});

describe("made ids and receipts", () => {
  const whole = fc.oneof(
    fc.nat(),
    fc.maxSafeNat(),
    fc.constantFrom(0, 1, 35, 36, 1295, 1296, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 46, 2 ** 48 - 1, Number.MAX_SAFE_INTEGER),
  );

  it("lead back to the place they were made from", () => {
    fc.assert(
      fc.property(whole, whole, whole, (slot, sequence, token) => {
        const receipt = makeReceipt(slot, sequence, token);
        expect(receipt).toBe(`r-${slot.toString(36)}-${sequence.toString(36)}-${token.toString(36)}`);
        expect(placeOfReceipt(receipt)).toEqual({ slot, sequence, token });
        expect(verdict(parseReceipt, receipt)).toBe("good");
        const id = makeMessageId("store1", slot, sequence);
        expect(placeOfMessageId("store1", id)).toEqual({ slot, sequence });
        expect(placeOfMessageId("store2", id)).toBeUndefined();
        expect(verdict(parseMessageId, id)).toBe("good");
      }),
      { numRuns: 2000 },
    );
  });

  it("have one text each: no other text leads to the same place", () => {
    const digits = fc.string({ unit: fc.constantFrom("0", "1", "9", "a", "z", "A", "-", " ", "+", ".", "é"), maxLength: 14 });
    fc.assert(
      fc.property(digits, digits, digits, (slot, sequence, token) => {
        const receipt = `r-${slot}-${sequence}-${token}`;
        const place = placeOfReceipt(receipt);
        if (place !== undefined) expect(makeReceipt(place.slot, place.sequence, place.token)).toBe(receipt);
        const id = `m-s-${slot}-${sequence}`;
        const home = placeOfMessageId("s", id);
        if (home !== undefined) expect(makeMessageId("s", home.slot, home.sequence)).toBe(id);
      }),
      { numRuns: 3000 },
    );
  });

  it.each([
    "",
    "r",
    "r-",
    "r-1",
    "r-1-1",
    "r-1-1-",
    "r--1-1",
    "r-1-1-1-1",
    "r-01-1-1",
    "r-1-01-1",
    "r-1-1-00",
    "R-1-1-1",
    "r-A-1-1",
    "r-1-1-1 ",
    " r-1-1-1",
    "r-1-1-1\n",
    "m-1-1-1",
    "r-zzzzzzzzzzzz-1-1",
    "r-1-zzzzzzzzzzzzzzzzzzzz-1",
    "r-1-1-é",
  ])("%j is no receipt", (text) => {
    expect(placeOfReceipt(text)).toBeUndefined();
  });
});

describe("utf8Length", () => {
  it("counts the bytes of any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(utf8Length(text)).toBe(utf8(text).length);
      }),
    );
  });
});
