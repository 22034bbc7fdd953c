/**
 * The Redis backend, for Redis 7.0 or newer and Valkey: queues shared by many hosts. Every change is one script on the server, and is
 * recognised when it is sent again after a lost reply.
 */

import { QueueFSError } from "../../core/errors.ts";
import type { Backend, Reopening } from "../contract.ts";
import { RedisBackend } from "./backend.ts";
import { Changes } from "./changes.ts";
import { type Library, loadLibrary, type OwnClient } from "./client.ts";
import { Connection, clientSettings } from "./connection.ts";
import { keysOf } from "./keys.ts";
import { openNamespace } from "./namespace.ts";
import { type RedisOptions, type RedisSettings, readRedisOptions } from "./options.ts";
import { Registry } from "./registry.ts";
import { ScriptRunner } from "./script-call.ts";
import { askServer, checkServer } from "./server.ts";
import { Session } from "./session.ts";
import { Steps } from "./steps.ts";

export type { RedisClient } from "./client.ts";
export { REDIS_OPTIONS, type RedisOptions } from "./options.ts";

/**
 * Opens a namespace of a server; resolves when it works. Needs the package ioredis (5.11 or newer, or 6).
 *
 * @throws QueueFSError `invalid-argument`, `dependency-missing`, `store-unreachable`, `store-unsuitable` (version, eviction policy, a replica,
 *   a newer format), `store-failed` when the server refuses the user
 */
export async function openRedis(options?: RedisOptions): Promise<Backend> {
  const settings = readRedisOptions(options);
  const library = await loadLibrary();
  const connect = (): OwnClient => makeClient(library, settings);
  const client = connect();
  const connection = new Connection(client, settings, describe(client, settings));
  try {
    await connection.open();
    const runner = new ScriptRunner(connection, library.makeRawCommand);
    const facts = await askServer((name, ...values) => runner.command(name, ...values));
    if (facts !== undefined) checkServer(facts, connection.location, settings.allowEviction);
    else
      settings.onError(
        new QueueFSError(
          "store-unsuitable",
          `the server at ${connection.location} does not let this user ask for its version and eviction policy (INFO); make sure that they are right`,
        ),
      );
    const keys = keysOf(settings.namespace);
    const registry = new Registry(runner, settings.namespace, keys, await openNamespace(runner, keys, settings));
    const session = new Session(runner, settings, keys);
    const steps = new Steps(session, registry, connection.location, settings.maxWaitingBytes);
    const changes = new Changes(connect, keys.changes, settings.onError);
    const backend = new RedisBackend({ settings, connection, runner, keys, registry, session, steps, changes }, reopeningOf(settings));
    await backend.recover();
    return backend;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** How another thread opens the same store; not where the caller's own client says how to connect. */
function reopeningOf({ client, clock, random, onError, ...options }: RedisSettings): Reopening | undefined {
  return client === undefined ? { module: import.meta.url, exportName: "openRedis", options } : undefined;
}

function makeClient(library: Library, settings: RedisSettings): OwnClient {
  const own = clientSettings(settings);
  if (settings.client === undefined) return library.create(settings.url, own);
  const given = settings.client as OwnClient;
  const duplicate = given.duplicate as (...values: unknown[]) => OwnClient;
  // A cluster takes its nodes first, and the settings of their connections apart from its own.
  return given.isCluster
    ? duplicate.call(given, [], { lazyConnect: true, enableOfflineQueue: false, redisOptions: own })
    : duplicate.call(given, own);
}

/** Where the store is, without user and password. */
function describe(client: OwnClient, settings: RedisSettings): string {
  if (client.isCluster) return `redis cluster, namespace ${settings.namespace}`;
  const { host = "127.0.0.1", port = 6379, db = 0 } = client.options ?? {};
  return `redis://${host}:${port}${db === 0 ? "" : `/${db}`}, namespace ${settings.namespace}`;
}
