import { expect, test } from "vitest";
import { readFailure } from "../../../src/backend/http/failure.ts";
import type { Received } from "../../../src/backend/http/transport.ts";
import { QueueFSError } from "../../../src/core/errors.ts";
import { problemOf } from "../../../src/core/wire.ts";

function answer(status: number, body: string): Received {
  return { status, headers: {}, body: Buffer.from(body) };
}

test.each([
  ["closed", "unsent"],
  ["overloaded", "unsent"],
  ["store-busy", "final"],
  ["store-unreachable", "final"],
  ["outcome-unknown", "final"],
  ["queue-not-found", "final"],
  ["internal", "final"],
  ["unauthenticated", "refused"],
  ["forbidden", "refused"],
] as const)("the server's own %s is %s", (code, failure) => {
  const problem = problemOf(new QueueFSError(code, "words"));
  expect(readFailure(answer(problem.status, JSON.stringify(problem)), "http://host")).toEqual({
    failure,
    error: expect.objectContaining({ code, message: "words" }),
  });
});

test.each([
  [429, "", "unsent", "store-unreachable"],
  [503, "<html>", "unsent", "store-unreachable"],
  [502, "<html>", "lost", "store-unreachable"],
  [504, "null", "lost", "store-unreachable"],
  [413, "too large", "refused", "message-too-large"],
  [401, "", "refused", "unauthenticated"],
  [407, "", "refused", "unauthenticated"],
  [403, "", "refused", "forbidden"],
  [404, "<html>", "refused", "store-unsuitable"],
  [301, "", "refused", "store-unsuitable"],
  [500, '{"error":"x"}', "refused", "store-unsuitable"],
] as const)("status %i of somebody else is %s", (status, body, failure, code) => {
  expect(readFailure(answer(status, body), "http://host")).toEqual({ failure, error: expect.objectContaining({ code }) });
});
