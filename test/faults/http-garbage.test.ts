/** Whatever bytes come, the answer is a clear 4xx or a closed connection, and the server serves on. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseQueueName } from "../../src/core/names.ts";
import { SeededRandom } from "../../src/testing/index.ts";
import { connectRaw, exchangeRaw, startServer, type TestServer } from "../support/raw-http.ts";

const Q = parseQueueName("q");
const HEAD = "Host: localhost\r\n";
let started: TestServer;
let port: number;
beforeAll(async () => {
  started = await startServer({ headersTimeoutMs: 2_000, allowOrigins: ["https://app.example"] });
  port = started.server.port;
  await started.backend.createQueue(Q);
});
afterAll(() => started.close());

/** The server works, no error was its own, and nothing was stored or taken. */
async function expectUnharmed(): Promise<void> {
  const response = await fetch(`${started.api}/queues/q/status`);
  expect(await response.json()).toEqual({ pending: 0, processing: 0 });
  expect(started.errors).toEqual([]);
}

async function expectRefused(bytes: string | Uint8Array, status: number): Promise<void> {
  const answer = await exchangeRaw(port, bytes);
  expect({ sent: bytes.slice(0, 60), status: answer.status }).toEqual({ sent: bytes.slice(0, 60), status });
  expect(answer.headers["content-type"]).toBe("application/problem+json");
  expect(JSON.parse(answer.body)).toMatchObject({
    status,
    code: expect.any(String),
    detail: expect.any(String),
    retryable: expect.any(Boolean),
  });
}

describe("garbage", () => {
  it("of random bytes is refused or hung up on", async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = new SeededRandom(seed);
    for (let round = 0; round < 200; round += 1) {
      const bytes = Uint8Array.from({ length: 1 + Math.floor(random.fraction() * 2_000) }, () => Math.floor(random.fraction() * 256));
      // Some begin like a request, so that they get further.
      const prefix =
        ["", "GET /api/v1/queues ", "POST /api/v1/queues/q/messages HTTP/1.1\r\n", `POST /api/v1/queues/q/dequeue HTTP/1.1\r\n${HEAD}`][
          round % 4
        ] ?? "";
      const client = await connectRaw(port);
      await client.send(Buffer.concat([Buffer.from(prefix), bytes]));
      client.socket.end();
      await client.closed;
      const status = await client.answer().then(
        (answer) => answer.status,
        () => 0,
      );
      expect({ seed, round, isClear: status === 0 || (status >= 400 && status < 500) }).toEqual({ seed, round, isClear: true });
    }
    await expectUnharmed();
  });

  it.each([
    ["no request line", "\r\n\r\nnonsense\r\n\r\n", 400],
    ["a method that is none", `B@D / HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["a version that is none", `GET / HTTP/9.9\r\n${HEAD}\r\n`, 400],
    ["no host", "GET /api/v1/queues HTTP/1.1\r\n\r\n", 400],
    ["two lengths", `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`, 400],
    [
      "a length and chunks",
      `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["a length that is none", `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: -1\r\n\r\n`, 400],
    ["a bare line feed in a header", `GET / HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n`, 400],
    ["a NUL in a header", `GET / HTTP/1.1\r\n${HEAD}X: a\0b\r\n\r\n`, 400],
    ["a NUL in the path", `GET /api/v1/queues/a\0b/status HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["an encoded NUL", `GET /api/v1/queues/a%00b/status HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["dots", `GET /api/v1/../../etc/passwd HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["encoded dots", `GET /api/v1/queues/%2e%2e/status HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["dots behind encoded slashes", `GET /api/v1/queues/a%2f..%2f..%2fb/status HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["a backslash", `GET /api/v1\\queues HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["percent signs without digits", `GET /api/v1/queues/% HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["percent-encoding that is not UTF-8", `GET /api/v1/queues/%ff%fe/status HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["double slashes", `GET //api/v1//queues HTTP/1.1\r\n${HEAD}\r\n`, 404],
    ["an absolute target", `GET http://localhost/api/v1/queues HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["a target that is a star", `OPTIONS * HTTP/1.1\r\n${HEAD}\r\n`, 400],
    ["a foreign host", "GET /api/v1/queues HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403],
    ["a method that the path does not have", `PUT /api/v1/queues HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n\r\n`, 405],
    ["tracing", `TRACE /api/v1/queues HTTP/1.1\r\n${HEAD}\r\n`, 405],
    ["an encoded body", `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx`, 415],
    [
      "a type that is not understood",
      `POST /api/v1/queues/q/ack HTTP/1.1\r\n${HEAD}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`,
      415,
    ],
    ["JSON that is none", `POST /api/v1/queues/q/ack HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{`, 400],
    [
      "JSON that is not UTF-8",
      Buffer.concat([
        Buffer.from(`POST /api/v1/queues/q/ack HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: 4\r\n\r\n"`),
        Buffer.from([0xff, 0xfe, 0x22]),
      ]),
      400,
    ],
    [
      "a frame that is shorter than it says",
      Buffer.concat([
        Buffer.from(
          `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Type: application/vnd.queuefs.messages\r\nContent-Length: 6\r\n\r\n`,
        ),
        Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2]),
      ]),
      400,
    ],
    ["a malformed chunk", `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n`, 400],
  ] as const)("of the kind '%s' is refused", async (_, bytes, status) => {
    await expectRefused(bytes, status);
    await expectUnharmed();
  });

  it("is told of to pages that are allowed, and in the word of AGFS clients too", async () => {
    const ask = (path: string, origin: string) => exchangeRaw(port, `GET ${path} HTTP/1.1\r\n${HEAD}Origin: ${origin}\r\n\r\n`);
    for (const path of ["/api/v1/queues/%ff", "/api/v1/files?path=%zz"]) {
      const { status, headers, body } = await ask(path, "https://app.example");
      expect([status, headers["access-control-allow-origin"]]).toEqual([400, "https://app.example"]);
      const { error, detail } = JSON.parse(body) as Record<string, unknown>;
      expect(error).toBe(detail);
      expect((await ask(path, "https://evil.example")).headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  it("of a hundred thousand headers is refused, by bytes and by number", async () => {
    const many = Array.from({ length: 100_000 }, (_, index) => `x-${index}: y\r\n`).join("");
    await expectRefused(`GET /api/v1/queues HTTP/1.1\r\n${HEAD}${many}\r\n`, 431);
    await expectRefused(`GET /api/v1/queues HTTP/1.1\r\n${HEAD}${"a:\r\n".repeat(100)}\r\n`, 431);
    expect((await exchangeRaw(port, `GET /api/v1/queues HTTP/1.1\r\n${HEAD}${"a:\r\n".repeat(99)}\r\n`)).status).toBe(200);
    await expectUnharmed();
  });

  it("of long targets is refused", async () => {
    await expectRefused(`GET /api/v1/queues?under=${"a".repeat(40_000)} HTTP/1.1\r\n${HEAD}\r\n`, 414);
    await expectRefused(`GET /api/v1/queues?${"a=b&".repeat(64)}a=b HTTP/1.1\r\n${HEAD}\r\n`, 400);
    await expectUnharmed();
  });

  it("of a body that breaks off stores nothing, however it is sent", async () => {
    const halves = [
      `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Content-Length: 10\r\n\r\n12345`,
      `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n`,
      `POST /api/v1/queues/q/messages HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n123`,
    ];
    for (const half of halves) {
      for (const how of [undefined, "reset"] as const) {
        const client = await connectRaw(port);
        await client.send(half);
        client.leave(how);
        await client.closed;
      }
      const client = await connectRaw(port);
      await client.send(half);
      client.socket.end();
      await client.closed;
    }
    await expectUnharmed();
  });

  it("behind a good request does not spoil its answer", async () => {
    const client = await connectRaw(port);
    await client.send(`GET /api/v1/queues/q/status HTTP/1.1\r\n${HEAD}\r\n`);
    expect((await client.answer()).status).toBe(200);
    await client.send("\u0000\u0001nonsense\r\n\r\n");
    expect((await client.answer()).status).toBe(400);
    await client.closed;
    await expectUnharmed();
  });
});
