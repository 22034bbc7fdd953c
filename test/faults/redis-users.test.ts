/** Passwords and users with few rights: what a namespace needs is enough, and what is refused is said plainly, without secrets. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRedis } from "../../src/backend/redis/index.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const JOBS = parseQueueName("jobs");
const data = new TextEncoder().encode("a");

let server: RedisServer;
let administrator: Redis;

beforeAll(async () => {
  server = await startRedisServer();
  administrator = new Redis(server.url);
  const rights = ["~{own}:*", "&{own}:*", "+@read", "+@write", "+@scripting", "+@connection", "+@pubsub", "+time", "-@dangerous"];
  await administrator.call("acl", "setuser", "worker", "on", ">secret-of-worker", ...rights);
  await administrator.call("acl", "setuser", "stranger", "on", ">secret-of-stranger", "~{other}:*", "+@all", "-@dangerous");
});

afterAll(async () => {
  administrator.disconnect();
  await server.stop();
});

const urlOf = (user: string, password: string): string => `redis://${user}:${password}@127.0.0.1:${server.port}`;

test("a user who may use the keys and the channel of the namespace, and ask nothing of the server, can do everything", async () => {
  const told: unknown[] = [];
  const options = { url: urlOf("worker", "secret-of-worker"), namespace: "own", onError: (error: unknown) => void told.push(error) };
  const backend = await openRedis(options);
  expect(told).toHaveLength(1);
  expect(isQueueFSError(told[0], "store-unsuitable")).toBe(true);
  expect(backend.description.location).not.toContain("secret");
  expect(await backend.createQueue(JOBS)).toBe("created");
  const heard = new Promise<void>((resolve) => void backend.subscribe((queues) => queues?.has(JOBS) && resolve()));
  while ((await administrator.call("pubsub", "numsub", "{own}:changes").then((reply) => (reply as unknown[])[1])) === 0);
  await backend.enqueue(JOBS, [{ data }]);
  await heard;
  const [held] = await backend.dequeue(JOBS);
  expect(await backend.ack(JOBS, [{ receipt: held?.receipt ?? ("" as never) }])).toEqual([{ outcome: "acked", forwarded: [] }]);
  expect(await backend.removeQueue(JOBS)).toBe(1);
  const findings = await backend.inspect();
  expect(findings).toContainEqual(expect.objectContaining({ severity: "warning", check: "server" }));
  expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
  await backend.close();
  expect(told).toHaveLength(1);
});

test.each([
  ["worker", "wrong-password", "own"],
  ["nobody", "secret-of-worker", "own"],
  ["stranger", "secret-of-stranger", "own"],
])("%s with %s is refused at once, without waiting for the connect timeout, and no secret is told", async (user, password, namespace) => {
  const begin = performance.now();
  const error: unknown = await openRedis({ url: urlOf(user, password), namespace, connectTimeoutMs: 60_000, onError: () => {} }).catch(
    (thrown: unknown) => thrown,
  );
  expect(isQueueFSError(error, "store-failed"), String(error)).toBe(true);
  expect(String(error)).toContain("ACL");
  expect(String(error)).not.toContain(password);
  expect(performance.now() - begin).toBeLessThan(10_000);
});
