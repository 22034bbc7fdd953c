/** QueueFS on each of its stores, opened the same way in this process and in those that it starts. */

import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import type { Backend } from "../src/backend/contract.ts";
import { startRedisServer } from "../test/support/redis-server.ts";
import type { Library } from "./library.ts";
import type { Run } from "./settings.ts";

/** The stores, as they stand in tables. */
export const STORES = ["memory", "SQLite", "Redis"] as const;
/** One of them. */
export type StoreName = (typeof STORES)[number];

/** Where a store is. It can be sent to another process. */
export interface Place {
  readonly store: StoreName;
  /** The file of SQLite. */
  readonly path: string;
  readonly durability: "full" | "normal";
  /** The server of Redis, and the prefix there. */
  readonly url: string;
  readonly namespace: string;
}

/** Bytes that a memory store may hold: more than any measure needs. */
const MAX_BYTES = 8 * 1024 ** 3;
/** Messages that it may hold. */
const MAX_MESSAGES = 16_000_000;

/** Opens the store at a place. */
export function openPlace(library: Library, { store, path, durability, url, namespace }: Place): Promise<Backend> {
  if (store === "memory") return library.openMemory({ maxBytes: MAX_BYTES, maxMessages: MAX_MESSAGES });
  if (store === "SQLite") return library.openSqlite({ path, durability });
  return library.openRedis({ url, namespace });
}

/** All stores, with a server of Redis that lives as long as they are used. */
export interface Stores {
  /** A place where nothing is yet. @param folder where the file is to be; SQLite commits with `normal` unless the durability says otherwise */
  newPlace(store: StoreName, folder: string, durability?: "full" | "normal"): Place;
  /** Opens the store at a new place. */
  open(store: StoreName, folder: string): Promise<Backend>;
  /** Removes everything from the server. */
  clear(): Promise<void>;
  /** Bytes that the server uses. */
  serverBytes(): Promise<number>;
  /** Time of the processor that the server has taken, in microseconds. */
  serverProcessorUs(): Promise<number>;
}

/** Calls back with all stores. */
export async function withStores<Value>(run: Run, use: (stores: Stores) => Promise<Value>): Promise<Value> {
  const server = await startRedisServer();
  const client = new Redis(server.port, "127.0.0.1");
  let places = 0;
  const newPlace = (store: StoreName, folder: string, durability: "full" | "normal" = "normal"): Place => {
    places += 1;
    const own = join(folder, String(places));
    mkdirSync(own);
    return { store, path: join(own, "queue.db"), durability, url: server.url, namespace: `bench-${places}` };
  };
  try {
    return await use({
      newPlace,
      open: (store, folder) => openPlace(run.library, newPlace(store, folder)),
      clear: async () => {
        await client.flushall();
      },
      serverBytes: () => usedMemory(client),
      serverProcessorUs: () => usedProcessorUs(client),
    });
  } finally {
    client.disconnect();
    await server.stop();
  }
}

/** Bytes that a server of Redis uses. */
export async function usedMemory(client: Redis): Promise<number> {
  const information = await client.info("memory");
  return Number(/^used_memory:(\d+)/m.exec(information)?.[1] ?? Number.NaN);
}

async function usedProcessorUs(client: Redis): Promise<number> {
  const information = await client.info("cpu");
  const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(information)?.[1]);
  return (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1_000_000;
}

/** A process of the benchmark: a module beside the measures, told what to do as JSON, telling what it has found. */
export interface Told<Message> {
  /** The next message from it. Rejects when the process ends without one. */
  next(): Promise<Message>;
  send(message: string): void;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

/** Starts a process. @param module the name of a file in measures/ */
export function startProcess<Message>(module: string, task: unknown): Told<Message> {
  const child = fork(fileURLToPath(new URL(`./measures/${module}`, import.meta.url)), [JSON.stringify(task)], {
    execArgv: [...process.execArgv, "--expose-gc"],
  });
  const messages: Message[] = [];
  let wake = (): void => {};
  let exitCode: number | null | undefined;
  child.on("message", (message) => {
    messages.push(message as Message);
    wake();
  });
  const ended = new Promise<void>((resolve) => {
    child.once("exit", (code) => {
      exitCode = code;
      wake();
      resolve();
    });
  });
  return {
    async next() {
      while (messages.length === 0) {
        if (exitCode !== undefined) throw new Error(`a process of the benchmark (${module}) ended with ${exitCode}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return messages.shift() as Message;
    },
    send: (message) => {
      child.send(message);
    },
    ended,
  };
}
