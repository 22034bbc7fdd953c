/** The Redis backend on a real server, under simulated clients and connections that the seed breaks, delays and makes anew. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { connectServer, redisSurroundings, type Server } from "./redis-surroundings.ts";
import { playRun } from "./run.ts";
import { firstSeed, playSeeds } from "./seeds.ts";

let process: RedisServer | undefined;
let server: Server | undefined;
const surround = redisSurroundings(() => server as Server);

beforeAll(async () => {
  process = await startRedisServer();
  server = await connectServer(process.url);
});

afterAll(async () => {
  server?.redis.disconnect();
  await process?.stop();
});

it("redis answers as some order of its calls explains, whatever is lost, late, refused or sent again", async () => {
  await playSeeds("redis", surround, { runs: 90, calls: 50, inAir: 2 });
});

it("one seed is one run", async () => {
  const seed = firstSeed();
  const [first, second] = [await playRun(seed, surround), await playRun(seed, surround)];
  expect(second.lines).toEqual(first.lines);
  expect(second.hash).toBe(first.hash);
});
