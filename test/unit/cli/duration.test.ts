import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../../src/cli/duration.ts";

describe("parseDuration", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["15m", 900_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1_500],
    ["0", 0],
    ["0s", 0],
    [" 3s ", 3_000],
  ])("reads %s", (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each(["", " ", "5", "s", "-5s", "5 s", "5S", "5s!", "1e3s", "NaN", "Infinity", "5min", "0x5s"])("refuses %j", (text) => {
    expect(() => parseDuration(text)).toThrowError(
      expect.objectContaining({ code: "invalid-argument", message: expect.stringContaining("500ms") }),
    );
  });
});

describe("formatDuration", () => {
  it.each([
    [0, "0ms"],
    [350.4, "350ms"],
    [4_000, "4s"],
    [90_000, "1m30s"],
    [3_600_000, "1h"],
    [3_601_000, "1h"],
    [5_400_000, "1h30m"],
    [90_000_000, "1d1h"],
    [59_999, "1m"],
  ])("says %d ms as %s", (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });
});
