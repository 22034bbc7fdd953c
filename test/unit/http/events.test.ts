/** The stream of events, over real sockets. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openHttp } from "../../../src/backend/http/index.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import { parseQueueName, type Receipt, type TaskId } from "../../../src/core/names.ts";
import type { ListenOptions } from "../../../src/http/index.ts";
import { type EventStream, openEvents } from "../../support/event-stream.ts";
import { startServer, type TestServer } from "../../support/raw-http.ts";

const A = parseQueueName("a");
const UNDER = parseQueueName("in/under");
const data = new TextEncoder().encode("m");

let server: TestServer;
const streams: EventStream[] = [];
afterEach(async () => {
  for (const stream of streams.splice(0)) stream.leave();
  await server.close();
});

async function start(options: ListenOptions = {}, store?: Backend): Promise<void> {
  server = await startServer({ eventIntervalMs: 5, ...options }, store);
  for (const queue of [A, UNDER]) await server.backend.createQueue(queue);
}

async function listenTo(query = "", headers: Record<string, string> = {}): Promise<EventStream> {
  const stream = await openEvents(`${server.api}/events${query}`, headers);
  streams.push(stream);
  return stream;
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !condition(); tries += 1) await sleep(5);
  expect(condition()).toBe(true);
}

describe("hints", () => {
  it("name the queues that changed, and tell of tasks", async () => {
    await start();
    const stream = await listenTo();
    expect(stream).toMatchObject({ status: 200, headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
    await server.backend.enqueue(A, [{ data }]);
    expect((await stream.next("change")).data).toEqual({ queues: ["a"] });
    await server.backend.createTask({ type: "t", producer: { leaseMs: 60_000 } });
    expect((await stream.next("change")).data).toEqual({ queues: [], tasks: true });
  });

  it("wake our own client", async () => {
    await start();
    const client = await openHttp({ url: server.server.url, pollIntervalMs: 60_000 });
    const heard: (readonly string[] | undefined)[] = [];
    client.subscribe((queues) => void heard.push(queues && [...queues]));
    await until(() => heard.length === 1);
    await server.backend.enqueue(A, [{ data }]);
    await until(() => heard.length === 2);
    expect(heard).toEqual([undefined, ["a"]]);
    await client.close();
  });

  it("come merged, and not more often than allowed", async () => {
    await start({ eventIntervalMs: 100 });
    const stream = await listenTo();
    const begunMs = performance.now();
    for (let turn = 0; turn < 60; turn += 1) {
      await server.backend.enqueue(turn % 2 === 0 ? A : UNDER, [{ data }]);
      await sleep(5);
    }
    const tookMs = performance.now() - begunMs;
    await sleep(150);
    expect(stream.events.length).toBeGreaterThan(1);
    expect(stream.events.length).toBeLessThanOrEqual(tookMs / 100 + 3);
    expect(stream.events.some(({ data: { queues } }) => queues.length === 2)).toBe(true);
  });

  it("of more queues than are worth naming are of any", async () => {
    await start();
    const stream = await listenTo();
    await Promise.all(Array.from({ length: 1_100 }, (_, index) => server.backend.createQueue(parseQueueName(`many/${index}`))));
    await stream.next("change", ({ queues }) => queues === null);
  });
});

describe("statuses", () => {
  it("of a path are first all, then those that changed, then names of removed ones", async () => {
    await start();
    const stream = await listenTo("?under=in");
    expect((await stream.next("snapshot")).data).toEqual({ statuses: [{ queue: "in/under", pending: 0, processing: 0 }] });
    await server.backend.enqueue(A, [{ data }]);
    await server.backend.enqueue(UNDER, [{ data }]);
    expect((await stream.next("status")).data).toEqual({ statuses: [{ queue: "in/under", pending: 1, processing: 0 }] });
    await server.backend.createQueue(parseQueueName("in/new"));
    expect((await stream.next("status")).data).toEqual({ statuses: [{ queue: "in/new", pending: 0, processing: 0 }] });
    await server.backend.removeQueue(UNDER);
    expect((await stream.next("status")).data).toEqual({ statuses: [], removed: ["in/under"] });
  });

  it("of a queue leave out what lies under it, and say when it is gone and comes back", async () => {
    await start();
    await server.backend.createQueue(parseQueueName("a/b"));
    const stream = await listenTo("?queue=a");
    expect((await stream.next("snapshot")).data).toEqual({ statuses: [{ queue: "a", pending: 0, processing: 0 }] });
    await server.backend.enqueue(parseQueueName("a/b"), [{ data }]);
    await server.backend.enqueue(A, [{ data }]);
    await server.backend.dequeue(A);
    expect((await stream.next("status", ({ statuses }) => statuses[0]?.processing === 1)).data).toEqual({
      statuses: [{ queue: "a", pending: 0, processing: 1 }],
    });
    await server.backend.removeQueue(A, { recursive: true });
    expect((await stream.next("status")).data).toEqual({ statuses: [], removed: ["a"] });
    await server.backend.createQueue(A);
    expect((await stream.next("status")).data).toEqual({ statuses: [{ queue: "a", pending: 0, processing: 0 }] });
  });

  it("are one snapshot after every event: work that is forwarded is never out of sight", async () => {
    await start({ eventIntervalMs: 0 });
    const stream = await listenTo("?under=");
    const known = new Map<string, number>();
    let isBusy = false;
    let wrong = 0;
    let seen = 0;
    const follow = (): void => {
      for (; seen < stream.events.length; seen += 1) {
        for (const { queue, pending, processing } of stream.events[seen]?.data.statuses ?? []) known.set(queue, pending + processing);
        const unacked = [...known.values()].reduce((sum, each) => sum + each, 0);
        isBusy ||= unacked > 0;
        if (isBusy && unacked === 0) wrong += 1;
      }
    };
    await server.backend.enqueue(A, [{ data }]);
    for (let turn = 0; turn < 300; turn += 1) {
      const [from, to] = turn % 2 === 0 ? [A, UNDER] : [UNDER, A];
      const [message] = await server.backend.dequeue(from);
      await server.backend.enqueue(to, [{ data }]);
      await server.backend.ack(from, [{ receipt: message?.receipt as Receipt }]);
      await sleep(1);
      follow();
    }
    expect(stream.events.length).toBeGreaterThan(10);
    expect(wrong).toBe(0);
  });

  it("hear of what another process did", async () => {
    const { mkdtempSync, rmSync } = await import("node:fs");
    const folder = mkdtempSync("/tmp/queuefs-events-");
    const path = `${folder}/store.db`;
    await start({}, await openSqlite({ path }));
    const stream = await listenTo("?queue=a");
    await stream.next("snapshot");
    const other = await openSqlite({ path });
    await other.enqueue(A, [{ data }]);
    expect((await stream.next("status")).data).toEqual({ statuses: [{ queue: "a", pending: 1, processing: 0 }] });
    await other.close();
    stream.leave();
    rmSync(folder, { recursive: true });
  });
});

describe("a task", () => {
  it("is told whole at every change, and when it is gone", async () => {
    await start();
    await server.backend.createTask({ id: "job" as TaskId, type: "t" }, [{ queue: A, messages: [{ data }] }]);
    const stream = await listenTo("?task=job");
    expect((await stream.next("task")).data).toMatchObject({ id: "job", status: "pending", progress: { total: 1, unacked: 1 } });
    const [message] = await server.backend.dequeue(A);
    expect((await stream.next("task")).data).toMatchObject({ status: "running" });
    await server.backend.ack(A, [{ receipt: message?.receipt as Receipt }]);
    expect((await stream.next("task", ({ status }) => status !== "running")).data).toMatchObject({
      status: "completed",
      progress: { done: 1 },
    });
    await server.backend.removeTask("job" as TaskId);
    expect((await stream.next("removed")).data).toEqual({ task: "job" });
  });
});

describe("a stream", () => {
  it("is refused with a problem where it cannot be", async () => {
    await start({ maxEventReaders: 1 });
    const wrong: [string, number, string][] = [
      ["?queue=missing", 404, "queue-not-found"],
      ["?task=missing", 404, "task-not-found"],
      ["?queue=a&under=a", 400, "invalid-argument"],
      ["?queue=a&queue=b", 400, "invalid-argument"],
      ["?queue=", 400, "invalid-name"],
      ["?queue=a%2F%2Fb", 400, "invalid-name"],
      ["?nope=1", 400, "invalid-argument"],
    ];
    for (const [query, status, code] of wrong) {
      const answer = await fetch(`${server.api}/events${query}`);
      expect({ query, status: answer.status, code: ((await answer.json()) as { code: string }).code }).toEqual({ query, status, code });
    }
    // What was refused takes no place.
    const stream = await listenTo();
    expect(stream.status).toBe(200);
    const second = await fetch(`${server.api}/events`);
    expect(second.status).toBe(503);
    expect(second.headers.get("retry-after")).toBe("1");
    expect(await second.json()).toMatchObject({ code: "overloaded" });
    stream.leave();
    await until(() => true);
    for (let tries = 0; tries < 100; tries += 1) {
      const again = await listenTo();
      if (again.status === 200) return;
      await sleep(10);
    }
    expect.unreachable("a reader that left still takes a place");
  });

  it("asked for by HEAD takes no place", async () => {
    await start({ maxEventReaders: 1 });
    expect((await fetch(`${server.api}/events`, { method: "HEAD" })).status).toBe(200);
    await sleep(20);
    expect((await listenTo()).status).toBe(200);
  });

  it("shows that it lives, and its ids stay fresh while nothing of its business happens", async () => {
    await start({ eventHeartbeatMs: 50, eventHistory: 4 });
    const stream = await listenTo("?queue=a");
    await stream.next("snapshot");
    const before = stream.lastId();
    for (let turn = 0; turn < 20; turn += 1) {
      await server.backend.enqueue(UNDER, [{ data }]);
      await sleep(10);
    }
    await until(() => stream.beats() >= 3);
    expect(stream.events).toHaveLength(1);
    expect(stream.lastId()).not.toBe(before);
    const again = await listenTo("?queue=a", { "last-event-id": stream.lastId() ?? "" });
    await server.backend.enqueue(A, [{ data }]);
    await again.next("status");
    expect(again.events.map(({ event }) => event)).toEqual(["status"]);
  });

  it("ends when the server stops, which then ends at once", async () => {
    await start();
    const all = await Promise.all([listenTo(), listenTo("?under="), listenTo("?queue=a")]);
    const begunMs = performance.now();
    const { finished, released } = await server.server.stop();
    expect({ finished, released }).toEqual({ finished: 3, released: 0 });
    expect(performance.now() - begunMs).toBeLessThan(2_000);
    await Promise.all(all.map(({ ended }) => ended));
  });

  it("of a client that is gone is let go of", async () => {
    await start();
    const stream = await listenTo("?under=");
    const metrics = async (): Promise<string> => (await fetch(`${server.server.url}/metrics`)).text();
    expect(await metrics()).toMatch(/^queuefs_http_event_readers 1$/m);
    stream.leave();
    for (let tries = 0; tries < 100 && !/^queuefs_http_event_readers 0$/m.test(await metrics()); tries += 1) await sleep(10);
    expect(await metrics()).toMatch(/^queuefs_http_event_readers 0$/m);
  });
});

describe("Last-Event-ID", () => {
  it("gets what changed since, and no more", async () => {
    await start();
    const first = await listenTo("?under=");
    await first.next("snapshot");
    await server.backend.enqueue(A, [{ data }]);
    const { id } = await first.next("status");
    first.leave();
    const other = await listenTo();
    await server.backend.enqueue(UNDER, [{ data }]);
    await other.next("change");
    await server.backend.createQueue(parseQueueName("short"));
    await other.next("change");
    await server.backend.removeQueue(parseQueueName("short"));
    await other.next("change");
    const again = await listenTo("?under=", { "last-event-id": id as string });
    expect((await again.next("status")).data).toEqual({ statuses: [{ queue: "in/under", pending: 1, processing: 0 }], removed: ["short"] });
    const hints = await listenTo("", { "last-event-id": id as string });
    expect(new Set((await hints.next("change")).data.queues)).toEqual(new Set(["in/under", "short"]));
    expect([...again.events, ...hints.events].map(({ event }) => event)).toEqual(["status", "change"]);
  });

  it("of what is not remembered, or of another life of the server, is told as a gap with all that there is", async () => {
    await start({ eventHistory: 3, eventIntervalMs: 0 });
    const first = await listenTo();
    await until(() => first.lastId() !== undefined);
    const old = first.lastId() as string;
    for (let turn = 0; turn < 10; turn += 1) {
      await server.backend.enqueue(A, [{ data }]);
      await first.next("change");
    }
    for (const id of [old, "0123456789ab.3", "nonsense", "é"]) {
      const stream = await listenTo("?queue=a", { "last-event-id": Buffer.from(id).toString("latin1") });
      await stream.next("snapshot");
      expect(stream.events).toMatchObject([
        { event: "gap", data: { reason: expect.any(String) } },
        { event: "snapshot", data: { statuses: [{ queue: "a", pending: 10, processing: 0 }] } },
      ]);
    }
    const hints = await listenTo("", { "last-event-id": old });
    await hints.next("gap");
    expect((await hints.next("change")).data).toEqual({ queues: null, tasks: true });
  });
});

describe("a reader that does not read", () => {
  it("costs a bounded buffer, and hears of a gap and of what there is once it reads again", async () => {
    await start({ eventIntervalMs: 0, eventHistory: 50, minimumBytesPerSecond: 0 });
    // Long names, so that the kernel's buffers are full soon.
    const names = Array.from({ length: 400 }, (_, index) => parseQueueName(`deep/${"x".repeat(200)}${index}`));
    for (const name of names) await server.backend.createQueue(name);
    const slow = await listenTo("?under=deep");
    await slow.next("snapshot");
    slow.pause();
    const quick = await listenTo("?queue=a");
    await quick.next("snapshot");
    const before = process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
    for (let turn = 0; turn < 400; turn += 1) {
      await Promise.all(names.map((name) => server.backend.enqueue(name, [{ data: new Uint8Array() }])));
      await server.backend.enqueue(A, [{ data: new Uint8Array() }]);
      await quick.next("status");
    }
    // 400 snapshots of 100 kB each would be 40 MB and more.
    expect(slow.events.length).toBe(1);
    expect(process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed - before).toBeLessThan(200 * 1024 * 1024);
    slow.resume();
    const { data: all } = await (async () => {
      await slow.next("gap");
      return slow.next("snapshot");
    })();
    expect(all.statuses).toHaveLength(400);
    expect(all.statuses.every(({ pending }: { pending: number }) => pending === 400)).toBe(true);
    expect(await (await fetch(`${server.server.url}/metrics`)).text()).toMatch(/^queuefs_http_event_gaps_total 1$/m);
  }, 60_000);
});

describe("tokens", () => {
  const tokens = [{ secret: "all-of-it-0123456789" }, { secret: "only-in-0123456789", queues: [parseQueueName("in")], readOnly: true }];
  const bearer = (secret = ""): Record<string, string> => ({ authorization: `Bearer ${secret}` });

  it("are asked for, and hear of their queues only", async () => {
    await start({ tokens });
    expect((await listenTo()).status).toBe(401);
    const limited = bearer(tokens[1]?.secret);
    for (const query of ["?queue=a", "?under=", "?under=a"]) expect((await listenTo(query, limited)).status).toBe(403);
    const all = await listenTo("", bearer(tokens[0]?.secret));
    const some = await listenTo("", limited);
    const under = await listenTo("?under=in", limited);
    await under.next("snapshot");
    await server.backend.enqueue(A, [{ data }]);
    await all.next("change", ({ queues }) => queues.includes("a"));
    await server.backend.enqueue(UNDER, [{ data }]);
    expect((await some.next("change")).data).toEqual({ queues: ["in/under"] });
    await under.next("status");
    expect(JSON.stringify([...some.events, ...under.events])).not.toContain('"a"');
    const resumed = await listenTo("", { ...limited, "last-event-id": `${some.lastId()?.split(".")[0]}.0` });
    expect((await resumed.next("change")).data).toEqual({ queues: ["in/under"] });
  });
});

describe("200 readers", () => {
  it("hear all of it beside load, with bounded delay", async () => {
    await start({ eventIntervalMs: 50 });
    const readers = await Promise.all(Array.from({ length: 200 }, (_, index) => listenTo(["", "?queue=a", "?under="][index % 3])));
    expect(new Set(readers.map(({ status }) => status))).toEqual(new Set([200]));
    const durations: number[] = [];
    for (let turn = 0; turn < 300; turn += 1) {
      const begunMs = performance.now();
      await fetch(`${server.api}/queues/a/messages`, { method: "POST", body: "m" });
      durations.push(performance.now() - begunMs);
    }
    await Promise.all(
      readers.map((reader, index) =>
        index % 3 === 0
          ? reader.next("change")
          : reader.next("status", ({ statuses }) => statuses.some(({ pending }: { pending: number }) => pending === 300)),
      ),
    );
    durations.sort((left, right) => left - right);
    expect(durations[150]).toBeLessThan(100);
    // Merged: nobody heard of each enqueue by itself.
    for (const { events } of readers) expect(events.length).toBeLessThan(250);
  }, 30_000);
});
