/** AGFS clients on real sockets: those that go away in the middle of a request, and forms of requests that no `Request` has. */

import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { type HttpServer, listen } from "../../../src/http/index.ts";

const Q = parseQueueName("q");
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

let backend: Backend;
let server: HttpServer;
const sockets = new Set<Socket>();

beforeEach(async () => {
  backend = await openMemory();
  await backend.createQueue(Q);
  server = await listen(backend, { port: 0 });
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await server.stop();
  await backend.close();
});

async function open(): Promise<Socket> {
  const socket = connect(server.port, "127.0.0.1");
  sockets.add(socket);
  socket.on("error", () => {});
  socket.once("close", () => sockets.delete(socket));
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  return socket;
}

function head(method: string, path: string, headers: readonly string[] = []): string {
  return [`${method} /api/v1/files?path=${path} HTTP/1.1`, `Host: 127.0.0.1:${server.port}`, ...headers, "", ""].join("\r\n");
}

/** What comes on a connection until it matches. */
function received(socket: Socket, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    socket.on("data", (part: Buffer) => {
      text += part.toString("latin1");
      if (pattern.test(text)) resolve(text);
    });
    socket.once("close", () => reject(new Error(`closed after ${JSON.stringify(text)}`)));
  });
}

test("a client that goes away at any moment of a dequeue loses no message, and none waits for the end of its lease", async () => {
  const count = 40;
  await backend.enqueue(
    Q,
    Array.from({ length: count }, (_, index) => ({ data: utf8(String(index)) })),
  );
  const request = head("GET", "/queuefs/q/dequeue");
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const socket = await open();
      if (index % 4 === 0) {
        // Half of the request only.
        socket.write(request.slice(0, 20));
        socket.resetAndDestroy();
        return;
      }
      socket.write(request);
      if (index % 4 === 1) {
        await new Promise((resolve) => setTimeout(resolve, index % 10));
        socket.resetAndDestroy();
      } else if (index % 4 === 2) socket.end();
      else socket.pause().destroy();
    }),
  );
  // Those who only said that they send no more may have got an answer; the others have none.
  await expect.poll(() => backend.status(Q).then(({ processing }) => processing), { timeout: 5_000 }).toBeLessThanOrEqual(count / 4);
  const { pending, processing } = await backend.status(Q);
  expect(pending + processing).toBe(count);
  const again = await backend.dequeue(Q, { limit: 1_000 });
  expect(again.every(({ deliveryCount }) => deliveryCount === 1)).toBe(true);
});

test("a message that was given on a connection is not given back when that breaks after the next request", async () => {
  await backend.enqueue(Q, [{ data: utf8("one") }]);
  const socket = await open();
  socket.write(head("GET", "/queuefs/q/dequeue"));
  await received(socket, /"data":"one"/);
  socket.write(head("GET", "/queuefs/q/size"));
  await received(socket, /\r\n\r\n0$/);
  socket.resetAndDestroy();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
});

test("a body in chunks is one message, and one that breaks off is none", async () => {
  const whole = await open();
  whole.write(head("PUT", "/queuefs/q/enqueue", ["Transfer-Encoding: chunked"]));
  for (const part of ["4\r\none \r\n", "3\r\ntwo\r\n", "0\r\n\r\n"]) whole.write(part);
  expect(await received(whole, /\}$/)).toContain("Written 7 bytes");
  for (const begun of ["Transfer-Encoding: chunked\r\n\r\n4\r\none ", "Content-Length: 100\r\n\r\nonly a part"]) {
    const socket = await open();
    socket.write(head("PUT", "/queuefs/q/enqueue").trimEnd());
    socket.write(`\r\n${begun}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.resetAndDestroy();
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  const { items } = await backend.messages(Q);
  expect(items.map(({ data }) => new TextDecoder().decode(data))).toEqual(["one two"]);
});

test("a HEAD takes no message, and connections are kept for longer than clients keep theirs", async () => {
  await backend.enqueue(Q, [{ data: utf8("one") }]);
  const socket = await open();
  socket.write(head("HEAD", "/queuefs/q/dequeue"));
  const answer = await received(socket, /\r\n\r\n/);
  expect(answer).toMatch(/^HTTP\/1\.1 405 /);
  expect(Number(/keep-alive: timeout=(\d+)/i.exec(answer)?.[1])).toBeGreaterThan(90);
  expect(await backend.status(Q)).toEqual({ pending: 1, processing: 0 });
});

test("a long content comes whole over the wire, and leaves nothing open when its reader goes away", async () => {
  const data = utf8("é".repeat(700_000));
  await backend.enqueue(
    Q,
    Array.from({ length: 8 }, () => ({ data })),
  );
  const url = `${server.url}/api/v1/files?path=/queuefs/q/messages`;
  const listed = (await (await fetch(url)).json()) as { data: string }[];
  expect(listed.map((message) => message.data.length)).toEqual(Array.from({ length: 8 }, () => 700_000));
  const gone = new AbortController();
  const answer = await fetch(url, { signal: gone.signal });
  await answer.body?.getReader().read();
  gone.abort();
  // The server stops at once, not when it has cut what is left after 30 s.
  const begunMs = performance.now();
  expect(await server.stop()).toMatchObject({ released: 0 });
  expect(performance.now() - begunMs).toBeLessThan(5_000);
});
