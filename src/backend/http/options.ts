/** The options of the client of a QueueFS server. */

import { type Clock, type Random, systemClock, systemRandom } from "../../core/clock.ts";
import { QueueFSError } from "../../core/errors.ts";
import { DEFAULT_WAIT_POLL_MS, MAX_MESSAGE_BYTES_BOUND } from "../../core/limits.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { MAX_WAITING_BYTES_OPTION } from "../../core/waiting-bytes.ts";

/** Options of {@link openHttp}, as a table. */
export const HTTP_OPTIONS = {
  url: { type: "text", default: "http://127.0.0.1:7333", meaning: "where the server is: http:// or https://" },
  token: { type: "text", meaning: "the token that the server asks for, unless the url has one" },
  maxMessageBytes: {
    type: "integer",
    minimum: 1,
    maximum: MAX_MESSAGE_BYTES_BOUND,
    meaning: "bytes of one message, and of all messages of one call, where the server allows more",
  },
  maxWaitingBytes: MAX_WAITING_BYTES_OPTION,
  requestTimeoutMs: {
    type: "integer",
    minimum: 50,
    maximum: 600_000,
    default: 10_000,
    meaning: "silence of the server after which a connection is given up and the request sent again, in milliseconds",
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
    maximum: 600_000,
    default: 20_000,
    meaning: "how long a call waits for a server that is away or overloaded before it fails, in milliseconds",
  },
  maxConnections: { type: "integer", minimum: 1, maximum: 256, default: 16, meaning: "requests in the air at once; more wait their turn" },
  pollIntervalMs: {
    type: "integer",
    minimum: 10,
    maximum: 60_000,
    default: DEFAULT_WAIT_POLL_MS,
    meaning: "how often listeners look while the server cannot tell them of changes, in milliseconds",
  },
  clock: { type: "object", meaning: "the source of time for timeouts; leases follow the clock of the server's store" },
  random: { type: "object", meaning: "the source of randomness, for pauses between attempts" },
  onError: { type: "object", meaning: "hears of errors that no call can report" },
} as const satisfies OptionTable;

/** Options of {@link openHttp}. */
export interface HttpOptions {
  /**
   * Where the server is, `http://[:token@]host[:port][/path]` or `https://…`. A path is what a proxy in front puts before `/api/v1`.
   * Default `http://127.0.0.1:7333`.
   */
  readonly url?: string;
  /** The token that the server asks for, visible ASCII characters. One in the url goes before it. Default: none. */
  readonly token?: string;
  /** Bytes that one message, and all messages of one call, may have, 1 to 511 MiB. Default, and at most: what the server allows. */
  readonly maxMessageBytes?: number;
  /**
   * Bytes of calls that store messages and have no answer yet. Beyond it more are refused with `store-busy`, so that a producer that never awaits
   * does not fill the memory. From 1,024, default 512 MiB.
   */
  readonly maxWaitingBytes?: number;
  /**
   * After so much silence to a request its connection counts as dead, in milliseconds. 50 to 600,000, default 10,000. The request is then sent
   * again, which the server recognises. Too short: a store that is busy looks like a dead connection.
   */
  readonly requestTimeoutMs?: number;
  /** How long opening, and later each attempt to connect, may take, in milliseconds. 50 to 600,000, default 5,000. */
  readonly connectTimeoutMs?: number;
  /**
   * How long a call waits for a server that is away, stopping or overloaded, in milliseconds. 0 to 600,000, default 20,000. Then it fails with
   * `store-unreachable` or `overloaded`, or with `outcome-unknown` when it may have happened.
   */
  readonly outageMs?: number;
  /** Requests in the air at once, each on a connection of its own, 1 to 256, default 16. More wait their turn. */
  readonly maxConnections?: number;
  /** How often listeners are told to look while the server cannot tell of changes, in milliseconds. 10 to 60,000, default 1,000. */
  readonly pollIntervalMs?: number;
  /** The source of time for timeouts. Default: the clock of this host. Leases and delays follow the clock of the server's store. */
  readonly clock?: Clock;
  /** The source of randomness, for pauses between attempts. Default: Web Crypto. */
  readonly random?: Random;
  /** Hears of errors that no call can report: of lost connections, of listeners. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

/** Options with all defaults filled in. */
export interface HttpSettings {
  /** Where the API begins, without a slash at its end and without a token. */
  readonly url: string;
  readonly token: string | undefined;
  readonly maxMessageBytes: number | undefined;
  readonly maxWaitingBytes: number;
  readonly requestTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly outageMs: number;
  readonly maxConnections: number;
  readonly pollIntervalMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly onError: (error: unknown) => void;
}

/** Checks the options. @throws QueueFSError `invalid-argument`, never with the token in its words */
export function readHttpOptions(options: HttpOptions | undefined): HttpSettings {
  const { clock: _clock, random: _random, onError: _onError, ...values } = readOptions("openHttp", HTTP_OPTIONS, options);
  const { clock = systemClock, random = systemRandom, onError = warn } = options ?? {};
  if (typeof onError !== "function") throw new QueueFSError("invalid-argument", "openHttp: option onError must be a function");
  const { url, token = values.token } = readAddress(values.url);
  // In a header anything else would be cut, or be taken for another header.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new QueueFSError("invalid-argument", "openHttp: the token must be visible ASCII characters without white space, at least one");
  }
  return { ...values, url, token, maxMessageBytes: values.maxMessageBytes, clock, random, onError };
}

/** Takes a url apart. Its value may hold a token and is not repeated. */
function readAddress(text: string): { readonly url: string; readonly token?: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new QueueFSError("invalid-argument", "openHttp: option url must be http://host:port or https://host:port");
  }
  if (url.username !== "") {
    throw new QueueFSError("invalid-argument", "openHttp: the url has a user; servers know tokens only, written http://:TOKEN@host:port");
  }
  if (url.search !== "" || url.hash !== "")
    throw new QueueFSError("invalid-argument", "openHttp: the url must end with its path, without parameters and fragment");
  const base = `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
  if (url.password === "") return { url: base };
  try {
    return { url: base, token: decodeURIComponent(url.password) };
  } catch {
    throw new QueueFSError("invalid-argument", "openHttp: the token in the url is not percent-encoded UTF-8");
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
