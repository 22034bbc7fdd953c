/** How a store is named across processes: every process of a test opens the same one from the same plain data. */

import type { Backend } from "../../src/backend/contract.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { openSqlite, type SqliteOptions } from "../../src/backend/sqlite/index.ts";

/** A SQLite file. */
export type SqliteSpec = { readonly kind: "sqlite" } & Omit<SqliteOptions, "clock" | "random" | "onError">;

/** A store that any process of this host can open. */
export type StoreSpec =
  | SqliteSpec
  | { readonly kind: "redis"; readonly url: string; readonly namespace: string; readonly sweepIntervalMs?: number };

/** Opens the store. @param onError hears of errors in the background */
export function openStore(spec: StoreSpec, onError: (error: unknown) => void): Promise<Backend> {
  if (spec.kind === "sqlite") {
    const { kind: _kind, ...options } = spec;
    return openSqlite({ ...options, onError });
  }
  const { kind: _kind, ...options } = spec;
  return openRedis({ ...options, onError });
}
