import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openHttp } from "../../../src/backend/http/index.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { type HttpServer, listen } from "../../../src/http/index.ts";
import { openStore } from "../../../src/store/open.ts";

const JOBS = parseQueueName("jobs");
const SECRET = "a-secret-of-the-test";
const READ_ONLY = "another-one-to-look-with";

let store: Backend;
let server: HttpServer;
let location: string;

beforeAll(async () => {
  store = await openMemory({ maxMessageBytes: 10_000 });
  await store.createQueue(JOBS);
  server = await listen(store, { port: 0, tokens: [{ secret: SECRET }, { secret: READ_ONLY, readOnly: true }] });
  location = server.url.replace("http://", `http://:${SECRET}@`);
});

afterAll(async () => {
  await server.stop();
  await store.close();
});

it("describes the server's store, and tells no token", async () => {
  await using backend = await openStore(location);
  expect(backend.description).toEqual({ ...store.description, kind: "http", location: server.url, sharedBy: "hosts" });
});

it("takes the token of the location before that of the option", async () => {
  await using one = await openStore(server.url, { token: SECRET });
  await using other = await openStore(location, { token: "no-token-of-this-server" });
  expect(await one.status(JOBS)).toEqual(await other.status(JOBS));
  await expect(openStore(server.url, { token: "no-token-of-this-server" })).rejects.toMatchObject({ code: "unauthenticated" });
});

it("may keep messages smaller than the server does, and not larger", async () => {
  await using smaller = await openStore(location, { maxMessageBytes: 100 });
  await using larger = await openStore(location, { maxMessageBytes: 1_000_000 });
  expect([smaller, larger].map(({ description }) => description.maxMessageBytes)).toEqual([100, 10_000]);
});

it("opens with a token that may only look, and is told so by what it may not do", async () => {
  const errors: unknown[] = [];
  await using backend = await openStore(server.url, { token: READ_ONLY, onError: (error) => void errors.push(error) });
  expect(await backend.status(JOBS)).toEqual({ pending: 0, processing: 0 });
  await expect(backend.enqueue(JOBS, [{ data: new Uint8Array(1) }])).rejects.toMatchObject({ code: "forbidden" });
  expect(errors).toEqual([]);
});

it("can be opened again by another thread, from what it says of that", async () => {
  await using backend = await openStore(location);
  await backend.enqueue(JOBS, [{ data: new Uint8Array(1) }]);
  const [held] = await backend.dequeue(JOBS);
  const { module, exportName, options } = structuredClone(backend.reopening) ?? { module: "", exportName: "", options: {} };
  const { [exportName]: open } = (await import(module)) as Record<string, (options: unknown) => Promise<Backend>>;
  expect(open).toBe(openHttp);
  await using again = await (open as typeof openHttp)(options);
  expect(await again.extend(JOBS, [{ receipt: held?.receipt as never, leaseMs: 60_000 }])).toEqual(["extended"]);
});

it("tells what is no QueueFS server", async () => {
  const pages = createServer((request, response) => {
    const isJson = request.url?.startsWith("/json");
    response.writeHead(isJson ? 200 : 404, { "content-type": isJson ? "application/json" : "text/html" });
    response.end(isJson ? "{}" : "<html>");
  });
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const { port } = pages.address() as AddressInfo;
  for (const path of ["", "/json"])
    await expect(openStore(`http://127.0.0.1:${port}${path}`)).rejects.toMatchObject({ code: "store-unsuitable" });
  pages.closeAllConnections();
  await new Promise((resolve) => pages.close(resolve));
});

it("reads no answer without an end", async () => {
  let sent = 0;
  const flood = createServer((request, response) => {
    const part = Buffer.alloc(1024 * 1024, " ");
    response.writeHead(200, { "content-type": "application/json" });
    const pour = (): void => {
      while (!response.destroyed && sent < 1024) {
        sent += 1;
        if (!response.write(part)) return;
      }
    };
    response.on("drain", pour);
    request.resume();
    pour();
  });
  await new Promise<void>((resolve) => flood.listen(0, "127.0.0.1", resolve));
  const { port } = flood.address() as AddressInfo;
  await expect(openStore(`http://127.0.0.1:${port}`)).rejects.toMatchObject({
    code: "store-failed",
    message: expect.stringContaining("it has more than 16777216 bytes"),
  });
  expect(sent).toBeLessThan(100);
  flood.closeAllConnections();
  await new Promise((resolve) => flood.close(resolve));
});

it("refuses what only the server can be told", async () => {
  for (const options of [{ rememberMs: 5 }, { sweepIntervalMs: 50 }, { durability: "full" }] as const)
    await expect(openStore(location, options)).rejects.toMatchObject({ code: "invalid-argument" });
});
