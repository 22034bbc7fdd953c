/** Redis: QueueFS and the peers on one server that is started for the run, with PING on the same kind of connection as the measure of latency. */

import { Redis } from "ioredis";
import type { Backend } from "../../src/backend/contract.ts";
import { startRedisServer } from "../../test/support/redis-server.ts";
import { type Contender, PAYLOAD_BYTES, runCallers } from "../contender.ts";
import { contestOf } from "../contenders/queuefs.ts";
import { rawScripts } from "../contenders/raw-scripts.ts";
import { redisPeers } from "../peers/index.ts";
import type { Run } from "../settings.ts";
import { usedMemory } from "../stores.ts";
import { measureHeld, measureSnapshot } from "./depth.ts";
import { measureThroughput } from "./throughput.ts";

const STORED_MESSAGES = 20_000;
/** The name of the row of the round trips that a cycle cannot do without. */
export const PING = "three PINGs instead";
const PINGS = 3;

/** Everything on Redis. */
export async function runRedis(run: Run): Promise<void> {
  const server = await startRedisServer();
  const client = new Redis(server.port, "127.0.0.1");
  try {
    run.results.begin("redis", {
      title: "Redis: calls per second",
      base: "QueueFS",
      order: ["QueueFS", "raw batches", "raw scripts", "BullMQ", "bee-queue", PING],
      plot: { kind: "bars", measures: ["enqueue x1", "enqueue x64", "enqueue x1000", "cycle x1", "cycle x64", "drain x64"] },
      note: "One server on the same machine, over TCP. BullMQ and bee-queue are driven by their own workers: a cycle ends when the worker says that the job is done. Raw batches: three minimal scripts (push, move to a sorted set, remove), with as many messages in a call as there are callers, which is the limit; raw scripts: the same with a call for each message. PING is a round trip on a connection of ioredis, three of them one after the other.",
    });
    let contests = 0;
    const queuefs: Contender = {
      name: "QueueFS",
      role: "queuefs",
      drainMessages: 20_000,
      open: async () => {
        contests += 1;
        return contestOf(await run.library.openRedis({ url: server.url, namespace: `bench-${contests}` }));
      },
    };
    const { contenders, skipped } = await redisPeers(server.port);
    run.results.skip(skipped);
    const limits = [rawScripts(server.port, "in batches"), rawScripts(server.port, "one by one")];
    const all = [queuefs, ...limits, ...contenders].map((contender) => flushing(contender, client));
    await measureThroughput(run, "redis", [...all, pinging(client)]);
    await measureStored(run, all, client);
    run.results.begin("redis-depth", {
      title: "Redis: what a call costs when the store is full",
      base: "QueueFS",
      order: ["QueueFS"],
      note: "Microseconds until the answer, the median.",
    });
    const open = async (): Promise<Backend> => {
      contests += 1;
      return run.library.openRedis({ url: server.url, namespace: `bench-${contests}` });
    };
    await measureSnapshot(run, "redis-depth", "QueueFS", open);
    await client.flushall();
    await measureHeld(run, "redis-depth", "QueueFS", open);
  } finally {
    client.disconnect();
    await server.stop();
  }
}

/** Leaves nothing on the server for the next contest. */
function flushing(contender: Contender, client: Redis): Contender {
  return {
    ...contender,
    open: async (folder) => {
      const contest = await contender.open(folder);
      return {
        ...contest,
        close: async () => {
          await contest.close();
          await client.flushall();
        },
      };
    },
  };
}

/** The measure of round trips: three PINGs instead of a cycle. */
function pinging(client: Redis): Contender {
  const nothing = async (): Promise<void> => {};
  return {
    name: PING,
    role: "limit",
    only: "cycle x1",
    drainMessages: 0,
    open: async () => ({
      enqueue: nothing,
      cycle: (load) =>
        runCallers(load, async () => {
          for (let index = 0; index < PINGS; index += 1) await client.ping();
        }),
      fill: nothing,
      drain: async () => 0,
      status: nothing,
      close: nothing,
    }),
  };
}

async function measureStored(run: Run, contenders: readonly Contender[], client: Redis): Promise<void> {
  for (const contender of contenders) {
    run.tell(`redis: bytes per stored message, ${contender.name}`);
    const contest = await contender.open("");
    try {
      const before = await usedMemory(client);
      await contest.fill(STORED_MESSAGES);
      const bytes = ((await usedMemory(client)) - before) / STORED_MESSAGES;
      run.results.record("redis", "bytes per message", contender.name, "bytes", bytes);
      run.results.record("redis", "bytes per message beyond its payload", contender.name, "bytes", bytes - PAYLOAD_BYTES);
    } finally {
      await contest.close();
    }
  }
}
