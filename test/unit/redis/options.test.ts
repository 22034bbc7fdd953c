import { expect, test } from "vitest";
import { openRedis } from "../../../src/backend/redis/index.ts";
import { type RedisOptions, readRedisOptions } from "../../../src/backend/redis/options.ts";

test.each([
  [{ namespace: "" }, "namespace"],
  [{ namespace: "a{b}" }, "namespace"],
  [{ namespace: "x".repeat(65) }, "namespace"],
  [{ url: "http://127.0.0.1" }, "redis://"],
  [{ url: "127.0.0.1:6379" }, "redis://"],
  [{ url: "redis://:100%@127.0.0.1:6379" }, "percent-encoded"],
  [{ url: "redis://us%er@127.0.0.1:6379" }, "percent-encoded"],
  [{ url: "redis://127.0.0.1:6379/jobs" }, "number of a database"],
  [{ client: {} as never }, "ioredis"],
  [{ onError: {} as never }, "onError"],
  [{ outageMs: -1 }, "outageMs"],
  [{ commandTimeoutMs: 600_000 }, "commandTimeoutMs"],
  [{ nameSpace: "x" } as RedisOptions, "nameSpace"],
])("%j is refused, saying which option", async (options, words) => {
  await expect(openRedis(options)).rejects.toMatchObject({ code: "invalid-argument", message: expect.stringContaining(words) });
});

test("a password in a malformed url is not repeated", () => {
  expect(() => readRedisOptions({ url: "rediss//:secret@host" })).toThrow(/^(?!.*secret)/);
});
