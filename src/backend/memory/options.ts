/** The options of the memory backend. */

import { type Clock, type Random, systemClock, systemRandom } from "../../core/clock.ts";
import { QueueFSError } from "../../core/errors.ts";
import {
  DEFAULT_MAX_MESSAGE_BYTES,
  DEFAULT_REMEMBER_MS,
  DEFAULT_SWEEP_INTERVAL_MS,
  MAX_MESSAGE_BYTES_BOUND,
  MAX_REMEMBER_MS,
} from "../../core/limits.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { MemoryStore } from "./store.ts";
import type { Bounds } from "./totals.ts";

/**
 * Messages that a store holds unless the option says otherwise. A deep backlog takes 16 bytes beside each payload and a message in
 * processing about 300, so that ten million stay within the memory that Node.js takes by default; small messages meet this bound first.
 */
const DEFAULT_MAX_MESSAGES = 10_000_000;
/** Upper bound of that and of the next: what a Map of V8 can hold, 2^24 entries. */
const MOST_ITEMS = 16_000_000;
/** Ids and requests remembered unless the option says otherwise: each takes about 300 bytes, beside the answers' payloads. */
const DEFAULT_MAX_REMEMBERED = 2_000_000;
/** Payload bytes unless the option says otherwise: 1 GiB; large messages meet this bound first. */
const DEFAULT_MAX_BYTES = 1024 ** 3;
/** Tasks unless the option says otherwise: each takes about 1 KB beside its texts. */
const DEFAULT_MAX_TASKS = 100_000;
/** Queues unless the option says otherwise: each takes about 4 KB while small. */
const DEFAULT_MAX_QUEUES = 100_000;

/** Options of {@link openMemory}, as a table. */
export const MEMORY_OPTIONS = {
  clock: { type: "object", meaning: "the source of time" },
  random: { type: "object", meaning: "the source of randomness" },
  store: { type: "object", meaning: "the MemoryStore to share; a new one if absent" },
  maxMessageBytes: {
    type: "integer",
    minimum: 1,
    maximum: MAX_MESSAGE_BYTES_BOUND,
    default: DEFAULT_MAX_MESSAGE_BYTES,
    meaning: "bytes of one message, and of all messages of one call",
  },
  maxMessages: {
    type: "integer",
    minimum: 1,
    maximum: MOST_ITEMS,
    default: DEFAULT_MAX_MESSAGES,
    meaning: "messages in the store, dead letters included",
  },
  maxBytes: {
    type: "integer",
    minimum: 1,
    maximum: 2 ** 40,
    default: DEFAULT_MAX_BYTES,
    meaning: "bytes of their payloads and failure texts; remembered answers may take as much again",
  },
  maxRemembered: {
    type: "integer",
    minimum: 0,
    maximum: MOST_ITEMS,
    default: DEFAULT_MAX_REMEMBERED,
    meaning: "ids and requests remembered for repeats",
  },
  maxQueues: { type: "integer", minimum: 1, maximum: 1_000_000, default: DEFAULT_MAX_QUEUES, meaning: "queues in the store" },
  maxTasks: {
    type: "integer",
    minimum: 1,
    maximum: 1_000_000,
    default: DEFAULT_MAX_TASKS,
    meaning: "tasks in the store, ended ones that are still kept included",
  },
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
  onError: { type: "object", meaning: "hears of errors that no call can report" },
} as const satisfies OptionTable;

/** Options of {@link openMemory}. */
export interface MemoryOptions {
  /** The source of time. Default: the clock of this host. Clients of one store must have the same. */
  readonly clock?: Clock;
  /** The source of randomness, for receipts. Default: Web Crypto. */
  readonly random?: Random;
  /** The store, to be shared with other clients in this process. Default: a new one of its own. */
  readonly store?: MemoryStore;
  /** Bytes that one message, and all messages of one call, may have. 1 to 511 MiB, default 64 MiB. Over it: `message-too-large`. */
  readonly maxMessageBytes?: number;
  /** Messages in the store, dead letters included. 1 to 16,000,000, default 10,000,000. Over it: `store-full`, nothing is dropped. */
  readonly maxMessages?: number;
  /** Bytes of payloads and failure texts in the store. 1 to 2^40, default 1 GiB. Over it: `store-full`. Remembered answers may take as much again. */
  readonly maxBytes?: number;
  /** Message ids chosen by callers and request ids remembered at a time. 0 to 16,000,000, default 2,000,000. Over it: `store-full`. */
  readonly maxRemembered?: number;
  /** Queues in the store. 1 to 1,000,000, default 100,000. Over it: `store-full`. */
  readonly maxQueues?: number;
  /** Tasks in the store, ended ones that are still kept included. 1 to 1,000,000, default 100,000. Over it: `store-full`. */
  readonly maxTasks?: number;
  /** How long an id or request is remembered, in milliseconds. 0 to 7 days, default ten minutes. Too short: a late repeat stores twice. */
  readonly rememberMs?: number;
  /** How often this client looks for ended leases, in milliseconds. 10 ms to an hour, default one second. */
  readonly sweepIntervalMs?: number;
  /** Hears of errors that no call can report: of the sweep, and of listeners. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

/** Options with all defaults filled in. */
export interface MemoryConfiguration {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: MemoryStore;
  readonly bounds: Bounds;
  readonly rememberMs: number;
  readonly sweepIntervalMs: number;
  readonly onError: (error: unknown) => void;
}

/** Checks the options. @throws QueueFSError `invalid-argument` */
export function readMemoryOptions(options: MemoryOptions | undefined): MemoryConfiguration {
  const { rememberMs, sweepIntervalMs, ...bounds } = readOptions("openMemory", MEMORY_OPTIONS, options);
  const { clock = systemClock, random = systemRandom, store = new MemoryStore(random), onError = warn } = options ?? {};
  if (!(store instanceof MemoryStore))
    throw new QueueFSError("invalid-argument", "openMemory: option store must be a MemoryStore; make one with new MemoryStore()");
  if (typeof onError !== "function") throw new QueueFSError("invalid-argument", "openMemory: option onError must be a function");
  return { clock, random, store, bounds, rememberMs, sweepIntervalMs, onError };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
