/** A client that goes away, at whatever point of a dequeue, loses nothing, and takes nothing with it. */

import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseQueueName } from "../../src/core/names.ts";
import { connectRaw, startServer, type TestServer } from "../support/raw-http.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const Q = parseQueueName("q");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
let started: TestServer;
beforeEach(async () => {
  started = await startServer();
  await started.backend.createQueue(Q);
});
afterEach(async () => {
  await started.close();
  expect(started.errors).toEqual([]);
});

function dequeueRequest(body: object): string {
  const text = JSON.stringify(body);
  return `POST /api/v1/queues/q/dequeue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
}

/** Resolves once so many requests of the server are waiting for a message: then an enqueue would be taken by one. */
async function untilWaiting(): Promise<void> {
  await sleep(50);
}

describe("a client that goes away", () => {
  it.each([undefined, "reset"] as const)("while it waits gets nothing, and the next one does (%s)", async (how) => {
    for (let round = 0; round < 5; round += 1) {
      const gone = await connectRaw(started.server.port);
      await gone.send(dequeueRequest({ waitMs: 60_000 }));
      await untilWaiting();
      gone.leave(how);
      const stays = await connectRaw(started.server.port);
      await stays.send(dequeueRequest({ waitMs: 60_000 }));
      await untilWaiting();
      await started.backend.enqueue(Q, [{ data: bytes(`m${round}`) }]);
      const answer = await stays.answer();
      expect(JSON.parse(answer.body).messages).toMatchObject([{ data: `m${round}`, deliveries: 1 }]);
      stays.leave();
      await started.backend.clear(Q);
    }
  });

  it("while the store hands a message out for it has it given back", async () => {
    const original = started.backend.dequeue.bind(started.backend);
    let goOn: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    started.backend.dequeue = async (...given) => {
      const taken = await original(...given);
      await held;
      return taken;
    };
    await started.backend.enqueue(Q, [{ data: bytes("m") }]);
    const gone = await connectRaw(started.server.port);
    await gone.send(dequeueRequest({}));
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    gone.leave();
    await sleep(50);
    goOn();
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 1, processing: 0 });
    started.backend.dequeue = original;
    // A release does not count as a delivery.
    expect(await started.backend.peek(Q)).toMatchObject({ deliveryCount: 0 });
  });

  it("before it reads the answer has it given back", async () => {
    await started.backend.enqueue(Q, [{ data: bytes("m") }]);
    const gone = await connectRaw(started.server.port);
    gone.socket.pause();
    await gone.send(dequeueRequest({}));
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    await sleep(50);
    // With the answer unread in its socket, its host says so with a reset.
    gone.leave("reset");
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 1, processing: 0 });
  });

  it("in the middle of a large answer has it given back", async () => {
    await started.backend.enqueue(Q, [{ data: new Uint8Array(32 * 1024 * 1024).fill(97) }]);
    const gone = await connectRaw(started.server.port);
    gone.socket.pause();
    await gone.send(dequeueRequest({}));
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    gone.leave("reset");
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 1, processing: 0 });
  });

  it("and gave a request id may come back for the very same delivery", async () => {
    await started.backend.enqueue(Q, [{ data: bytes("m") }]);
    const body = { requestId: "once", limit: 5 };
    const gone = await connectRaw(started.server.port);
    gone.socket.pause();
    await gone.send(dequeueRequest(body));
    await expect.poll(() => started.backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    gone.leave("reset");
    await sleep(50);
    expect(await started.backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    const back = await connectRaw(started.server.port);
    await back.send(dequeueRequest(body));
    const [message] = JSON.parse((await back.answer()).body).messages;
    expect(message).toMatchObject({ data: "m", deliveries: 1 });
    expect(await started.backend.ack(Q, [{ receipt: message.receipt }])).toEqual([{ outcome: "acked", forwarded: [] }]);
    back.leave();
  });

  it("at any byte of its request and any moment of its wait leaves all messages there", { timeout: 60_000 }, async () => {
    const text = dequeueRequest({ waitMs: 1_000, limit: 3 });
    await started.backend.enqueue(
      Q,
      Array.from({ length: 20 }, (_, index) => ({ data: bytes(String(index)) })),
    );
    for (let cut = 0; cut <= text.length; cut += 7) {
      const client = await connectRaw(started.server.port);
      await client.send(text.slice(0, cut));
      if (cut % 2 === 0) await sleep(cut % 3);
      client.leave(cut % 3 === 0 ? "reset" : undefined);
    }
    const whole = Array.from({ length: 40 }, async (_, index) => {
      const client = await connectRaw(started.server.port);
      void client.send(text);
      await sleep(index % 8);
      client.leave(index % 2 === 0 ? "reset" : undefined);
    });
    await Promise.all(whole);
    // What was handed to a socket that was closed in order, and not read, is the lease's to bring back; all is still there.
    const status = await started.backend.status(Q);
    expect(status.pending + status.processing).toBe(20);
  });
});

describe("a lost reply", () => {
  let proxy: TcpProxy;
  beforeEach(async () => {
    proxy = await startTcpProxy(started.server.port);
  });
  afterEach(() => proxy.stop());

  const repeated: readonly [string, string, unknown][] = [
    ["POST", "/queues/q/messages", { messages: [{ data: "one" }] }],
    ["POST", "/queues/q/clear", undefined],
    ["PUT", "/queues/made", undefined],
    ["DELETE", "/queues/gone", undefined],
    ["POST", "/tasks", { task: { type: "t" }, batches: [{ queue: "q", messages: [{ data: "of a task" }] }] }],
  ];

  /** Sends a request through the proxy; the reply may be lost. */
  function send(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? "" : JSON.stringify(body);
      const sent = request(
        {
          port: proxy.port,
          host: "127.0.0.1",
          method,
          path: `/api/v1${path}`,
          agent: false,
          headers: { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
          response.on("error", reject);
        },
      );
      sent.on("error", reject);
      sent.end(text);
    });
  }

  it.each(repeated)("of %s %s is asked for again, and the step is not done twice", async (method, path, body) => {
    await started.backend.createQueue(parseQueueName("gone"));
    await started.backend.enqueue(Q, [{ data: bytes("before") }]);
    const headers = { "queuefs-session": "client-1", "queuefs-request": "1" };
    proxy.losesReplies = true;
    const lost = send(method, path, body, headers);
    lost.catch(() => {});
    await sleep(100);
    proxy.cut();
    await expect(lost).rejects.toThrow();
    proxy.losesReplies = false;
    const before = { status: await started.backend.status(Q), tasks: (await started.backend.tasks()).items.length };
    const first = await send(method, path, body, headers);
    const second = await send(method, path, body, headers);
    expect(first.status).toBeLessThan(300);
    expect(second).toEqual(first);
    // Done by the request whose reply was lost, and by no other.
    expect({ status: await started.backend.status(Q), tasks: (await started.backend.tasks()).items.length }).toEqual(before);
    if (path === "/queues/gone") expect(JSON.parse(first.text)).toEqual({ removed: 1 });
    if (path === "/queues/made") expect(first.status).toBe(201);
  });

  it("of a dequeue brings the same deliveries, by the number of the request alone", async () => {
    await started.backend.enqueue(Q, [{ data: bytes("a") }, { data: bytes("b") }]);
    const headers = { "queuefs-session": "client-1", "queuefs-request": "7" };
    const first = await send("POST", "/queues/q/dequeue", {}, headers);
    const second = await send("POST", "/queues/q/dequeue", {}, headers);
    expect(second).toEqual(first);
    expect(await started.backend.status(Q)).toEqual({ pending: 1, processing: 1 });
  });

  it("is not asked of another life of the server", async () => {
    const headers = { "queuefs-session": "client-1", "queuefs-request": "1", "queuefs-instance": "another" };
    const { status, text } = await send("POST", "/queues/q/messages", { messages: [{ data: "x" }] }, headers);
    expect([status, JSON.parse(text).code]).toEqual([504, "outcome-unknown"]);
    expect(await started.backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  it("is refused to be remembered where its number is none", async () => {
    for (const headers of [
      { "queuefs-session": "a" },
      { "queuefs-request": "1" },
      { "queuefs-session": "a b", "queuefs-request": "1" },
      { "queuefs-session": "a", "queuefs-request": "-1" },
    ]) {
      const { status } = await send("POST", "/queues/q/clear", undefined, headers as never);
      expect(status).toBe(400);
    }
  });
});

describe("an idempotency key", () => {
  it("lets the same enqueue store nothing twice, and refuses other bytes under it", async () => {
    const post = async (body: string, headers: Record<string, string>): Promise<unknown> =>
      (await fetch(`${started.api}/queues/q/messages`, { method: "POST", body, headers })).json();
    const key = { "idempotency-key": "order-7" };
    expect(await post("m", key)).toEqual({ answers: [{ outcome: "enqueued", id: "order-7" }] });
    expect(await post("m", key)).toEqual({ answers: [{ outcome: "repeated", id: "order-7" }] });
    expect(await post("other", key)).toMatchObject({ code: "id-conflict", status: 422 });
    const mixed = { "content-type": "application/json", "idempotency-key": "mixed" };
    const messages = [{ data: "other", id: "order-7" }, { data: "m" }];
    expect(await post(JSON.stringify({ messages }), mixed)).toMatchObject({ answers: [{ outcome: "conflict" }, { outcome: "enqueued" }] });
    expect(await post(JSON.stringify({ messages: messages.slice(0, 1) }), { "content-type": "application/json" })).toEqual({
      answers: [{ outcome: "conflict", id: "order-7" }],
    });
    const lines = { "content-type": "application/x-ndjson", "idempotency-key": "batch" };
    const body = '{"data":"a"}\n\n{"data":"b","id":"own"}\n{"data":"c"}\n';
    expect(await post(body, lines)).toEqual({ answers: ["batch.0", "own", "batch.2"].map((id) => ({ outcome: "enqueued", id })) });
    expect(await post(body, lines)).toMatchObject({ answers: [{ outcome: "repeated" }, { outcome: "repeated" }, { outcome: "repeated" }] });
  });
});
