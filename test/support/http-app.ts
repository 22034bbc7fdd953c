/** An HTTP server without sockets over a memory store, and requests to it. */

import type { Backend } from "../../src/backend/contract.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { type App, type AppOptions, createApp } from "../../src/http/app.ts";

/** What came back. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at.
  readonly json: any;
  readonly bytes: Uint8Array;
}

/** A request to be sent. */
export interface Asked {
  /** Sent as JSON; bytes and texts as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An app, its store, and a way to ask it. */
export interface TestApp {
  readonly app: App;
  readonly backend: Backend;
  /** Asks `METHOD PATH`, the path below /api/v1 unless it begins with `//`, which stands for the root. */
  ask(request: string, asked?: Asked): Promise<Answered>;
  close(): Promise<void>;
}

/** Makes a request of it. */
export function requestOf(origin: string, request: string, { body, headers = {}, signal }: Asked = {}): Request {
  const [method = "", path = ""] = request.split(" ", 2);
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  return new Request(origin + (path.startsWith("//") ? path.slice(1) : `/api/v1${path}`), {
    method,
    headers: { ...(body === undefined || isRaw ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: (isRaw ? body : JSON.stringify(body)) as string | Uint8Array<ArrayBuffer> }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** What a stream begins with; it would not end by itself. */
async function beginOf(stream: NonNullable<Response["body"]>): Promise<Uint8Array> {
  const reader = stream.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return (value as Uint8Array | undefined) ?? new Uint8Array();
}

/** Reads an answer; of a stream of events, how it begins. */
export async function answered(response: Response): Promise<Answered> {
  const type = response.headers.get("content-type") ?? "";
  const { body } = response;
  const bytes = type === "text/event-stream" && body !== null ? await beginOf(body) : new Uint8Array(await response.arrayBuffer());
  const json = /json/.test(type) && bytes.length > 0 ? JSON.parse(Buffer.from(bytes).toString("utf8")) : undefined;
  return { status: response.status, headers: response.headers, json, bytes };
}

/** Opens an app over a new memory store. The caller must `close` it. */
export async function openTestApp(options: AppOptions = {}, store?: Backend): Promise<TestApp> {
  const backend = store ?? (await openMemory());
  const app = createApp(backend, options);
  return {
    app,
    backend,
    ask: async (request, asked) => answered(await app.fetch(requestOf("http://localhost", request, asked))),
    async close() {
      app.drain();
      await backend.close();
    },
  };
}
