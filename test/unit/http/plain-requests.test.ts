/** Plain requests go straight from the socket to their route: they are answered as those that take the way through the router. */

import { request as httpRequest } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { openMemory } from "../../../src/backend/memory/index.ts";
import type { QueueName } from "../../../src/core/names.ts";
import { API_PREFIX } from "../../../src/core/wire.ts";
import { type AppOptions, createSocketApp, type SocketApp } from "../../../src/http/app.ts";
import { exchangeOf } from "../../../src/http/exchange.ts";
import { listen } from "../../../src/http/index.ts";
import { RouteFinder } from "../../../src/http/route-finder.ts";
import { ROUTES } from "../../../src/http/routes/table.ts";

const QUEUE = "imports/parse" as QueueName;
const ORIGIN = "https://app.example";
const SECRET = "a-secret-of-this-test";

const leave: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of leave.splice(0)) await end();
});

async function open(options: AppOptions): Promise<SocketApp> {
  const store = await openMemory();
  await store.createQueue(QUEUE);
  const app = createSocketApp(store, options);
  leave.push(async () => {
    await app.close();
    await store.close();
  });
  return app;
}

interface Sample {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What may differ between two answers that mean the same. */
const OWN_WORDS = /"(?:m|mark|version|storeId)":"[^"]*"|-[0-9a-z]+"/g;

async function bothWays(app: SocketApp, { method, path, headers = {}, body }: Sample): Promise<unknown[]> {
  const all = new Headers({ host: "127.0.0.1", "content-type": "application/json", ...headers });
  const url = `http://127.0.0.1${API_PREFIX}${path}`;
  const make = (): Request => new Request(url, { method, headers: all, ...(body === undefined ? {} : { body }) });
  const routed = await app.fetch(make());
  const exchange = { ...exchangeOf(make(), async () => new TextEncoder().encode(body ?? "")), isGone: false };
  const header = (name: string): string | undefined => all.get(name) ?? undefined;
  const plain = await app.serve({ method, target: API_PREFIX + path, exchange, header });
  if (plain === undefined) throw new Error(`${method} ${path} was not found to be plain`);
  const words = (text: string): string => text.replaceAll(OWN_WORDS, "");
  const shape = (status: number, given: Headers, text: string): unknown => {
    given.delete("x-request-id");
    return { status, headers: [...given], text: words(text) };
  };
  const plainBody = typeof plain.body === "string" ? plain.body : new TextDecoder().decode(plain.body);
  return [shape(routed.status, routed.headers, await routed.text()), shape(plain.status, new Headers(plain.headers), plainBody)];
}

const ENCODED = encodeURIComponent(QUEUE);
const SAMPLES: readonly Sample[] = [
  ...ROUTES.filter(({ name }) => name !== "events").map(({ method, path }) => ({
    method,
    path: path.replace("{queue}", "missing").replace("{task}", "missing"),
    // Nothing that changes something: it would not be the same twice.
    ...(method === "GET" ? {} : { body: method === "PUT" ? '{"none":1}' : "{}" }),
  })),
  { method: "GET", path: `/queues/${ENCODED}/status` },
  { method: "GET", path: `/queues/${ENCODED}/messages?limit=1&limit=2` },
  { method: "GET", path: "/queues?limit=1" },
  { method: "GET", path: "/queues/..a/status" },
  { method: "POST", path: `/queues/${ENCODED}/messages`, body: '{"messages":[{"data":"x"}]}' },
  { method: "POST", path: `/queues/${ENCODED}/messages`, body: "not JSON" },
  { method: "POST", path: `/queues/${ENCODED}/ack`, body: '{"other":1}' },
  { method: "POST", path: `/queues/${ENCODED}/dequeue`, body: '{"waitMs":-1}' },
  { method: "POST", path: `/queues/${ENCODED}/ack`, body: "[]", headers: { "content-type": "text/plain" } },
  { method: "GET", path: "/queues", headers: { host: "somewhere.example" } },
  { method: "GET", path: "/queues", headers: { origin: "https://other.example" } },
  { method: "GET", path: "/queues", headers: { origin: ORIGIN } },
  { method: "GET", path: "/queues", headers: { "queuefs-instance": "of-another-life" } },
  { method: "POST", path: "/recover", headers: { "queuefs-session": "a" } },
];

const SETTINGS: readonly (readonly [string, AppOptions])[] = [
  ["a server for everybody", {}],
  ["one that asks for a token", { tokens: [{ secret: SECRET }] }],
  ["one for pages of another origin", { allowOrigins: [ORIGIN] }],
  ["one with a log", { logger: { debug() {}, info() {}, warn() {}, error() {} } }],
];

describe.each(SETTINGS)("plain requests to %s", (_, options) => {
  test("are answered as by the router", async () => {
    const app = await open(options);
    for (const sample of SAMPLES) {
      for (const more of [{}, { authorization: `Bearer ${SECRET}` }]) {
        const [routed, plain] = await bothWays(app, { ...sample, headers: { ...sample.headers, ...more } });
        expect(plain, `${sample.method} ${sample.path}`).toEqual(routed);
      }
    }
    app.drain();
    const [routed, plain] = await bothWays(app, { method: "GET", path: "/queues" });
    expect(plain).toEqual(routed);
  });
});

describe("what is plain", () => {
  const finder = new RouteFinder(ROUTES);

  test("is every route but streams, by its own method and path", () => {
    for (const route of ROUTES) {
      const found = finder.find(route.method, `${API_PREFIX}${route.path.replace(/\{\w+\}/, ENCODED)}`);
      if (route.name === "events") expect(found).toBeUndefined();
      else expect(found).toEqual({ route, parameter: route.path.includes("{") ? QUEUE : undefined });
    }
  });

  test.each([
    ["HEAD", `${API_PREFIX}/queues`],
    ["OPTIONS", `${API_PREFIX}/queues`],
    ["GET", `${API_PREFIX}/queues/`],
    ["GET", `${API_PREFIX}/queues//status`],
    ["GET", `${API_PREFIX}/queue%73`],
    ["GET", `${API_PREFIX}/queues/a/status/`],
    ["GET", `${API_PREFIX}/queues/{queue}/statu%73`],
    ["GET", `${API_PREFIX}`],
    ["GET", "/queues"],
    ["GET", "/"],
  ])("is not %s %s", (method, path) => {
    expect(finder.find(method, path)).toBeUndefined();
  });
});

test("a header that is there twice is not taken for its first value", async () => {
  const store = await openMemory();
  const server = await listen(store, { port: 0, tokens: [{ secret: SECRET }] });
  leave.push(async () => {
    await server.stop();
    await store.close();
  });
  const ask = (authorization: string | string[]): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: authorization as string };
      const request = httpRequest(`${server.url}${API_PREFIX}/queues`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.once("error", reject);
      request.end();
    });
  expect(await ask(`Bearer ${SECRET}`)).toBe(200);
  expect(await ask([`Bearer ${SECRET}`, "Bearer another"])).toBe(401);
});
