/** Redis: QueueFS and the peers on one server that is started for the run, with PING on the same kind of connection as the measure of latency. */

import { Redis } from "ioredis";
import { startRedisServer } from "../../test/support/redis-server.ts";
import { type Contender, PAYLOAD_BYTES, runCallers } from "../contender.ts";
import { contestOf } from "../contenders/queuefs.ts";
import { redisPeers } from "../peers/index.ts";
import type { Run } from "../settings.ts";
import { measureHeld, measureStatus } from "./depth.ts";
import { measureThroughput } from "./throughput.ts";

const STORED_MESSAGES = 20_000;
/** The name of the row of PING. */
export const PING = "PING instead";

/** Everything on Redis. */
export async function runRedis(run: Run): Promise<void> {
  const server = await startRedisServer();
  const client = new Redis(server.port, "127.0.0.1");
  try {
    run.results.begin("redis", {
      title: "Redis: calls per second",
      base: "QueueFS",
      order: ["QueueFS", "BullMQ", "bee-queue", PING],
      note: "One server on the same machine, over TCP. BullMQ and bee-queue are driven by their own workers: a cycle ends when the worker says that the job is done. PING is one round trip on a connection of ioredis.",
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
    const all = [queuefs, ...contenders].map((contender) => flushing(contender, client));
    await measureThroughput(run, "redis", [...all, pinging(client)]);
    await measureStored(run, all, client);
    await measureStatus(
      run,
      "redis",
      all.slice(0, 1),
      run.settings.depths.filter((depth) => depth <= 1_000_000),
    );
    await measureHeld(run, "redis", "QueueFS", async () => {
      contests += 1;
      return run.library.openRedis({ url: server.url, namespace: `bench-${contests}` });
    });
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

/** The measure of a round trip: one PING instead of a cycle. */
function pinging(client: Redis): Contender {
  const nothing = async (): Promise<void> => {};
  return {
    name: PING,
    role: "limit",
    only: "cycle x1",
    drainMessages: 0,
    open: async () => ({
      enqueue: nothing,
      cycle: (load) => runCallers(load, () => client.ping()),
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

async function usedMemory(client: Redis): Promise<number> {
  const information = await client.info("memory");
  return Number(/^used_memory:(\d+)/m.exec(information)?.[1] ?? Number.NaN);
}
