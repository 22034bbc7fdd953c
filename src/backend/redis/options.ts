/** The options of the Redis backend. */

import { type Clock, type Random, systemClock, systemRandom } from "../../core/clock.ts";
import { QueueFSError, quote } from "../../core/errors.ts";
import {
  DEFAULT_MAX_MESSAGE_BYTES,
  DEFAULT_REMEMBER_MS,
  DEFAULT_SWEEP_INTERVAL_MS,
  MAX_MESSAGE_BYTES_BOUND,
  MAX_REMEMBER_MS,
} from "../../core/limits.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { MAX_WAITING_BYTES_OPTION } from "../../core/waiting-bytes.ts";
import type { RedisClient } from "./client.ts";

/** Options of {@link openRedis}, as a table. */
export const REDIS_OPTIONS = {
  url: { type: "text", default: "redis://127.0.0.1:6379", meaning: "where the server is: redis:// or, with TLS, rediss://" },
  namespace: { type: "text", default: "queuefs", meaning: "prefix of all keys, so that several stores share a server" },
  client: { type: "object", meaning: "an ioredis client whose settings are used instead of the url; it is duplicated, not used up" },
  maxMessageBytes: {
    type: "integer",
    minimum: 1,
    maximum: MAX_MESSAGE_BYTES_BOUND,
    default: DEFAULT_MAX_MESSAGE_BYTES,
    meaning: "bytes of one message, and of all messages of one call",
  },
  maxWaitingBytes: MAX_WAITING_BYTES_OPTION,
  rememberMs: {
    type: "integer",
    minimum: 0,
    maximum: MAX_REMEMBER_MS,
    default: DEFAULT_REMEMBER_MS,
    meaning: "how long an id or request is remembered, in milliseconds",
  },
  sweepIntervalMs: {
    type: "integer",
    minimum: 10,
    maximum: 3_600_000,
    default: DEFAULT_SWEEP_INTERVAL_MS,
    meaning: "how often to look for ended leases, in milliseconds",
  },
  commandTimeoutMs: {
    type: "integer",
    minimum: 50,
    maximum: 60_000,
    default: 5000,
    meaning: "silence of the server after which a connection is given up and made anew, in milliseconds",
  },
  connectTimeoutMs: {
    type: "integer",
    minimum: 50,
    maximum: 600_000,
    default: 5000,
    meaning: "how long opening, and each attempt to connect, may take, in milliseconds",
  },
  outageMs: {
    type: "integer",
    minimum: 0,
    maximum: 240_000,
    default: 20_000,
    meaning: "how long a call waits for a server that is away or busy before it fails, in milliseconds",
  },
  allowEviction: { type: "boolean", default: false, meaning: "open a server that may evict keys, although it may lose messages" },
  clock: { type: "object", meaning: "the source of time for timeouts; leases follow the server's clock" },
  random: { type: "object", meaning: "the source of randomness" },
  onError: { type: "object", meaning: "hears of errors that no call can report" },
} as const satisfies OptionTable;

/** Options of {@link openRedis}. */
export interface RedisOptions {
  /** Where the server is, `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS. Default `redis://127.0.0.1:6379`. */
  readonly url?: string;
  /** Prefix of all keys and the hash tag they share, 1 to 64 characters of `A-Z a-z 0-9 _ . : -`. Default `queuefs`. */
  readonly namespace?: string;
  /**
   * An ioredis client (Redis, also with Sentinels, or Cluster) whose settings are used instead of `url`. It is duplicated and stays the
   * caller's; its keyPrefix is not used.
   */
  readonly client?: RedisClient;
  /** Bytes that one message, and all messages of one call, may have. 1 to 511 MiB, default 64 MiB. Over it: `message-too-large`. */
  readonly maxMessageBytes?: number;
  /**
   * Bytes of calls that store messages and have no answer yet. Beyond it more are refused with `store-busy`, so that a producer that never awaits
   * does not fill the memory. From 1,024, default 512 MiB.
   */
  readonly maxWaitingBytes?: number;
  /** How long an id or request is remembered, in milliseconds. 0 to 7 days, default ten minutes. Too short: a late repeat stores twice. */
  readonly rememberMs?: number;
  /** How often this client looks for ended leases, in milliseconds. 10 ms to an hour, default one second. */
  readonly sweepIntervalMs?: number;
  /**
   * After so much silence to a call a connection counts as dead and is made anew, in milliseconds. 50 to 60,000, default 5,000. The call is
   * then sent again, which the server recognises. Too short: a slow script of others looks like a dead connection.
   */
  readonly commandTimeoutMs?: number;
  /** How long opening, and later each attempt to connect, may take, in milliseconds. 50 to 600,000, default 5,000. */
  readonly connectTimeoutMs?: number;
  /**
   * How long a call waits for a server that is away, loading or busy, in milliseconds. 0 to 240,000, default 20,000. Then it fails with
   * `store-unreachable` or `store-busy`, or with `outcome-unknown` when it may have happened.
   */
  readonly outageMs?: number;
  /** Whether to open a server whose eviction policy may delete messages. Default false: `store-unsuitable`. */
  readonly allowEviction?: boolean;
  /** The source of time for timeouts. Default: the clock of this host. Leases and delays follow the server's clock. */
  readonly clock?: Clock;
  /** The source of randomness, for receipts and sessions. Default: Web Crypto. */
  readonly random?: Random;
  /** Hears of errors that no call can report: of the sweep, of lost connections, of listeners. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

/** Options with all defaults filled in. */
export interface RedisSettings {
  readonly url: string;
  readonly namespace: string;
  readonly client: RedisClient | undefined;
  readonly maxMessageBytes: number;
  readonly maxWaitingBytes: number;
  readonly rememberMs: number;
  readonly sweepIntervalMs: number;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly outageMs: number;
  readonly allowEviction: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly onError: (error: unknown) => void;
}

/** Checks the options. @throws QueueFSError `invalid-argument` */
export function readRedisOptions(options: RedisOptions | undefined): RedisSettings {
  const {
    clock: _clock,
    random: _random,
    onError: _onError,
    client: _client,
    ...values
  } = readOptions("openRedis", REDIS_OPTIONS, options);
  const { clock = systemClock, random = systemRandom, onError = warn, client } = options ?? {};
  if (typeof onError !== "function") throw new QueueFSError("invalid-argument", "openRedis: option onError must be a function");
  if (!/^[A-Za-z0-9_.:-]{1,64}$/.test(values.namespace)) {
    throw new QueueFSError(
      "invalid-argument",
      `openRedis: option namespace must be 1 to 64 characters of A-Z a-z 0-9 _ . : -, got ${quote(values.namespace)}`,
    );
  }
  if (client === undefined) checkUrl(values.url);
  else if (typeof client.duplicate !== "function") {
    throw new QueueFSError("invalid-argument", "openRedis: option client must be a client of ioredis (Redis or Cluster)");
  }
  return { ...values, client, clock, random, onError };
}

/** Takes a url apart as the client library will. Its value may hold a password and is not repeated. */
function checkUrl(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "redis:" && url.protocol !== "rediss:")) {
    throw new QueueFSError(
      "invalid-argument",
      "openRedis: option url must be redis://host:port or rediss://host:port, with user and password if needed",
    );
  }
  try {
    decodeURIComponent(url.username);
    decodeURIComponent(url.password);
  } catch {
    throw new QueueFSError(
      "invalid-argument",
      "openRedis: the user or password in the url is not percent-encoded UTF-8; write a percent sign as %25",
    );
  }
  if (!/^(?:\/\d{0,9})?$/.test(url.pathname))
    throw new QueueFSError(
      "invalid-argument",
      "openRedis: the path of the url must be the number of a database, such as redis://host:6379/1",
    );
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
