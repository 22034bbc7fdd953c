/** A server that is away, frozen, busy, emptied or only a replica for a while: calls wait, errors are errors, and nobody has to restart. */

import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openRedis, type RedisOptions } from "../../src/backend/redis/index.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const JOBS = parseQueueName("jobs");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

let server: RedisServer;
let administrator: Redis;
const opened: Backend[] = [];
const errors: unknown[] = [];

async function open(options?: RedisOptions): Promise<Backend> {
  const store = await openRedis({ url: server.url, sweepIntervalMs: 50, onError: (error) => void errors.push(error), ...options });
  opened.push(store);
  return store;
}

beforeEach(async () => {
  server = await startRedisServer({ appendonly: true });
  administrator = new Redis(server.url);
  administrator.on("error", () => {});
  errors.length = 0;
});

afterEach(async () => {
  administrator.disconnect();
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await server.stop();
});

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    (answer) => answer,
    (thrown: unknown) => thrown,
  );
  return isQueueFSError(error) ? error.code : `no error of ours: ${JSON.stringify(error)}`;
}

test("calls made while the server is gone are answered when it is back, with everything that was there", async () => {
  const backend = await open();
  await backend.createQueue(JOBS);
  await backend.enqueue(JOBS, [{ data: bytes("a") }, { data: bytes("b") }]);
  const [held] = await backend.dequeue(JOBS);
  if (held === undefined) throw new Error("one message");
  await server.kill();
  const calls = Promise.all([
    backend.status(JOBS),
    backend.ack(JOBS, [{ receipt: held.receipt }]),
    backend.dequeue(JOBS),
    backend.statuses({ under: "" }),
  ]);
  const first = await Promise.race([calls, new Promise((resolve) => setTimeout(() => resolve("waits"), 500))]);
  expect(first).toBe("waits");
  await server.restart();
  const [status, acked, taken] = await calls;
  // Neither empty nor complete: one is held, one pending or held, depending on which call came first.
  expect(status.pending + status.processing).toBeGreaterThan(0);
  expect(acked).toEqual([{ outcome: "acked", forwarded: [] }]);
  expect(taken.map(({ data }) => data)).toEqual([bytes("b")]);
  expect(errors.every((error) => isQueueFSError(error, "store-unreachable"))).toBe(true);
  expect(errors.length).toBeGreaterThan(0);
});

test("a server that stays away is an error that says so, and the same open store works when it is back", async () => {
  const backend = await open({ outageMs: 300 });
  await backend.createQueue(JOBS);
  await backend.enqueue(JOBS, [{ data: bytes("a") }]);
  await server.kill();
  // Give the client time to see it: what was not sent has certainly not happened.
  while (errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const calls = [backend.status(JOBS), backend.dequeue(JOBS), backend.enqueue(JOBS, [{ data: bytes("b") }]), backend.recover()];
  expect(new Set(await Promise.all(calls.map(codeOf)))).toEqual(new Set(["store-unreachable"]));
  await server.restart();
  const deadline = performance.now() + 10_000;
  while ((await codeOf(backend.status(JOBS))) === "store-unreachable" && performance.now() < deadline);
  expect(await backend.status(JOBS)).toEqual({ pending: 1, processing: 0 });
});

test("a frozen server is noticed by its silence, and what it did late is done once", async () => {
  const backend = await open({ commandTimeoutMs: 200, connectTimeoutMs: 200 });
  await backend.createQueue(JOBS);
  await backend.enqueue(JOBS, [{ data: bytes("warm") }]);
  server.stopProcess();
  const calls = Array.from({ length: 20 }, (_, index) => backend.enqueue(JOBS, [{ data: bytes(String(index)) }]));
  // Longer than the command timeout, so that the calls have been sent again, perhaps several times.
  await new Promise((resolve) => setTimeout(resolve, 900));
  server.continueProcess();
  const ids = (await Promise.all(calls)).flat().map(({ id }) => id);
  const stored = (await backend.messages(JOBS)).items;
  expect(stored).toHaveLength(21);
  expect(
    stored
      .slice(1)
      .map(({ id }) => id)
      .toSorted(),
  ).toEqual(ids.toSorted());
});

test("close ends soon although the server is gone, and calls in the air end with an error", async () => {
  const backend = await open({ commandTimeoutMs: 300 });
  await backend.createQueue(JOBS);
  await server.kill();
  const call = codeOf(backend.status(JOBS));
  const begin = performance.now();
  await backend.close();
  expect(performance.now() - begin).toBeLessThan(3000);
  expect(["closed", "store-unreachable"]).toContain(await call);
  expect(await codeOf(backend.status(JOBS))).toBe("closed");
});

test("opening fails in its time when nobody answers, and leaves nothing that keeps the process alive", async () => {
  const { port } = server;
  await server.kill();
  const begin = performance.now();
  expect(await codeOf(openRedis({ url: `redis://127.0.0.1:${port}`, connectTimeoutMs: 300 }))).toBe("store-unreachable");
  expect(performance.now() - begin).toBeLessThan(5000);
});

test("cut connections and forgotten scripts are not seen by callers", async () => {
  const backend = await open();
  await backend.createQueue(JOBS);
  for (let round = 0; round < 5; round += 1) {
    const calls = Array.from({ length: 50 }, (_, index) => backend.enqueue(JOBS, [{ data: bytes(`${round}.${index}`) }]));
    await administrator.script("FLUSH");
    await administrator.call("client", "kill", "type", "normal", "skipme", "yes");
    await Promise.all(calls);
  }
  expect(await backend.status(JOBS)).toEqual({ pending: 250, processing: 0 });
  const texts = (await backend.messages(JOBS, { limit: 1000 })).items.map(({ data }) => new TextDecoder().decode(data));
  expect(new Set(texts).size).toBe(250);
});

test("a listener hears again after the server was away", async () => {
  const backend = await open();
  await backend.createQueue(JOBS);
  let calls = 0;
  let wake = (): void => {};
  const heard = (): Promise<void> => new Promise((resolve) => (wake = resolve));
  const stop = backend.subscribe(() => {
    calls += 1;
    wake();
  });
  await heard();
  const afterOutage = heard();
  await server.kill();
  await server.restart();
  // What happened meanwhile cannot be known: any queue may have changed.
  await afterOutage;
  const before = calls;
  const afterChange = heard();
  await backend.enqueue(JOBS, [{ data: bytes("a") }]);
  await afterChange;
  expect(calls).toBeGreaterThan(before);
  stop();
});

test("a server that is busy with a script of others, or a replica for a while, is waited for", async () => {
  const backend = await open();
  await backend.createQueue(JOBS);
  const killer = new Redis(server.url);
  await killer.config("SET", "busy-reply-threshold", "50");
  const endless = administrator.eval("while true do end", 0).catch((error: unknown) => String(error));
  const whileBusy = backend.enqueue(JOBS, [{ data: bytes("a") }]);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await killer.script("KILL");
  expect(await endless).toContain("killed");
  expect((await whileBusy)[0]?.outcome).toBe("enqueued");
  await killer.call("replicaof", "127.0.0.1", "1");
  const whileReplica = backend.enqueue(JOBS, [{ data: bytes("b") }]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await killer.call("replicaof", "no", "one");
  expect((await whileReplica)[0]?.outcome).toBe("enqueued");
  expect(await backend.status(JOBS)).toEqual({ pending: 2, processing: 0 });
  killer.disconnect();
});

test("a server that stays a replica takes no writes, which is not the same as empty", async () => {
  const backend = await open({ outageMs: 200 });
  await backend.createQueue(JOBS);
  await backend.enqueue(JOBS, [{ data: bytes("a") }]);
  await administrator.call("replicaof", "127.0.0.1", "1");
  expect(await codeOf(backend.dequeue(JOBS))).toBe("store-read-only");
  expect(await codeOf(openRedis({ url: server.url }))).toBe("store-unsuitable");
  await administrator.call("replicaof", "no", "one");
  expect(await backend.dequeue(JOBS)).toHaveLength(1);
});

test("an emptied server has no queues: they are not found, and new ones share nothing with the old", async () => {
  const backend = await open();
  const other = parseQueueName("other");
  await backend.createQueue(JOBS);
  await backend.createQueue(other);
  await backend.enqueue(JOBS, [{ data: bytes("a") }]);
  const [held] = await backend.dequeue(JOBS);
  await administrator.flushall();
  expect(await codeOf(backend.status(JOBS))).toBe("queue-not-found");
  expect(await codeOf(backend.enqueue(JOBS, [{ data: bytes("b") }]))).toBe("queue-not-found");
  // The numbers of queues begin anew, so that this one has the number that JOBS had.
  expect(await backend.createQueue(other)).toBe("created");
  expect(await codeOf(backend.status(JOBS))).toBe("queue-not-found");
  expect(await backend.createQueue(JOBS)).toBe("created");
  expect(await backend.ack(JOBS, [{ receipt: held?.receipt ?? ("" as never) }])).toEqual([{ outcome: "stale" }]);
  await backend.enqueue(JOBS, [{ data: bytes("c") }]);
  expect(await backend.statuses({ under: "" })).toEqual([
    { queue: JOBS, pending: 1, processing: 0 },
    { queue: other, pending: 0, processing: 0 },
  ]);
});
