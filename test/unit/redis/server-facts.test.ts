import { expect, test } from "vitest";
import { askServer, checkServer, judgeServer, type ServerFacts } from "../../../src/backend/redis/server.ts";

const GOOD: ServerFacts = {
  product: "redis",
  version: "7.2.4",
  role: "master",
  maxMemoryBytes: 1000,
  evictionPolicy: "noeviction",
  usesAppendOnlyFile: true,
  appendFsync: "always",
  save: "",
};
const severities = (facts: ServerFacts | undefined): Record<string, string> =>
  Object.fromEntries(judgeServer(facts).map(({ check, severity }) => [check, severity]));

test("a good server is good in all respects", () => {
  checkServer(GOOD, "here", false);
  expect(severities(GOOD)).toEqual({ versions: "ok", "eviction-policy": "ok", persistence: "ok" });
});

test.each([
  [{ version: "6.2.14" }, /7\.0 or newer/],
  [{ version: "5.0.0" }, /7\.0 or newer/],
  [{ role: "slave" }, /replica/],
  [{ evictionPolicy: "allkeys-lru" }, /noeviction/],
  [{ evictionPolicy: "volatile-ttl" }, /noeviction/],
])("%j is refused at opening", (fault, words) => {
  expect(() => checkServer({ ...GOOD, ...fault }, "here", false)).toThrow(words);
});

test.each([
  [{ product: "valkey", version: "9.0.1" }, "versions", "ok"],
  [{ evictionPolicy: "allkeys-lru" }, "eviction-policy", "error"],
  [{ evictionPolicy: "allkeys-lru", maxMemoryBytes: 0 }, "eviction-policy", "warning"],
  [{ evictionPolicy: undefined }, "eviction-policy", "warning"],
  [{ appendFsync: "everysec" }, "persistence", "warning"],
  [{ usesAppendOnlyFile: false }, "persistence", "warning"],
  [{ usesAppendOnlyFile: undefined }, "persistence", "warning"],
])("%j makes %s %s", (change, check, severity) => {
  checkServer({ ...GOOD, ...change }, "here", true);
  expect(severities({ ...GOOD, ...change })[check]).toBe(severity);
});

test("a server that may not be asked is not known, and one that hides its settings is judged by the rest", async () => {
  const forbidden = new Error("NOPERM this user has no permissions to run the 'info' command");
  expect(await askServer(() => Promise.reject(forbidden))).toBeUndefined();
  expect(severities(undefined)).toEqual({ server: "warning" });
  const info =
    "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.0\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";
  const facts = await askServer((name) => (name === "info" ? Promise.resolve(Buffer.from(info)) : Promise.reject(forbidden)));
  expect(facts).toMatchObject({ product: "valkey", version: "8.1.0", appendFsync: undefined, usesAppendOnlyFile: true, maxMemoryBytes: 0 });
});
