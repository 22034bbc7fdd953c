import { expect, test } from "vitest";
import { startRedisServer } from "../../support/redis-server.ts";

test("a test's server starts, comes back on the same port after a kill, and ends without leaving its process", async () => {
  const server = await startRedisServer({ appendonly: true });
  const first = server.processId;
  await server.restart();
  expect(server.processId).not.toBe(first);
  expect(() => process.kill(first, 0)).toThrow();
  const second = server.processId;
  await server.stop();
  await server.stop();
  expect(() => process.kill(second, 0)).toThrow();
});
