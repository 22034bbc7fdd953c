/** Runs the conformance cases and the model on Redis, each in a namespace of its own of one server. Time is the server's and real. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { openRedis } from "../../src/backend/redis/index.ts";
import type { ConformanceHarness } from "../../src/testing/index.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

/** The harness on a server that `begin` starts and `end` stops. */
export function redisHarness(): { harness: ConformanceHarness; begin(): Promise<void>; end(): Promise<void> } {
  let server: RedisServer | undefined;
  let stores = 0;
  const harness: ConformanceHarness = {
    name: "redis",
    capabilities: ["durable", "process-owners"],
    // Long against the steps of a case even when other tests keep the machine busy.
    spanMs: 500,
    async createStore() {
      assert.ok(server, "the server has been started");
      stores += 1;
      const { url } = server;
      const namespace = `conformance-${stores}`;
      const errors: unknown[] = [];
      return {
        open: (options) =>
          openRedis({ url, namespace, sweepIntervalMs: 3_600_000, onError: (error) => void errors.push(error), ...options }),
        passTime: (ms) => sleep(ms + 2),
        async destroy() {
          // One case has a listener that throws.
          const unexpected = errors.filter((error) => !String(error).includes("on purpose"));
          assert.deepEqual(unexpected, [], "no error in the background");
        },
      };
    },
  };
  return {
    harness,
    async begin() {
      server = await startRedisServer();
    },
    async end() {
      await server?.stop();
    },
  };
}
