/** The stores that every surface is tested over: one table, so that no backend has tests of its own for what all must do. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend } from "../../src/backend/contract.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

/** One open, empty store. */
export interface OpenStore {
  readonly backend: Backend;
  /** Closes the backend and removes what it kept. */
  close(): Promise<void>;
}

/** One kind of store. */
export interface StoreKind {
  readonly name: string;
  /** Makes ready what all stores of a test file share, such as a server. */
  begin(): Promise<void>;
  /** Opens a store that is empty. */
  open(): Promise<OpenStore>;
  /** Ends what `begin` made. */
  end(): Promise<void>;
}

const nothing = async (): Promise<void> => {};

const memory: StoreKind = {
  name: "memory",
  begin: nothing,
  async open() {
    const backend = await openMemory();
    return { backend, close: () => backend.close() };
  },
  end: nothing,
};

const sqlite: StoreKind = {
  name: "sqlite",
  begin: nothing,
  async open() {
    const directory = await mkdtemp(join(tmpdir(), "queuefs-files-"));
    const backend = await openSqlite({ path: join(directory, "queue.db") });
    return {
      backend,
      async close() {
        await backend.close();
        await rm(directory, { recursive: true, force: true });
      },
    };
  },
  end: nothing,
};

let server: RedisServer | undefined;
let namespaces = 0;

const redis: StoreKind = {
  name: "redis",
  async begin() {
    server = await startRedisServer();
  },
  async open() {
    if (server === undefined) throw new Error("begin starts the server");
    namespaces += 1;
    const backend = await openRedis({ url: server.url, namespace: `files-${namespaces}` });
    return { backend, close: () => backend.close() };
  },
  async end() {
    await server?.stop();
    server = undefined;
  },
};

/** All kinds of store. */
export const STORES: readonly StoreKind[] = [memory, sqlite, redis];
