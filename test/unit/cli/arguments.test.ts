import { InvalidArgumentError } from "commander";
import { describe, expect, it } from "vitest";
import { instantOption, jsonOption } from "../../../src/cli/arguments.ts";

describe("instantOption", () => {
  it("reads instants and dates as they are written", () => {
    expect(instantOption("2026-01-31T12:00:00Z")).toBe(Date.UTC(2026, 0, 31, 12));
    expect(instantOption("2026-01-31T12:00:00.250+02:00")).toBe(Date.UTC(2026, 0, 31, 10, 0, 0, 250));
    expect(instantOption("2026-01-31")).toBe(Date.UTC(2026, 0, 31));
  });

  it("reads a duration as so long ago, but not before 1970", () => {
    const before = Date.now() - 90 * 60_000;
    const atMs = instantOption("1h30m");
    expect(atMs).toBeGreaterThanOrEqual(before);
    expect(atMs).toBeLessThanOrEqual(Date.now() - 90 * 60_000);
    expect(instantOption("100000d")).toBe(0);
  });

  it.each(["", "now", "5", "2026-13-01", "2026-01-31T25:00", "31.01.2026"])("refuses %s", (text) => {
    expect(() => instantOption(text)).toThrow(InvalidArgumentError);
  });
});

describe("jsonOption", () => {
  it("reads any JSON value, and refuses what is none", () => {
    for (const value of [null, 0, "x", [1], { a: { b: true } }]) expect(jsonOption(JSON.stringify(value))).toEqual({ value });
    for (const text of ["", "x", "{a:1}", "undefined"]) expect(() => jsonOption(text)).toThrow(InvalidArgumentError);
  });
});
