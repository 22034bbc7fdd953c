/** How the clients of the fault runner open its store. */

import type { Backend } from "../../../src/backend/contract.ts";
import { openHttp } from "../../../src/backend/http/index.ts";
import { openRedis } from "../../../src/backend/redis/index.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import type { Clock } from "../../../src/core/clock.ts";

/** Where the store is, as clients reach it. */
export type ClientStore =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "redis"; readonly url: string }
  | { readonly kind: "http"; readonly url: string };

/** How long a SQLite client waits for another that holds the lock of the file. */
export const BUSY_MS = 5_000;
/** How long a client waits for a server that is away. */
export const OUTAGE_MS = 8_000;
/** Silence of a server after which a client takes its connection for dead. */
export const SILENCE_MS = 1_500;
const SWEEP_MS = 200;

/** Opens the store as every client does. @param clock of the client; its wall clock may step */
export function openClient(store: ClientStore, clock: Clock): Promise<Backend> {
  // Lost connections and busy stores are what this is about; calls tell of them.
  const common = { clock, onError: () => {} };
  if (store.kind === "sqlite") return openSqlite({ ...common, path: store.path, busyTimeoutMs: BUSY_MS, sweepIntervalMs: SWEEP_MS });
  if (store.kind === "redis")
    return openRedis({ ...common, url: store.url, commandTimeoutMs: SILENCE_MS, outageMs: OUTAGE_MS, sweepIntervalMs: SWEEP_MS });
  return openHttp({ ...common, url: store.url, requestTimeoutMs: SILENCE_MS, outageMs: OUTAGE_MS });
}
