/** The stores that several processes can share: one table, so that what must hold on all of them is tested once. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import type { SqliteSpec, StoreSpec } from "./store-spec.ts";

/** One kind of store. */
export interface SharedStoreKind<Spec extends StoreSpec = StoreSpec> {
  readonly name: string;
  /** Makes ready what all stores of a test file share. */
  begin(): Promise<void>;
  /** Names a store that nobody has used yet. */
  fresh(): Spec;
  /** Ends what `begin` made. */
  end(): Promise<void>;
}

let stores = 0;

/** SQLite files in one folder. */
export function sqliteStores(options: Omit<SqliteSpec, "kind" | "path"> = {}): SharedStoreKind<SqliteSpec> {
  let folder = "";
  return {
    name: `sqlite, durability ${options.durability ?? "full"}`,
    async begin() {
      folder = await mkdtemp(join(tmpdir(), "queuefs-faults-"));
    },
    fresh() {
      stores += 1;
      return { kind: "sqlite", path: join(folder, `${stores}.db`), ...options };
    },
    end: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Namespaces of one server, started for the test file. */
export function redisStores(options: { readonly sweepIntervalMs?: number } = {}): SharedStoreKind {
  let server: RedisServer | undefined;
  return {
    name: "redis",
    async begin() {
      server = await startRedisServer();
    },
    fresh() {
      stores += 1;
      return { kind: "redis", url: server?.url ?? "", namespace: `faults-${stores}`, ...options };
    },
    async end() {
      await server?.stop();
    },
  };
}
