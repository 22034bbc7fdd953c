/** The package as its users run it: the built modules, made anew when a source is newer. */

import type { openMemory } from "../src/backend/memory/index.ts";
import type { openRedis } from "../src/backend/redis/index.ts";
import type { openSqlite } from "../src/backend/sqlite/index.ts";
import { setup as buildIfNeeded } from "../test/support/build-once.ts";

/** What is measured of the package. */
export interface Library {
  readonly openMemory: typeof openMemory;
  readonly openRedis: typeof openRedis;
  readonly openSqlite: typeof openSqlite;
}

function load(path: string): Promise<unknown> {
  return import(new URL(`../dist/backend/${path}/index.js`, import.meta.url).href);
}

/** Loads the built package. */
export async function loadLibrary(): Promise<Library> {
  buildIfNeeded();
  const modules = await Promise.all(["memory", "redis", "sqlite"].map(load));
  return Object.assign({}, ...(modules as object[])) as Library;
}
