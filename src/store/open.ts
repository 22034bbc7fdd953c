/** Opening a store by its location: the backend is chosen by the scheme, and only that one is loaded. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Random } from "../core/clock.ts";
import { QueueFSError, quote } from "../core/errors.ts";

/** Options of a store. Those that a backend does not know it refuses: `durability` is SQLite's, `token` and `outageMs` a server's. */
export interface StoreOptions {
  /** Bytes of one message, and of all messages of one call. 1 to 511 MiB, default 64 MiB; over HTTP what the server allows. */
  readonly maxMessageBytes?: number;
  /** How long answers to message ids and request ids are remembered, in milliseconds. Default ten minutes. Not over HTTP: the server decides. */
  readonly rememberMs?: number;
  /** How often this process recovers ended leases, in milliseconds. Default 1,000. Not over HTTP: the server does it. */
  readonly sweepIntervalMs?: number;
  /** Whether what `enqueue` resolved survives power loss (`full`, the default) or kill -9 only (`normal`). SQLite only. */
  readonly durability?: "full" | "normal";
  /** The token that a QueueFS server asks for, unless the location has one. HTTP only. */
  readonly token?: string;
  /** How long a call waits for a server that is away, in milliseconds. Redis and HTTP only. Default 20,000. */
  readonly outageMs?: number;
  /** The time; the host's unless given. */
  readonly clock?: Clock;
  /** The randomness; the host's unless given. */
  readonly random?: Random;
  /** Called with errors of work in the background. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
}

/** The forms of a location, for messages. */
const FORMS = "memory:, sqlite:FILE, redis://HOST:PORT/DB, rediss://… (TLS), valkey://…, http://HOST:PORT or https://…";

/**
 * Opens the store at `location`:
 *
 * - `memory:`: a new store in this process, gone with it;
 * - `sqlite:FILE`: the rest is the path as it is, `sqlite:queue.db` or `sqlite:/var/lib/queue.db`;
 * - `redis://…`, `rediss://…`, `valkey://…`, `valkeys://…`: a server, with `?namespace=NAME` for a prefix of its keys other than `queuefs`;
 * - `http://…`, `https://…`: a QueueFS server, `queuefs serve`, with its token as `http://:TOKEN@host:port`.
 *
 * @throws QueueFSError `invalid-argument` for a location or option that is not understood; whatever opening the backend throws
 */
export async function openStore(location: string, options: StoreOptions = {}): Promise<Backend> {
  const scheme = typeof location === "string" ? /^([a-z][a-z0-9+.-]*):/i.exec(location)?.[1]?.toLowerCase() : undefined;
  // A location without a scheme is a file name more often than not, and holds no password.
  const shown =
    scheme === undefined && !(typeof location === "string" && location.includes("@")) ? quote(location) : `the scheme ${quote(scheme)}`;
  switch (scheme) {
    case "memory": {
      if (location.length > "memory:".length)
        throw new QueueFSError("invalid-argument", "a memory store has no name and no host; write memory: and nothing behind it");
      const { openMemory } = await import("../backend/memory/index.ts");
      return openMemory(options);
    }
    case "sqlite": {
      const path = location.slice("sqlite:".length);
      if (path === "") throw new QueueFSError("invalid-argument", "sqlite: needs a file, such as sqlite:queue.db");
      const { openSqlite } = await import("../backend/sqlite/index.ts");
      return openSqlite({ ...options, path });
    }
    case "redis":
    case "rediss":
    case "valkey":
    case "valkeys": {
      const { openRedis } = await import("../backend/redis/index.ts");
      return openRedis({ ...options, ...readServerLocation(location) });
    }
    case "http":
    case "https": {
      const { openHttp } = await import("../backend/http/index.ts");
      return openHttp({ ...options, url: location });
    }
    default:
      // Only the scheme is shown: a location may hold a password.
      throw new QueueFSError("invalid-argument", `a store location must be one of ${FORMS}, got ${shown}; for a file write sqlite:FILE`);
  }
}

function readServerLocation(location: string): { url: string; namespace?: string } {
  let url: URL;
  try {
    url = new URL(location.replace(/^valkey/i, "redis"));
  } catch {
    throw new QueueFSError("invalid-argument", "the location of the server is not a URL; write it like redis://127.0.0.1:6379");
  }
  const namespace = url.searchParams.get("namespace");
  for (const name of url.searchParams.keys()) {
    if (name === "namespace") continue;
    // A question mark in a password makes its rest look like a parameter.
    const shown = url.search.includes("@") ? "that it is given; write a question mark in a password as %3F" : quote(name);
    throw new QueueFSError("invalid-argument", `a server's location has no parameter ${shown}; it has namespace`);
  }
  url.search = "";
  return { url: url.href, ...(namespace === null ? {} : { namespace }) };
}
