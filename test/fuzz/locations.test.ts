/** Locations of stores: any text is understood or refused, and what may be a password or a token is in no message, no cause, no description. */

import { inspect } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readHttpOptions } from "../../src/backend/http/options.ts";
import { readRedisOptions } from "../../src/backend/redis/options.ts";
import { parseTokens } from "../../src/http/auth.ts";
import { openStore } from "../../src/store/open.ts";
import { ending, endingAsync, hold, holdAsync } from "./fuzzing.ts";
import { anyText, anyValue } from "./values.ts";

/** What may be told of nothing. Letters that no scheme, host or word of a message has in this order. */
const SECRET = "Zq7Wx9Kv3Jp5Ym2Q";
/** The secret as it may stand in a location: alone, or amid characters that mean something there. */
const secret = fc
  .tuple(fc.constantFrom("", "%41", "%zz", "%", "?", "#", "/", "@", ":", " ", "\\", "é"), fc.constantFrom("", "%", "@", "\0"))
  .map(([before, after]) => `${before}${SECRET}${after}`);
// Nothing listens on port 1 of this host, so that opening ends at once.
const host = fc.constantFrom(
  "127.0.0.1:1",
  "127.0.0.1:1/0",
  "127.0.0.1:99999",
  "[::1]:1",
  "localhost:1",
  "",
  "a b",
  "127.0.0.1:1/x?y=1",
  "127.0.0.1:1?namespace=a%20b",
);
const scheme = fc.constantFrom(
  "redis",
  "rediss",
  "valkey",
  "valkeys",
  "http",
  "https",
  "REDIS",
  "hTTp",
  "memory",
  "postgres",
  "redis+x",
  "ftp",
  "",
);
const user = fc.constantFrom("", "default", "me%40", "u:x");
const location = fc.oneof(
  fc.tuple(scheme, user, secret, host).map(([word, name, word2, where]) => `${word}://${name}:${word2}@${where}`),
  fc.tuple(scheme, secret, host).map(([word, word2, where]) => `${word}:${word2}@${where}`),
  fc.tuple(secret, host).map(([word, where]) => `${word}@${where}`),
  fc.tuple(user, secret, host).map(([name, word, where]) => `${name}:${word}@${where}`),
);

/** All that an error tells to whoever prints it, its causes too. */
function told(error: unknown): string {
  return inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true });
}

test("no secret of a location is told by what opening it ends with", async () => {
  await holdAsync<[string]>([location], 0.3, async (text) => {
    const { error, result } = await endingAsync(() =>
      openStore(text, { outageMs: 0, onError: (one) => expect(told(one)).not.toContain(SECRET) }),
    );
    await result?.close();
    expect(error?.message).toBeDefined();
    expect(told(error)).not.toContain(SECRET);
  });
});

test("no secret is told by what the options of a server's client are refused for", () => {
  hold<[string, string]>([location, secret], 10, (url, token) => {
    for (const read of [
      () => readHttpOptions({ url, token }),
      () => readHttpOptions({ url: "http://h", token: `${token} x` }),
      () => readRedisOptions({ url }),
    ]) {
      const { error } = ending<unknown>(read);
      if (error !== undefined) expect(told(error)).not.toContain(SECRET);
    }
  });
});

test("no secret is told by what a list of tokens is refused for", () => {
  const word = fc.oneof(
    fc.constantFrom("read-only", "queues=a,b%2Cc", "queues=", "queues=%zz", "queues=../x", "#", "\n", "\r\n", "\t"),
    secret,
    anyText,
  );
  hold<[string[]]>([fc.array(word, { maxLength: 8 })], 20, (words) => {
    const { error, result } = ending(() => parseTokens(words.join(" "), "tokens"));
    if (error !== undefined) expect(error.code).toBe("invalid-argument");
    for (const token of result ?? []) expect(token.secret).toMatch(/^[\x21-\x7e]{16,512}$/);
    // Only what stands in the place of the list of queues may be repeated.
    if (error !== undefined && !words.some((one) => one.startsWith("queues=") && one.includes(SECRET)))
      expect(told(error)).not.toContain(SECRET);
  });
});

test("any value at all is a location, or refused", async () => {
  // What begins with sqlite: would make files.
  const noFile = fc
    .oneof(
      anyText,
      anyValue,
      anyText.map((text) => `memory:${text}`),
    )
    .filter((value) => !/^(?:sqlite|redis|valkey|http)s?:/i.test(String(typeof value === "string" ? value : "")));
  await holdAsync<[unknown, unknown]>([noFile, fc.oneof(fc.constant({}), anyValue)], 5, async (value, options) => {
    const { error, result } = await endingAsync(() => openStore(value as string, options as object));
    await result?.close();
    if (error === undefined) expect(value).toBe("memory:");
    else expect(error.code).toBe("invalid-argument");
  });
});
