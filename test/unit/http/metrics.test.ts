/** What Prometheus is told, held to what the store says. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import type { QueueSelection } from "../../../src/core/message.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import type { ListenOptions } from "../../../src/http/index.ts";
import { openEvents } from "../../support/event-stream.ts";
import { startServer, type TestServer } from "../../support/raw-http.ts";

const data = new TextEncoder().encode("m");
let server: TestServer | undefined;
afterEach(() => server?.close());

async function start(options: ListenOptions = {}, store?: Backend): Promise<TestServer> {
  server = await startServer(options, store);
  return server;
}

/** Samples by name and labels, as they are written. */
async function scrape(headers: Record<string, string> = {}): Promise<Map<string, number>> {
  const answer = await fetch(`${server?.server.url}/metrics`, { headers });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  const text = await answer.text();
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    expect(line).toMatch(/^[a-z_:][a-z0-9_:]*(?:\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)+\})? \S+$/i);
    const at = line.lastIndexOf(" ");
    const name = line.slice(0, at);
    // Each sample once, or Prometheus refuses all of them.
    expect(samples.has(name)).toBe(false);
    samples.set(name, Number(line.slice(at + 1)));
  }
  return samples;
}

describe("/metrics", () => {
  it("agrees with status and statistics, and forgets queues that are gone", async () => {
    const { backend } = await start();
    const busy = parseQueueName('b/"quoted" \\ é');
    const idle = parseQueueName("idle");
    for (const queue of [busy, idle]) await backend.createQueue(queue, { maxDeliveries: 0 });
    await backend.enqueue(
      busy,
      Array.from({ length: 10 }, (_, index) => ({ data, delayMs: index === 9 ? 60_000 : 0 })),
    );
    const [one, two, three] = await backend.dequeue(busy, { limit: 4 });
    if (one === undefined || two === undefined || three === undefined) throw new Error("nothing was taken");
    await backend.ack(busy, [{ receipt: one.receipt }]);
    await backend.nack(busy, [{ receipt: two.receipt, giveUp: true }]);
    await backend.nack(busy, [{ receipt: three.receipt }]);
    const samples = await scrape();
    const label = '{queue="b/\\"quoted\\" \\\\ é"}';
    const { pending, processing } = await backend.status(busy);
    const expected: Record<string, number> = {
      pending_messages: pending,
      processing_messages: processing,
      delayed_messages: 1,
      dead_messages: 1,
      enqueued_messages_total: 10,
      deliveries_total: 4,
      acked_messages_total: 1,
      returned_deliveries_total: 1,
      dead_lettered_messages_total: 1,
      cleared_messages_total: 0,
    };
    expect({ pending, processing }).toEqual({ pending: 7, processing: 1 });
    for (const [name, value] of Object.entries(expected)) {
      expect({ name, value: samples.get(`queuefs_${name}${label}`) }).toEqual({ name, value });
      expect(samples.get(`queuefs_${name}{queue="idle"}`)).toBe(0);
    }
    expect(samples.get(`queuefs_oldest_pending_age_seconds${label}`)).toBeLessThan(60);
    expect(samples.get(`queuefs_oldest_processing_age_seconds${label}`)).toBeGreaterThan(0);
    expect(samples.get("queuefs_queues_shown")).toBe(2);
    expect(samples.get("queuefs_queues_all_shown")).toBe(1);
    // Counters stay what they are however often they are asked for.
    expect((await scrape()).get(`queuefs_enqueued_messages_total${label}`)).toBe(10);
    await backend.removeQueue(busy);
    expect([...(await scrape()).keys()].filter((name) => name.includes("quoted"))).toEqual([]);
  });

  it("shows a bounded number of queues, and says so", async () => {
    const { backend } = await start({ maxMetricQueues: 3 });
    for (let index = 0; index < 9; index += 1) await backend.createQueue(parseQueueName(`q${index}`));
    const samples = await scrape();
    const shown = [...samples.keys()].filter((name) => name.startsWith("queuefs_pending_messages"));
    expect(shown).toEqual(["q0", "q1", "q2"].map((queue) => `queuefs_pending_messages{queue="${queue}"}`));
    expect(samples.get("queuefs_queues_shown")).toBe(3);
    expect(samples.get("queuefs_queues_all_shown")).toBe(0);
  });

  it("reads one snapshot for all, and one at a time however many ask", async () => {
    const memory = await openMemory();
    let snapshots = 0;
    const counting: Backend = new Proxy(memory, {
      get(target, name) {
        if (name === "statuses") {
          return async (selection: QueueSelection) => {
            snapshots += 1;
            await sleep(200);
            return target.statuses(selection);
          };
        }
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    await start({}, counting);
    for (let index = 0; index < 40; index += 1) await memory.createQueue(parseQueueName(`q${index}`));
    snapshots = 0;
    await scrape();
    expect(snapshots).toBe(1);
    await Promise.all(Array.from({ length: 20 }, () => scrape()));
    expect(snapshots).toBeLessThan(10);
  });

  it("counts requests by route, with labels that clients cannot multiply", async () => {
    const { server: listening, api } = await start();
    await fetch(`${api}/queues/q`, { method: "PUT" });
    for (let index = 0; index < 50; index += 1) {
      await fetch(`${api}/queues/made-up-${index}/status`);
      await fetch(`${listening.url}/made-up-${index}`, { method: index % 2 === 0 ? "GET" : "PROPFIND" });
    }
    const samples = await scrape();
    const count = (labels: string): number | undefined => samples.get(`queuefs_http_request_duration_seconds_count{${labels}}`);
    expect(count('route="queue.make",method="PUT",status="201"')).toBe(1);
    expect(count('route="queue.status",method="GET",status="404"')).toBe(50);
    expect(count('route="none",method="GET",status="404"')).toBe(25);
    expect(count('route="none",method="other",status="404"')).toBe(25);
    expect([...samples.keys()].filter((name) => name.includes("made-up"))).toEqual([]);
  });

  it("tells of connections, waits, streams and the process", async () => {
    const { server: listening, api, backend } = await start();
    await backend.createQueue(parseQueueName("q"));
    const stream = await openEvents(`${api}/events`);
    const leave = new AbortController();
    const wait = fetch(`${api}/queues/q/dequeue`, {
      method: "POST",
      body: '{"waitMs":30000}',
      headers: { "content-type": "application/json" },
      signal: leave.signal,
    });
    wait.catch(() => {});
    let samples = await scrape();
    for (let tries = 0; tries < 100 && samples.get("queuefs_http_long_polls") !== 1; tries += 1) samples = await scrape();
    expect(samples.get("queuefs_http_long_polls")).toBe(1);
    expect(samples.get("queuefs_http_event_readers")).toBe(1);
    expect(samples.get("queuefs_http_connections")).toBeGreaterThanOrEqual(3);
    // The wait, and the one that asks.
    expect(samples.get("queuefs_http_running_requests")).toBe(2);
    expect(samples.get("queuefs_http_event_gaps_total")).toBe(0);
    expect(samples.get("process_resident_memory_bytes")).toBeGreaterThan(1e6);
    expect(samples.get("nodejs_heap_size_used_bytes")).toBeGreaterThan(1e6);
    expect([...samples.keys()].some((name) => /^queuefs_info\{version="\S+",store="memory"\}$/.test(name))).toBe(true);
    stream.leave();
    leave.abort();
    expect((await fetch(`${listening.url}/metrics`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${listening.url}/metrics`, { method: "HEAD" })).status).toBe(405);
  });

  it("needs a token where tokens are set, one for all queues", async () => {
    const tokens = [
      { secret: "only-looks-0123456789", readOnly: true },
      { secret: "only-in-0123456789", queues: [parseQueueName("in")] },
    ];
    const { server: listening } = await start({ tokens });
    const status = async (secret?: string): Promise<number> =>
      (await fetch(`${listening.url}/metrics`, { headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` } })).status;
    expect(await status()).toBe(401);
    expect(await status("only-in-0123456789")).toBe(403);
    expect(await status("only-looks-0123456789")).toBe(200);
  });

  it("keeps two servers of one process apart", async () => {
    const first = await start();
    await first.backend.createQueue(parseQueueName("first"));
    const second = await startServer();
    await second.backend.createQueue(parseQueueName("second"));
    const texts = await Promise.all([first, second].map(async ({ server: { url } }) => (await fetch(`${url}/metrics`)).text()));
    expect(texts.map((text) => /queue="(\w+)"/.exec(text)?.[1])).toEqual(["first", "second"]);
    await second.close();
  });

  it("says what is wrong with the store instead of half the truth", async () => {
    const { backend, server: listening } = await start();
    await backend.close();
    const answer = await fetch(`${listening.url}/metrics`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ code: "closed" });
  });
});
