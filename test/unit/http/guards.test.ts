import { describe, expect, it } from "vitest";
import { isQueueFSError } from "../../../src/core/errors.ts";
import { checkTarget, Neighbourhood } from "../../../src/http/guards.ts";
import { openTestApp } from "../../support/http-app.ts";

const LIMITS = { maxUrlBytes: 200, maxQueryParameters: 8 };

function statusOf(action: () => void): number {
  try {
    action();
    return 200;
  } catch (error) {
    if (!isQueueFSError(error)) throw error;
    return error.httpStatus;
  }
}

describe("the target of a request", () => {
  it.each([
    "/",
    "/api/v1/queues/a%2Fb",
    "/api/v1/files?path=/a/../b",
    "/api/v1/files?path=a+b&x=%E4%BD%A0",
    "/a/..b/.c/d..",
    "//",
    "/api//v1",
    "/%E4%BD%A0",
  ])("may be %s", (target) => expect(statusOf(() => checkTarget(target, LIMITS))).toBe(200));

  it.each([
    "/..",
    "/a/../b",
    "/a/./b",
    "/a/%2e%2e/b",
    "/a/.%2E/b",
    "/%2e",
    "/a%2F..%2Fb",
    "/a%2F%2e%2e",
    "/a%00b",
    "/a%",
    "/a%zz",
    "/a%ff",
    "/a%c0%ae",
    "/a\\b",
    "/a#b",
    "/a b",
    "/a\u00e9",
    "http://other.example/",
    "*",
    "",
    "/a?x=%",
    "/a?x=%g0",
    `/a?${"x&".repeat(8)}x`,
  ])("must not be %s", (target) => expect(statusOf(() => checkTarget(target, LIMITS))).toBe(400));

  it("has a longest length", () => {
    expect(statusOf(() => checkTarget(`/${"a".repeat(199)}`, LIMITS))).toBe(200);
    expect(statusOf(() => checkTarget(`/${"a".repeat(200)}`, LIMITS))).toBe(414);
  });
});

describe("the host", () => {
  const own = new Neighbourhood(["queue.example"]);

  it.each(["localhost", "LOCALHOST:80", "127.0.0.1", "10.1.2.3:7333", "[::1]", "[::1]:7333", "queue.example", "Queue.Example:443"])(
    "may be %s",
    (host) => expect(statusOf(() => own.needHost(host))).toBe(200),
  );

  it.each([
    "evil.example",
    "a.localhost:1",
    "localhost.evil.example",
    "queue.example.evil.example",
    "xqueue.example",
    "127.0.0.1.evil.example:80",
  ])("must not be %s", (host) => expect(statusOf(() => own.needHost(host))).toBe(403));

  it.each(["", "a b", "a/b", "user@localhost", "localhost:", "localhost:port", "[::1", "::1", "localhost,evil.example"])(
    "cannot be %j",
    (host) => expect(statusOf(() => own.needHost(host))).toBe(400),
  );

  it("is configured as a name, and origins as origins", () => {
    for (const host of ["a:1", "http://a", "", "a b", 1])
      expect(() => new Neighbourhood([host as string])).toThrow("an allowed host must be");
    for (const origin of ["a", "https://a/", "https://a/b", "null", "*", 1])
      expect(() => new Neighbourhood([], [origin as string])).toThrow("an allowed origin must be");
  });
});

describe("pages of other origins", () => {
  it("are refused, whatever the request, unless they are allowed", async () => {
    const { ask, close } = await openTestApp({ allowOrigins: ["https://app.example"] });
    const host = { host: "localhost" };
    const refused = [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "http://localhost:3000" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "http://localhost", "sec-fetch-site": "cross-site" },
    ];
    for (const request of ["GET /queues", "PUT /queues/q", "POST /queues/q/dequeue"]) {
      for (const headers of refused) {
        const { status, json, headers: sent } = await ask(request, { headers: { ...host, ...headers } as Record<string, string> });
        expect({ request, headers, status, code: json.code }).toEqual({ request, headers, status: 403, code: "forbidden" });
        expect(sent.get("access-control-allow-origin")).toBeNull();
      }
    }
    const welcome = [{}, { origin: "http://localhost" }, { "sec-fetch-site": "same-origin" }, { "sec-fetch-site": "none" }];
    for (const headers of welcome)
      expect((await ask("PUT /queues/q", { headers: { ...host, ...headers } as Record<string, string> })).status).toBeLessThan(300);
    const own = await ask("GET /queues", { headers: { ...host, origin: "https://app.example", "sec-fetch-site": "cross-site" } });
    expect([own.status, own.headers.get("access-control-allow-origin")]).toEqual([200, "https://app.example"]);
    await close();
  });

  it("that are allowed get an answer to their preflight, and others none that lets them", async () => {
    const { ask, close } = await openTestApp({ allowOrigins: ["https://app.example"], tokens: [{ secret: "0123456789abcdef" }] });
    const preflight = (origin: string) =>
      ask("OPTIONS /queues/q", {
        headers: { host: "localhost", origin, "access-control-request-method": "PUT", "access-control-request-headers": "authorization" },
      });
    const good = await preflight("https://app.example");
    expect(good.status).toBe(204);
    expect(good.headers.get("access-control-allow-methods")).toContain("PUT");
    expect(good.headers.get("access-control-allow-headers")).toContain("Authorization");
    expect(good.headers.get("access-control-allow-headers")).toContain("QueueFS-Instance");
    const headers = { host: "localhost", origin: "https://app.example" };
    for (const request of ["GET /queues/a%2F..", "GET /queues/%zz"])
      expect((await ask(request, { headers })).headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect((await ask("GET /queues", { headers: { ...headers, host: "evil.example" } })).status).toBe(403);
    expect((await preflight("https://evil.example")).headers.get("access-control-allow-origin")).toBeNull();
    await close();
  });
});
