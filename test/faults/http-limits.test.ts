/** Every limit of the server, over real sockets. */

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectSecurely } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { openMemory } from "../../src/backend/memory/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import type { ListenOptions } from "../../src/http/index.ts";
import { connectRaw, exchangeRaw, startServer, type TestServer } from "../support/raw-http.ts";

const Q = parseQueueName("q");
const HEAD = "Host: localhost\r\n";
const MIB = 1024 * 1024;
let started: TestServer;
afterEach(async () => {
  await started.close();
  expect(started.errors).toEqual([]);
});

async function start(options: ListenOptions, maxMessageBytes?: number): Promise<number> {
  started = await startServer(options, await openMemory(maxMessageBytes === undefined ? {} : { maxMessageBytes }));
  await started.backend.createQueue(Q);
  return started.server.port;
}

const post = (path: string, body: string | Uint8Array, type = "application/octet-stream"): Promise<Response> =>
  fetch(`${started.api}${path}`, { method: "POST", body: body as string, headers: { "content-type": type } });

/** A certificate for this host, and its key. */
function makeCertificate(): { readonly cert: Buffer; readonly key: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), "queuefs-tls-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost"];
  const { status, stderr } = spawnSync("openssl", ["req", "-x509", ...kind, "-keyout", key, "-out", cert], { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl made no certificate: ${stderr}`);
  const made = { cert: readFileSync(cert), key: readFileSync(key) };
  rmSync(folder, { recursive: true });
  return made;
}

describe("limits of a body", () => {
  it("are those of the store for messages, and refuse at once what is announced as larger", async () => {
    const port = await start({}, MIB);
    expect((await post("/queues/q/messages", new Uint8Array(MIB))).status).toBe(201);
    const tooLarge = await post("/queues/q/messages", new Uint8Array(MIB + 1));
    expect([tooLarge.status, await tooLarge.json()]).toEqual([413, expect.objectContaining({ code: "message-too-large" })]);
    const announced = await exchangeRaw(port, `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: 999999999\r\n\r\n`);
    expect([announced.status, announced.headers.connection]).toEqual([413, "close"]);
  });

  it("hold for bodies whose length nobody announced", async () => {
    const port = await start({}, MIB);
    const client = await connectRaw(port);
    await client.send(`POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.concat([Buffer.from(`${MIB.toString(16)}\r\n`), Buffer.alloc(MIB), Buffer.from("\r\n")]);
    const answer = client.answer();
    for (let sent = 0; sent < 40; sent += 1) await client.send(chunk);
    expect((await answer).status).toBe(413);
    await client.closed;
    expect(await started.backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  it("bound what all bodies have together", async () => {
    const port = await start({ maxBufferedBytes: MIB }, 4 * MIB);
    const holder = await connectRaw(port);
    await holder.send(`POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: ${MIB + 1}\r\n\r\n`);
    await holder.send(new Uint8Array(MIB - 10));
    let refused: Response;
    do refused = await post("/queues/q/messages", "0123456789ab");
    while (refused.status === 201);
    expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
      503,
      "1",
      expect.objectContaining({ code: "overloaded", retryable: true }),
    ]);
    holder.leave();
    await expect.poll(async () => (await post("/queues/q/messages", "0123456789ab")).status).toBe(201);
  });
});

describe("limits of connections", () => {
  it("bound their number", async () => {
    const port = await start({ maxConnections: 3 });
    const held = await Promise.all([connectRaw(port), connectRaw(port), connectRaw(port)]);
    for (const client of held) {
      await client.send(`GET /api/v1/queues HTTP/1.1\r\n${HEAD}\r\n`);
      expect((await client.answer()).status).toBe(200);
    }
    const extra = connect(port, "127.0.0.1");
    await once(extra, "close");
    held[0]?.leave();
    await expect.poll(async () => (await fetch(`${started.api}/queues`).catch(() => undefined))?.status).toBe(200);
    for (const client of held) client.leave();
  });

  it("cut who does not send headers in time", async () => {
    const port = await start({ headersTimeoutMs: 300 });
    const silent = await connectRaw(port);
    const slow = await connectRaw(port);
    await slow.send(`GET /api/v1/queues HTTP/1.1\r\n${HEAD}X: `);
    const answer = slow.answer();
    const drip = setInterval(() => void slow.send("a"), 50);
    expect((await answer).status).toBe(408);
    await Promise.all([silent.closed, slow.closed]);
    clearInterval(drip);
  });

  it("cut who does not send a request in time", async () => {
    const port = await start({ requestTimeoutMs: 1_000, headersTimeoutMs: 500 });
    const client = await connectRaw(port);
    await client.send(`POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: 1000000\r\n\r\n`);
    const drip = setInterval(() => void client.send("x".repeat(1_000)), 50);
    await client.closed;
    clearInterval(drip);
    expect(await started.backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  it("cut who sends less than the least, and nobody who waits", { timeout: 60_000 }, async () => {
    const port = await start({ minimumBytesPerSecond: 100_000 });
    const waiting = post("/queues/q/dequeue", JSON.stringify({ waitMs: 20_000 }), "application/json");
    const sender = await connectRaw(port);
    await sender.send(`POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: 1000000\r\n\r\n`);
    const drip = setInterval(() => void sender.send("x"), 100);
    await sender.closed;
    clearInterval(drip);
    await started.backend.enqueue(Q, [{ data: new Uint8Array(1) }]);
    expect((await waiting).status).toBe(200);
  });

  it.each(["http", "https"])(
    "cut who takes less than the least, and not who takes a large answer steadily (%s)",
    { timeout: 90_000 },
    async (scheme) => {
      const tls = scheme === "https" ? makeCertificate() : undefined;
      const port = await start({ minimumBytesPerSecond: 100_000, ...(tls === undefined ? {} : { tls }) });
      await started.backend.enqueue(Q, [{ data: new Uint8Array(32 * MIB).fill(97) }, { data: new Uint8Array(32 * MIB).fill(98) }]);
      const open = async (): Promise<Socket> => {
        const socket =
          tls === undefined ? connect(port, "127.0.0.1") : connectSecurely({ port, host: "127.0.0.1", rejectUnauthorized: false });
        socket.on("error", () => {});
        socket.write(`POST /api/v1/queues/q/dequeue HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n\r\n`);
        await once(socket, "data");
        return socket;
      };
      const stuck = await open();
      stuck.pause();
      const steady = await open();
      let taken = 0;
      steady.on("data", (part: Buffer) => {
        taken += part.byteLength;
        steady.pause();
        setTimeout(() => steady.resume(), part.byteLength / 1_500);
      });
      expect(await started.backend.status(Q)).toEqual({ pending: 0, processing: 2 });
      // What was taken for one who does not read is given back.
      await expect.poll(() => started.backend.status(Q), { timeout: 30_000 }).toEqual({ pending: 1, processing: 1 });
      // The other has taken for as long, and is still served.
      const before = taken;
      await expect.poll(() => taken, { timeout: 10_000 }).toBeGreaterThan(before + 2 * MIB);
      expect(before).toBeLessThan(32 * MIB);
      stuck.destroy();
      steady.destroy();
    },
  );

  it("keep idle connections for longer than clients do", async () => {
    const port = await start({});
    const answer = await exchangeRaw(port, `GET /api/v1/queues HTTP/1.1\r\n${HEAD}\r\n`);
    expect(answer.headers["keep-alive"]).toBe("timeout=95");
  });

  it("keep an idle connection no longer than told", async () => {
    const port = await start({ keepAliveTimeoutMs: 1_000 });
    const client = await connectRaw(port);
    await client.send(`GET /api/v1/queues HTTP/1.1\r\n${HEAD}\r\n`);
    await client.answer();
    await client.closed;
  });
});

describe("limits of time", () => {
  it("bound the number of those who wait", async () => {
    await start({ maxLongPolls: 2 });
    const waits = [1, 2].map(() => post("/queues/q/dequeue", JSON.stringify({ waitMs: 60_000 }), "application/json"));
    await expect.poll(async () => (await post("/queues/q/dequeue", JSON.stringify({ waitMs: 1 }), "application/json")).status).toBe(503);
    // Who does not wait is served.
    expect((await post("/queues/q/dequeue", "{}", "application/json")).status).toBe(200);
    await started.backend.enqueue(Q, [{ data: new Uint8Array(1) }, { data: new Uint8Array(1) }]);
    for (const wait of waits) expect((await wait).status).toBe(200);
  });

  it("bound how long a store may take, and say what is known then", async () => {
    const backend = await openMemory();
    await backend.createQueue(Q);
    let goOn: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const original = { clear: backend.clear.bind(backend), statistics: backend.statistics.bind(backend) };
    backend.clear = (queue) => held.then(() => original.clear(queue));
    backend.statistics = (queue) => held.then(() => original.statistics(queue));
    started = await startServer({ answerTimeoutMs: 1_000 }, backend);
    const headers = { "queuefs-session": "s", "queuefs-request": "1" };
    const clear = await fetch(`${started.api}/queues/q/clear`, { method: "POST", headers });
    expect([clear.status, await clear.json()]).toEqual([504, expect.objectContaining({ code: "outcome-unknown", retryable: false })]);
    const statistics = await fetch(`${started.api}/queues/q/statistics`);
    expect([statistics.status, await statistics.json()]).toEqual([504, expect.objectContaining({ code: "timed-out", retryable: true })]);
    const repeat = fetch(`${started.api}/queues/q/clear`, { method: "POST", headers });
    await sleep(50);
    goOn();
    expect((await repeat).status).toBe(200);
  });
});

describe("the address", () => {
  it("must be loopback without a token", async () => {
    await start({});
    for (const host of ["0.0.0.0", "::", "192.0.2.1"])
      await expect(startServer({ host })).rejects.toMatchObject({
        code: "invalid-argument",
        message: expect.stringContaining("give the server a token"),
      });
    const open = await startServer({ host: "0.0.0.0", tokens: [{ secret: "0123456789abcdef" }] });
    expect((await fetch(`http://127.0.0.1:${open.server.port}/api/v1/store`)).status).toBe(401);
    await open.close();
  });

  it("must be free, and options must be known", async () => {
    const port = await start({});
    await expect(startServer({ port })).rejects.toMatchObject({
      code: "invalid-argument",
      message: expect.stringContaining("somebody else listens there"),
    });
    await expect(startServer({ prot: 1 } as never)).rejects.toMatchObject({
      code: "invalid-argument",
      message: expect.stringContaining('"prot"'),
    });
  });
});
