/** The package as its users run it: the built modules, made anew when a source is newer. */

import type { openMemory } from "../src/backend/memory/index.ts";
import type { openRedis } from "../src/backend/redis/index.ts";
import type { openSqlite } from "../src/backend/sqlite/index.ts";
import type { NamedQueue, Worker, waitComplete } from "../src/index.ts";
import { setup as buildIfNeeded } from "../test/support/build-once.ts";

/** What is measured of the package. */
export interface Library {
  readonly openMemory: typeof openMemory;
  readonly openRedis: typeof openRedis;
  readonly openSqlite: typeof openSqlite;
  readonly NamedQueue: typeof NamedQueue;
  readonly Worker: typeof Worker;
  readonly waitComplete: typeof waitComplete;
}

function load(path: string): Promise<unknown> {
  return import(new URL(`../dist/${path}index.js`, import.meta.url).href);
}

/** Loads the package, built anew when that is needed. */
export async function loadLibrary(): Promise<Library> {
  buildIfNeeded();
  return loadBuiltLibrary();
}

/** Loads the package as it was built, for processes that the run starts. */
export async function loadBuiltLibrary(): Promise<Library> {
  const modules = await Promise.all(["", "backend/memory/", "backend/redis/", "backend/sqlite/"].map(load));
  return Object.assign({}, ...(modules as object[])) as Library;
}
