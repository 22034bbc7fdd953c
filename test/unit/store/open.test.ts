import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { QueueName } from "../../../src/core/names.ts";
import { openStore, type StoreOptions } from "../../../src/store/open.ts";
import { type RedisServer, startRedisServer } from "../../support/redis-server.ts";

const JOBS = "jobs" as QueueName;
const SECRET = "open-sesame";

let folder: string;
let server: RedisServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-open-"));
  server = await startRedisServer();
});

afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** What the refusal says. */
async function refusal(location: unknown, options?: StoreOptions): Promise<string> {
  try {
    const backend = await openStore(location as string, options);
    await backend.close();
  } catch (error) {
    expect(error).toMatchObject({ name: "QueueFSError", code: "invalid-argument" });
    return (error as Error).message;
  }
  throw new Error(`${String(location)} was opened`);
}

describe("the scheme chooses the backend", () => {
  it.each([
    ["memory", () => "memory:"],
    ["memory", () => "MEMORY:"],
    ["sqlite", () => `sqlite:${join(folder, "per%20cent and space.db")}`],
    ["redis", () => server.url],
    ["redis", () => server.url.replace("redis:", "valkey:")],
    ["redis", () => server.url.replace("redis:", "Redis:")],
  ])("%s", async (kind, location) => {
    await using backend = await openStore(location(), { maxMessageBytes: 12_345 });
    expect(backend.description).toMatchObject({ kind, maxMessageBytes: 12_345 });
    expect(["created", "exists"]).toContain(await backend.createQueue(JOBS));
  });

  it("takes the path of a file as it is", async () => {
    expect(await readdir(folder)).toContain("per%20cent and space.db");
  });

  it("opens a new memory store each time", async () => {
    await using one = await openStore("memory:");
    await using other = await openStore("memory:");
    await one.createQueue(JOBS);
    expect((await other.listQueues()).items).toEqual([]);
  });

  it("keeps namespaces of one server apart", async () => {
    await using one = await openStore(`${server.url}?namespace=one`);
    await using other = await openStore(`${server.url}?namespace=other`);
    await using same = await openStore(`${server.url}?namespace=one`);
    await one.createQueue(JOBS);
    expect((await other.listQueues()).items).toEqual([]);
    expect((await same.listQueues()).items).toEqual([JOBS]);
  });

  it("passes the clock and the errors of the background on", async () => {
    const wallMs = 1_234_567_890_123;
    const clock = { monotonicMs: () => 5, wallMs: () => wallMs, setTimer: () => ({ cancel: () => {} }) };
    await using backend = await openStore("memory:", { clock, onError: () => {} });
    await backend.createQueue(JOBS);
    expect((await backend.statistics(JOBS)).createdAtMs).toBe(wallMs);
  });
});

describe("what is not understood is refused, with what would be right", () => {
  it.each(["", "queue.db", "/var/lib/queue.db", "file:queue.db", "postgres://localhost/x", undefined, 7, null])("%s", async (location) => {
    const message = await refusal(location);
    for (const form of ["memory:", "sqlite:FILE", "redis://", "valkey://"]) expect(message).toContain(form);
  });

  it.each(["memory:x", "memory://", "sqlite:"])("%s", async (location) => {
    expect(await refusal(location)).toMatch(/memory:|sqlite:queue\.db/);
  });

  it("a parameter of a server's location that there is not", async () => {
    expect(await refusal(`${server.url}?namespac=x`)).toContain("namespace");
  });

  it("an option that the backend does not have", async () => {
    expect(await refusal("memory:", { durability: "full" })).toContain("durability");
    expect(await refusal(server.url, { durability: "full" })).toContain("durability");
  });

  it.each([
    "redos://user:SECRET@host/",
    "redis://user:SECRET@host/?namespac=x",
    "redis://user:SECRET@host:port/",
    "valkey://user:SECRET@[/",
  ])("%s, without telling the password", async (location) => {
    expect(await refusal(location.replace("SECRET", SECRET))).not.toContain(SECRET);
  });
});
