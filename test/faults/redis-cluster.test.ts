/** A cluster of two masters: all keys of a namespace stay together, awkward names are only names, and a moving slot loses nothing. */

import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRedis } from "../../src/backend/redis/index.ts";
import { parseQueueName, type QueueName } from "../../src/core/names.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";

const LAST_SLOT = 16_383;
const NAMES = ["a", "a/b", "{x}", "x}{y", "{}", "a:pending", "a:msg:1", "日本/q"].map(parseQueueName);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (data: Uint8Array): string => new TextDecoder().decode(data);

const servers: RedisServer[] = [];
const nodes: Redis[] = [];
let cluster: Cluster;

beforeAll(async () => {
  for (let index = 0; index < 2; index += 1) {
    const server = await startRedisServer({ args: ["--cluster-enabled", "yes"] });
    servers.push(server);
    nodes.push(new Redis(server.url));
  }
  const [first, second] = nodes as [Redis, Redis];
  await first.call("cluster", "addslotsrange", "0", "8000");
  await second.call("cluster", "addslotsrange", "8001", String(LAST_SLOT));
  await first.call("cluster", "set-config-epoch", "1");
  await second.call("cluster", "set-config-epoch", "2");
  await first.call("cluster", "meet", "127.0.0.1", String(servers[1]?.port));
  const isWhole = async (node: Redis): Promise<boolean> => String(await node.call("cluster", "info")).includes("cluster_state:ok");
  while (!(await isWhole(first)) || !(await isWhole(second))) await new Promise((resolve) => setTimeout(resolve, 20));
  cluster = new Cluster([{ host: "127.0.0.1", port: servers[0]?.port ?? 0 }]);
});

afterAll(async () => {
  cluster.disconnect();
  for (const node of nodes) node.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
});

test("every call works on names that look like keys or hash tags, and removal touches only its own", async () => {
  const backend = await openRedis({ client: cluster, namespace: "names", onError: () => {} });
  for (const queue of NAMES) {
    expect(await backend.createQueue(queue)).toBe("created");
    await backend.enqueue(queue, [{ data: bytes(queue) }, { data: bytes("rest") }]);
    const [message] = await backend.dequeue(queue);
    expect(textOf(message?.data ?? bytes(""))).toBe(queue);
    await backend.ack(queue, [{ receipt: message?.receipt ?? ("" as never) }]);
  }
  expect((await backend.statuses({ under: "" })).map(({ pending }) => pending)).toEqual(NAMES.map(() => 1));
  expect(await backend.removeQueue(parseQueueName("a"), { recursive: true })).toBe(2);
  expect((await backend.listQueues()).items.toSorted()).toEqual(NAMES.slice(2).toSorted());
  expect(await backend.clear(parseQueueName("{}"))).toEqual({ pending: 1, processing: 0 });
  expect((await backend.statuses({ under: "" })).reduce((sum, { pending }) => sum + pending, 0)).toBe(NAMES.length - 3);
  await backend.close();
});

test("all keys of a namespace are in one slot", async () => {
  const keys = (await Promise.all(nodes.map((node) => node.keys("*")))).flat().filter((key) => key.startsWith("{names}"));
  expect(keys.length).toBeGreaterThan(10);
  const slots = await Promise.all(keys.map((key) => nodes[0]?.call("cluster", "keyslot", key)));
  expect(new Set(slots).size).toBe(1);
});

/** Moves a slot, key by key, as the tools of a cluster do. */
async function moveSlot(slot: number, from: Redis, to: Redis, port: number): Promise<void> {
  const [fromId, toId] = [String(await from.call("cluster", "myid")), String(await to.call("cluster", "myid"))];
  await to.call("cluster", "setslot", String(slot), "importing", fromId);
  await from.call("cluster", "setslot", String(slot), "migrating", toId);
  for (;;) {
    const keys = (await from.call("cluster", "getkeysinslot", String(slot), "1")) as string[];
    if (keys.length === 0) break;
    await from.call("migrate", "127.0.0.1", String(port), "", "0", "5000", "keys", ...keys);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await to.call("cluster", "setslot", String(slot), "node", toId);
  await from.call("cluster", "setslot", String(slot), "node", toId);
}

test("while the slot of a namespace moves, calls wait or go on, and every message is handed out once", async () => {
  const backend = await openRedis({ client: cluster, namespace: "moving", onError: () => {} });
  const queue: QueueName = parseQueueName("jobs");
  await backend.createQueue(queue);
  const [first, second] = nodes as [Redis, Redis];
  const slot = Number(await first.call("cluster", "keyslot", "{moving}"));
  const [from, to, port] = slot <= 8000 ? [first, second, servers[1]?.port] : [second, first, servers[0]?.port];
  let isMoving = true;
  let enqueued = 0;
  const seen: string[] = [];
  const produce = async (): Promise<void> => {
    while (isMoving) {
      await backend.enqueue(queue, [{ data: bytes(String(enqueued)) }]);
      enqueued += 1;
    }
  };
  const consume = async (): Promise<void> => {
    while (isMoving || (await backend.status(queue)).pending > 0) {
      for (const { data, receipt } of await backend.dequeue(queue, { limit: 5 })) {
        seen.push(textOf(data));
        expect(await backend.ack(queue, [{ receipt }])).toEqual([{ outcome: "acked", forwarded: [] }]);
      }
    }
  };
  const work = Promise.all([produce(), consume(), consume()]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await moveSlot(slot, from, to, port ?? 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  isMoving = false;
  await work;
  expect(enqueued).toBeGreaterThan(0);
  expect(seen.toSorted()).toEqual(Array.from({ length: enqueued }, (_, index) => String(index)).toSorted());
  expect(await backend.status(queue)).toEqual({ pending: 0, processing: 0 });
  await backend.close();
});
