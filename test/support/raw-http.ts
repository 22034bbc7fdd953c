/** A client that sends exactly the bytes it is told to, and a server to send them to. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Backend } from "../../src/backend/contract.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { type HttpServer, type ListenOptions, listen } from "../../src/http/index.ts";

/** A server over a memory store with the queue `q`. */
export interface TestServer {
  readonly server: HttpServer;
  readonly backend: Backend;
  /** What the server reported as errors of its own. */
  readonly errors: readonly unknown[];
  /** Where the native API begins. */
  readonly api: string;
  close(): Promise<void>;
}

/** Starts a server. The caller must `close` it. */
export async function startServer(options: ListenOptions = {}, store?: Backend): Promise<TestServer> {
  const backend = store ?? (await openMemory());
  const errors: unknown[] = [];
  const server = await listen(backend, { port: 0, onError: (error) => void errors.push(error), ...options });
  return {
    server,
    backend,
    errors,
    api: `${server.url}/api/v1`,
    async close() {
      await server.stop();
      await backend.close();
    },
  };
}

/** An answer as it stands on the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One connection. */
export interface RawClient {
  readonly socket: Socket;
  /** Sends bytes; resolves when they were handed over, or the server has closed. */
  send(bytes: string | Uint8Array): Promise<void>;
  /** The next answer. Rejects when the connection ends before it is whole. */
  answer(): Promise<RawAnswer>;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
  /** Ends the connection at once, with a reset if asked to. */
  leave(how?: "reset"): void;
}

/** Takes the first whole answer off the front of what came. */
function takeAnswer(text: Buffer): { readonly answer: RawAnswer; readonly rest: Buffer } | undefined {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [first = "", ...lines] = text.subarray(0, headEnd).toString("latin1").split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const length = Number(headers["content-length"] ?? 0);
  const end = headEnd + 4 + length;
  if (text.length < end) return undefined;
  const status = Number(first.split(" ")[1]);
  return { answer: { status, headers, body: text.subarray(headEnd + 4, end).toString("utf8") }, rest: text.subarray(end) };
}

/** Connects to a server of this host. */
export async function connectRaw(port: number): Promise<RawClient> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  let received = Buffer.alloc(0);
  let isClosed = false;
  let look = (): void => {};
  socket.on("data", (part: Buffer) => {
    received = Buffer.concat([received, part]);
    look();
  });
  // What the server does with the connection is what tests look at.
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) =>
    socket.once("close", () => {
      isClosed = true;
      resolve();
      look();
    }),
  );
  return {
    socket,
    closed,
    send: (bytes) =>
      new Promise((resolve) => {
        if (socket.destroyed || !socket.writable) resolve();
        else {
          void closed.then(resolve);
          socket.write(bytes, () => resolve());
        }
      }),
    answer: () =>
      new Promise((resolve, reject) => {
        look = () => {
          const taken = takeAnswer(received);
          if (taken !== undefined) {
            look = () => {};
            received = Buffer.from(taken.rest);
            resolve(taken.answer);
          } else if (isClosed)
            reject(new Error(`the connection ended before an answer was whole; there was: ${received.toString("latin1")}`));
        };
        look();
      }),
    leave(how) {
      if (how === "reset") socket.resetAndDestroy();
      else socket.destroy();
    },
  };
}

/** Sends bytes on a connection of their own and gives the first answer. */
export async function exchangeRaw(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  const client = await connectRaw(port);
  try {
    await client.send(bytes);
    return await client.answer();
  } finally {
    client.leave();
  }
}
