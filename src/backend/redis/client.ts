/** The little of ioredis that is used, as structural types, and its loading when it is first needed. */

import { QueueFSError } from "../../core/errors.ts";

/** An argument of a command. */
export type Argument = string | Buffer;

/** A client of ioredis, version 5.11 or 6: a Redis (also with Sentinels) or a Cluster. */
export interface RedisClient {
  /** `wait`, `connecting`, `connect`, `ready`, `close`, `reconnecting`, `end`. */
  readonly status: string;
  duplicate(...settings: never[]): unknown;
}

/** What else is called on the clients that this backend makes for itself. */
export interface OwnClient extends RedisClient {
  connect(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...values: never[]) => void): unknown;
  /** Whether it is a client of a cluster, which finds the node of a command by its keys. */
  readonly isCluster?: boolean;
  readonly options?: { readonly host?: string; readonly port?: number; readonly db?: number };
  /** The socket, where there is one. */
  readonly stream?: { destroy(): void; ref?(): void; unref?(): void } | null;
  callBuffer(command: string, ...values: Argument[]): Promise<unknown>;
  sendCommand(command: RawCommand): unknown;
  subscribe(channel: string): Promise<unknown>;
}

/** A command whose bytes are made already. */
export interface RawCommand {
  readonly promise: Promise<unknown>;
}

/** Makes commands that are written as the bytes they are given. */
export type MakeRawCommand = (name: string, bytes: Buffer) => RawCommand;

/** ioredis, as far as it is used. */
export interface Library {
  /** Makes a client that is not connected yet. */
  create(url: string, settings: object): OwnClient;
  readonly makeRawCommand: MakeRawCommand;
}

interface CommandClass {
  new (name: string, values: unknown[], settings: { replyEncoding: null }): RawCommand & { toWritable(socket: object): Buffer | string };
}

/**
 * Loads ioredis.
 *
 * @throws QueueFSError `dependency-missing` when it is not installed
 */
export async function loadLibrary(): Promise<Library> {
  let loaded: { Redis: new (url: string, settings: object) => OwnClient; Command: CommandClass };
  try {
    loaded = (await import("ioredis")) as unknown as typeof loaded;
  } catch (error) {
    throw new QueueFSError("dependency-missing", "the Redis backend needs the package ioredis; install it: npm install ioredis", {
      cause: error,
    });
  }
  const { Redis, Command } = loaded;
  // Turning a dozen keys and a buffer into the protocol takes ioredis longer than the round trip to a server of the same host. The keys of a
  // queue are always the same, so their bytes are made once, and the command only hands over what is ready.
  class ReadyCommand extends Command {
    readonly #bytes: Buffer;
    constructor(command: string, bytes: Buffer) {
      super(command, [], { replyEncoding: null });
      this.#bytes = bytes;
    }
    override toWritable(): Buffer {
      return this.#bytes;
    }
  }
  return {
    create: (url, settings) => new Redis(url, settings),
    makeRawCommand: (command, bytes) => new ReadyCommand(command, bytes),
  };
}
