/**
 * The client of a QueueFS server as one more backend: whoever can reach `queuefs serve` has the whole contract, with the store, its promises
 * and its clock on the server's side.
 */

import { isQueueFSError, QueueFSError } from "../../core/errors.ts";
import type { Backend, BackendDescription, Reopening } from "../contract.ts";
import { HttpBackend } from "./backend.ts";
import { decoded } from "./calls.ts";
import { Connection } from "./connection.ts";
import { Events } from "./events.ts";
import { type HttpOptions, type HttpSettings, readHttpOptions } from "./options.ts";

export { HTTP_OPTIONS, type HttpOptions } from "./options.ts";

/**
 * Opens the store of a server; resolves when the server answers.
 *
 * @throws QueueFSError `invalid-argument`, `store-unreachable`, `unauthenticated`, `forbidden`, `store-unsuitable` when what answers is no
 *   QueueFS server
 */
export async function openHttp(options?: HttpOptions): Promise<Backend> {
  const settings = readHttpOptions(options);
  const connection = new Connection(settings);
  try {
    const received = await connection.run({ method: "GET", path: "/store", kind: "read" }, settings.connectTimeoutMs);
    const { json } = decoded<unknown>(received);
    const description = describe(json, settings, connection.location);
    // That of the server, which another client may have used.
    connection.transport.expectMessages((json as BackendDescription).maxMessageBytes);
    const events = new Events(connection.transport, settings);
    const backend = new HttpBackend({ connection, events, description, reopening: reopeningOf(settings) });
    await recoverOnce(backend, settings);
    return backend;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Opening a store recovers what has ended meanwhile, whichever store it is; a token that may only look leaves that to the server. */
async function recoverOnce(backend: Backend, settings: HttpSettings): Promise<void> {
  try {
    await backend.recover();
  } catch (error) {
    if (!isQueueFSError(error, "forbidden")) settings.onError(error);
  }
}

/** How another thread opens the same store. Options that hold functions are left out; the token is there, so it must never be logged. */
function reopeningOf({ clock: _clock, random: _random, onError: _onError, ...options }: HttpSettings): Reopening {
  return { module: import.meta.url, exportName: "openHttp", options };
}

/** What the server says of its store, as this client has it. @throws QueueFSError `store-unsuitable` when it is no answer of a QueueFS server */
function describe(json: unknown, settings: HttpSettings, location: string): BackendDescription {
  const { durable, storeId, maxMessageBytes } = (typeof json === "object" && json !== null ? json : {}) as Partial<BackendDescription>;
  if (typeof durable !== "boolean" || typeof storeId !== "string" || typeof maxMessageBytes !== "number")
    throw new QueueFSError(
      "store-unsuitable",
      `what is at ${location} does not describe a store as a QueueFS server does; check the address`,
    );
  const most = Math.min(maxMessageBytes, settings.maxMessageBytes ?? maxMessageBytes);
  return { kind: "http", location, durable, sharedBy: "hosts", storeId, maxMessageBytes: most };
}
