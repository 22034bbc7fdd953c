import { describe, expect, it } from "vitest";
import { isQueueFSError } from "../../../src/core/errors.ts";
import { checkInteger, type OptionTable, readOptions } from "../../../src/core/options.ts";

const TABLE = {
  count: { type: "integer", minimum: 1, maximum: 10, default: 5, meaning: "a number" },
  most: { type: "integer", minimum: 0, maximum: 3, meaning: "a number without default" },
  kind: { type: "choice", choices: ["full", "normal"], default: "full", meaning: "a word" },
  flag: { type: "boolean", default: false, meaning: "on or off" },
  path: { type: "text", meaning: "a text" },
  clock: { type: "object", meaning: "an object" },
} as const satisfies OptionTable;

function refusal(given: unknown): string {
  try {
    readOptions("openThing", TABLE, given);
  } catch (error) {
    if (isQueueFSError(error, "invalid-argument")) return error.message;
    throw error;
  }
  return "taken";
}

describe("readOptions", () => {
  it("fills in the defaults and leaves out what has none", () => {
    const defaults = { count: 5, kind: "full", flag: false };
    expect(readOptions("openThing", TABLE, undefined)).toEqual(defaults);
    expect(readOptions("openThing", TABLE, {})).toEqual(defaults);
    expect(readOptions("openThing", TABLE, { count: undefined, path: undefined })).toEqual(defaults);
    expect(Object.keys(readOptions("openThing", TABLE, {}))).not.toContain("path");
  });

  it("takes every value within its bounds", () => {
    const clock = { now: () => 0 };
    const call = (): void => {};
    expect(readOptions("openThing", TABLE, { count: 1, most: 0, kind: "normal", flag: true, path: "", clock })).toEqual({
      count: 1,
      most: 0,
      kind: "normal",
      flag: true,
      path: "",
      clock,
    });
    expect(readOptions("openThing", TABLE, { count: 10, most: 3, clock: call }).clock).toBe(call);
  });

  it.each([
    [{ count: 0 }],
    [{ count: 11 }],
    [{ count: 1.5 }],
    [{ count: "5" }],
    [{ count: Number.NaN }],
    [{ count: Number.POSITIVE_INFINITY }],
    [{ count: null }],

    [{ most: -1 }],
    [{ kind: "FULL" }],
    [{ kind: "" }],
    [{ kind: 5 }],
    [{ kind: "toString" }],
    [{ flag: 1 }],
    [{ flag: "true" }],
    [{ flag: null }],
    [{ path: 5 }],
    [{ path: null }],
    [{ clock: null }],
    [{ clock: "x" }],
    [{ clock: 5 }],
    [null],
    [5],
    ["text"],
    [true],
  ])("refuses %j and names what is wrong", (given) => {
    const message = refusal(given);
    expect(message).not.toBe("taken");
    expect(message).toContain("openThing");
    if (typeof given === "object" && given !== null) expect(message).toContain(Object.keys(given)[0]);
  });

  it("refuses an unknown option by name and tells which there are", () => {
    for (const name of ["counts", "Count", "toString", "constructor", "hasOwnProperty", ""]) {
      const message = refusal({ [name]: 1 });
      expect(message).toContain(JSON.stringify(name));
      for (const known of Object.keys(TABLE)) expect(message).toContain(known);
    }
    expect(refusal(JSON.parse('{"__proto__": 1}'))).toContain("__proto__");
    expect(refusal({ unknown: undefined })).toContain("unknown");
  });

  it("does not change what it is given, and its values are its own", () => {
    const given = Object.freeze({ count: 3 });
    const values = readOptions("openThing", TABLE, given);
    expect(values).not.toBe(given);
    expect(values).toEqual({ count: 3, kind: "full", flag: false });
  });
});

describe("checkInteger", () => {
  it("returns what is within bounds, both included, and refuses all else with words", () => {
    for (const value of [-2, -1, 0, 1, 2]) expect(checkInteger("size", value, -2, 2)).toBe(value);
    for (const value of [-3, 3, 0.5, Number.NaN, -Infinity, "1", null, undefined, 1n, [1], { valueOf: () => 1 }, true]) {
      expect(() => checkInteger("size", value, -2, 2)).toThrowError(/^size must be a whole number from -2 to 2, got /);
    }
    expect(() => checkInteger("size", Number.NaN, 0, 1)).toThrowError(/got NaN/);
    expect(() => checkInteger("size", "1", 0, 1)).toThrowError(/got "1"/);
  });
});
