import { constants } from "node:os";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  assert,
  closedError,
  ERROR_TABLE,
  type ErrorCode,
  EXIT_CODE_EMPTY,
  isQueueFSError,
  QueueFSError,
  queueNotFound,
  quote,
} from "../../../src/core/errors.ts";

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[];

it("every row has an errno of POSIX, an HTTP status of an error and an exit code that a shell can tell", () => {
  for (const code of CODES) {
    const { errno, httpStatus, exitCode, meaning } = ERROR_TABLE[code];
    expect(errno === "ESHUTDOWN" || errno in constants.errno, `${code}: ${errno}`).toBe(true);
    expect(httpStatus >= 400 && httpStatus < 600, code).toBe(true);
    expect(Number.isInteger(exitCode) && exitCode >= 1 && exitCode <= 125 && exitCode !== EXIT_CODE_EMPTY, code).toBe(true);
    expect(meaning.length, code).toBeGreaterThan(10);
    expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/);
  }
});

it("maps the failures that the contract names as it says", () => {
  const errnos: Partial<Record<ErrorCode, string>> = {
    "queue-not-found": "ENOENT",
    "wrong-mode": "EACCES",
    "invalid-name": "EINVAL",
    "reserved-name": "EINVAL",
    "message-too-large": "EFBIG",
    "not-in-processing": "ENOENT",
    "store-full": "ENOSPC",
  };
  for (const [code, errno] of Object.entries(errnos)) expect(ERROR_TABLE[code as ErrorCode].errno).toBe(errno);
});

it("an error carries its row and its cause", () => {
  for (const code of CODES) {
    const cause = new Error("underneath");
    const error = new QueueFSError(code, "what was wrong", { cause });
    const { errno, httpStatus, exitCode, retryable } = error;
    expect({ errno, httpStatus, exitCode, retryable }).toEqual({
      errno: ERROR_TABLE[code].errno,
      httpStatus: ERROR_TABLE[code].httpStatus,
      exitCode: ERROR_TABLE[code].exitCode,
      retryable: ERROR_TABLE[code].retryable,
    });
    expect(error).toBeInstanceOf(Error);
    expect([error.name, error.message, error.cause]).toEqual(["QueueFSError", "what was wrong", cause]);
    expect(isQueueFSError(error)).toBe(true);
    expect(CODES.filter((other) => isQueueFSError(error, other))).toEqual([code]);
  }
  expect(isQueueFSError(new Error("other"))).toBe(false);
  expect(isQueueFSError({ code: "closed" }, "closed")).toBe(false);
});

it("an unknown outcome is never called retryable, since the step may have happened", () => {
  expect(ERROR_TABLE["outcome-unknown"].retryable).toBe(false);
});

it("the errors with words of their own have their codes", () => {
  expect(queueNotFound("a/b")).toMatchObject({ code: "queue-not-found" });
  expect(queueNotFound("a/b").message).toMatch(/"a\/b" not found/);
  expect(closedError("the store")).toMatchObject({ code: "closed" });
  expect(() => assert(0, "one is one")).toThrowError(/broken invariant: one is one/);
  expect(() => assert("yes", "one is one")).not.toThrow();
});

it("quote makes a short text of anything and never throws", () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const hostile = {
    toJSON: () => {
      throw new Error("no");
    },
  };
  for (const value of [
    circular,
    hostile,
    Symbol("x"),
    () => 1,
    5n,
    undefined,
    null,
    Number.NaN,
    new Map(),
    "x".repeat(1000),
    Object.create(null),
  ])
    expect(quote(value).length).toBeLessThanOrEqual(100);
  expect(quote("a\nb")).toBe('"a\\nb"');
  expect(quote(5n)).toBe("5n");
  expect(quote("x".repeat(200))).toMatch(/\.\.\.$/);
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), (value) => {
      expect(quote(value).length).toBeLessThanOrEqual(100);
    }),
  );
});
