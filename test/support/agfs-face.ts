/** The AGFS file API over the stores that need no server, asked as its clients ask: one request after the other, no socket. */

import { afterEach, beforeEach, describe, expect } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { type App, createApp } from "../../src/http/index.ts";
import { type OpenStore, STORES } from "./stores.ts";

/** How a request differs from a plain GET. */
export interface Asking {
  readonly method?: string;
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An answer, read to its end. */
export interface Answered {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly bytes: Uint8Array;
  /** The text as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape.
  readonly json: any;
}

/** The text of an error, of an answer that tells of one. */
export function errorOf(answer: Answered): string {
  expect(answer.type).toBe("application/json");
  expect(answer.status).toBeGreaterThanOrEqual(400);
  return String(answer.json.error);
}

/** What a case works with: new for each case, so to be asked anew in each. */
export interface AgfsFace {
  readonly app: App;
  readonly backend: Backend;
  /** Sends a request to `/api/v1` + `target`. */
  ask(target: string, asking?: Asking): Promise<Answered>;
  /** A request about a path, which is encoded as a form, as both SDKs do. */
  at(endpoint: string, path: string, asking?: Asking & { readonly query?: Readonly<Record<string, string>> }): Promise<Answered>;
  /** `GET /files`. */
  read(path: string, query?: Readonly<Record<string, string>>): Promise<Answered>;
  /** `PUT /files`. */
  write(path: string, body: string | Uint8Array): Promise<Answered>;
  /** `POST /directories`, as pyagfs does. */
  mkdir(path: string): Promise<Answered>;
  /** The status file of a queue, parsed. */
  status(queue: string): Promise<{ readonly pending: number; readonly processing: number }>;
}

async function answered(response: Response): Promise<Answered> {
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  return {
    status: response.status,
    type: response.headers.get("content-type") ?? "",
    text,
    bytes,
    get json() {
      return JSON.parse(text);
    },
  };
}

/** A way to ask an app. */
export function askingOf(app: () => App): Omit<AgfsFace, "app" | "backend"> {
  const ask: AgfsFace["ask"] = async (target, asking = {}) => {
    const { body, ...rest } = asking;
    const streaming = body instanceof ReadableStream ? { duplex: "half" } : {};
    const request = new Request(`http://127.0.0.1:7333/api/v1${target}`, {
      ...rest,
      ...streaming,
      ...(body === undefined ? {} : { body }),
    } as RequestInit);
    return answered(await app().fetch(request));
  };
  const at: AgfsFace["at"] = (endpoint, path, { query = {}, ...asking } = {}) =>
    ask(`${endpoint}?${new URLSearchParams({ path, ...query })}`, asking);
  const read: AgfsFace["read"] = (path, query = {}) => at("/files", path, { query });
  return {
    ask,
    at,
    read,
    write: (path, body) => at("/files", path, { method: "PUT", body }),
    mkdir: (path) => at("/directories", path, { method: "POST", query: { mode: "755" } }),
    status: async (queue) => JSON.parse((await read(`${queue}/status`)).text),
  };
}

/** Runs cases over a memory and a SQLite store, each case on an empty one, mounted at `/queuefs`. */
export function overAgfs(subject: string, cases: (face: AgfsFace) => void): void {
  const kinds = STORES.filter(({ name }) => name !== "redis");
  describe.each(kinds)(`${subject} over $name`, (kind) => {
    let store: OpenStore;
    let app: App;
    beforeEach(async () => {
      store = await kind.open();
      app = createApp(store.backend);
    });
    afterEach(async () => {
      await app.close();
      await store.close();
    });
    cases({
      ...askingOf(() => app),
      get app() {
        return app;
      },
      get backend() {
        return store.backend;
      },
    });
  });
}
