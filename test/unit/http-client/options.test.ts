import { describe, expect, it, test } from "vitest";
import { openHttp } from "../../../src/backend/http/index.ts";
import { type HttpOptions, readHttpOptions } from "../../../src/backend/http/options.ts";

const SECRET = "open-sesame-0123456789";

test.each([
  [{ url: "redis://127.0.0.1" }, "http://"],
  [{ url: "127.0.0.1:7333" }, "http://"],
  [{ url: "" }, "http://"],
  [{ url: "http://user:secret@host" }, "http://:TOKEN@"],
  [{ url: "http://token@host" }, "http://:TOKEN@"],
  [{ url: "http://host?namespace=x" }, "parameters"],
  [{ url: "http://host/#x" }, "fragment"],
  [{ token: "" }, "token"],
  [{ token: "two words" }, "token"],
  [{ token: "line\r\nX-Header: 1" }, "token"],
  [{ url: "http://:%E9@host" }, "token"],
  [{ onError: {} as never }, "onError"],
  [{ outageMs: 600_001 }, "outageMs"],
  [{ maxConnections: 0 }, "maxConnections"],
  [{ rememberMs: 5 } as HttpOptions, "rememberMs"],
])("%j is refused, saying which option", async (options, words) => {
  await expect(openHttp(options)).rejects.toMatchObject({ code: "invalid-argument", message: expect.stringContaining(words) });
});

test.each([
  { url: `http://:${SECRET}%E9@host` },
  { url: `http:/:${SECRET}@` },
  { url: `https://:${SECRET}@host?x` },
  { url: `https://user:${SECRET}@host` },
  { token: `${SECRET} x` },
])("%j is refused without a word of the token", (options) => {
  expect(() => readHttpOptions(options)).toThrow(expect.objectContaining({ message: expect.not.stringContaining(SECRET) }));
});

describe("the address", () => {
  test.each([
    ["http://host", "http://host", undefined],
    ["https://host:443/", "https://host", undefined],
    ["http://[::1]:7333//", "http://[::1]:7333", undefined],
    ["http://host/queues/of/us/", "http://host/queues/of/us", undefined],
    [`http://:${SECRET}@host:1`, "http://host:1", SECRET],
    ["https://:a%2Fb%3Ac@host/x", "https://host/x", "a/b:c"],
  ])("%s", (given, url, token) => {
    expect(readHttpOptions({ url: given })).toMatchObject({ url, token });
  });

  it("has the token that counts", () => {
    expect(readHttpOptions({ url: "http://:first@host", token: "second" }).token).toBe("first");
    expect(readHttpOptions({ url: "http://host", token: "second" }).token).toBe("second");
  });
});

it("a server that is not there is unreachable, in words that say where", async () => {
  // Port 9 (discard) is served by nobody on the machines that run this.
  await expect(openHttp({ url: `http://:${SECRET}@127.0.0.1:9`, connectTimeoutMs: 50 })).rejects.toMatchObject({
    code: "store-unreachable",
    message: expect.stringMatching(/^no answer from the server at http:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/),
  });
});
