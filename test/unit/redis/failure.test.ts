import { expect, test } from "vitest";
import { classify, isCertain, isRefusal, translate } from "../../../src/backend/redis/failure.ts";

const reply = (text: string): Error => Object.assign(new Error(text), { name: "ReplyError" });
const WHERE = "redis://127.0.0.1:1, namespace test";

test.each([
  ["NOSCRIPT No matching script. Please use EVAL.", "load"],
  ["LOADING Redis is loading the dataset in memory", "wait"],
  ["BUSY Redis is busy running a script.", "wait"],
  ["READONLY You can't write against a read only replica.", "wait"],
  ["MASTERDOWN Link with MASTER is down", "wait"],
  ["CLUSTERDOWN The cluster is down", "wait"],
  ["TRYAGAIN Multiple keys request during rehashing of slot", "wait"],
  ["OOM command not allowed when used memory > 'maxmemory'.", "final"],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", "final"],
  ["NOAUTH Authentication required.", "final"],
  ["ERR unknown command", "final"],
] as const)("the reply %j is %s", (text, kind) => {
  expect(classify(reply(text))).toBe(kind);
});

test.each([
  ["Stream isn't writeable and enableOfflineQueue options is false", "unsent"],
  ["Connection is closed.", "lost"],
  ["Reached the max retries per request limit (which is 0).", "lost"],
  ["read ECONNRESET", "lost"],
] as const)("the error of the connection %j is %s", (text, kind) => {
  expect(classify(new Error(text))).toBe(kind);
});

test.each([
  ["OOM command not allowed", "store-full"],
  ["MISCONF Redis is configured to save RDB snapshots", "store-read-only"],
  ["READONLY You can't write against a read only replica.", "store-read-only"],
  ["NOREPLICAS Not enough good replicas to write.", "store-read-only"],
  ["WRONGTYPE Operation against a key", "store-corrupt"],
  ["CORRUPT the record of a queue cannot be read", "store-corrupt"],
  ["UNCERTAIN an earlier run of this request broke off", "outcome-unknown"],
  ["SUPERSEDED a later request of this session has been answered", "outcome-unknown"],
  ["BUSY Redis is busy", "store-busy"],
  ["LOADING Redis is loading", "store-unreachable"],
  ["NOPERM this user has no permissions", "store-failed"],
  ["ERR something new", "store-failed"],
] as const)("%j is told as %s, with where it was", (text, code) => {
  const error = translate(reply(text), WHERE);
  expect(error.code).toBe(code);
  expect(error.message).toContain(WHERE);
  expect(translate(error, "elsewhere")).toBe(error);
});

test("only what our scripts raise before they change anything is certain", () => {
  expect(["OOM x", "WRONGTYPE x", "CORRUPT x", "CHANGED x"].every((text) => isCertain(reply(text)))).toBe(true);
  expect(["NOAUTH x", "ERR x", "READONLY x"].some((text) => isCertain(reply(text)))).toBe(false);
  expect(isRefusal(reply("WRONGPASS invalid username-password pair"))).toBe(true);
  expect(isRefusal(reply("LOADING x"))).toBe(false);
});
