/** What a server may be told: its limits and whom it lets in, as tables, so that checks, documentation and flags come from one place. */

import type { OptionTable } from "../core/options.ts";
import { AGFS_OPTIONS } from "./agfs/agfs.ts";

const MIB = 1024 * 1024;

/** Options of {@link createApp}, as a table. */
export const APP_OPTIONS = {
  tokens: { type: "object", meaning: "the tokens that let somebody in, an array; without any, everybody who can connect is let in" },
  allowHosts: { type: "object", meaning: "host names, beside localhost and addresses, by which the server may be called, an array" },
  allowOrigins: { type: "object", meaning: "origins of web pages that may use the server, such as https://app.example, an array" },
  maxLongPolls: { type: "integer", minimum: 0, maximum: 100_000, default: 2_048, meaning: "requests that may wait for something at once" },
  maxBufferedBytes: {
    type: "integer",
    minimum: MIB,
    maximum: 1024 * 1024 * MIB,
    default: 512 * MIB,
    meaning: "bytes of request bodies held in memory at once; beyond that the server answers overloaded",
  },
  maxUrlBytes: {
    type: "integer",
    minimum: 1_024,
    maximum: 256 * 1024,
    default: 32 * 1024,
    meaning: "bytes of the path and query of a request",
  },
  maxQueryParameters: { type: "integer", minimum: 8, maximum: 1_000, default: 64, meaning: "parameters in the query of a request" },
  answerTimeoutMs: {
    type: "integer",
    minimum: 1_000,
    maximum: 3_600_000,
    default: 120_000,
    meaning: "how long the store may take for one request, in milliseconds, time that the request asked to wait aside",
  },
  leaseMs: {
    type: "integer",
    minimum: 10,
    maximum: 7 * 24 * 3600 * 1000,
    default: 30_000,
    meaning: "how long a delivery of a dequeue that says nothing about it may be held, in milliseconds",
  },
  ...AGFS_OPTIONS,
  maxEventReaders: { type: "integer", minimum: 0, maximum: 100_000, default: 1_000, meaning: "streams of events that may be open at once" },
  eventHeartbeatMs: {
    type: "integer",
    minimum: 50,
    maximum: 30_000,
    default: 15_000,
    meaning: "how often an idle stream of events shows that it lives, in milliseconds; clients take silence for a broken connection",
  },
  eventIntervalMs: {
    type: "integer",
    minimum: 0,
    maximum: 60_000,
    default: 50,
    meaning: "the shortest time between two events of a stream, in milliseconds; with many readers or costly looks it is longer",
  },
  eventHistory: {
    type: "integer",
    minimum: 1,
    maximum: 100_000,
    default: 1_024,
    meaning: "changes that are remembered for readers of events that come back or are slow; beyond that they are told of a gap",
  },
  maxMetricQueues: {
    type: "integer",
    minimum: 0,
    maximum: 100_000,
    default: 1_000,
    meaning: "queues that /metrics tells of, the first by name; each costs a read of its statistics and a dozen lines per scrape",
  },
  logger: { type: "object", meaning: "gets a line for each request; a pino logger is one" },
  observer: { type: "object", meaning: "told when a request begins and when its answer is ready" },
  onError: { type: "object", meaning: "called with errors that are no fault of a request" },
} as const satisfies OptionTable;

/** Options of {@link listen}, as a table. */
export const LISTEN_OPTIONS = {
  host: { type: "text", default: "127.0.0.1", meaning: "the address to listen on; any but a loopback address needs a token" },
  port: { type: "integer", minimum: 0, maximum: 65_535, default: 7_333, meaning: "the port to listen on; 0 for any that is free" },
  tls: { type: "object", meaning: "certificate and key in PEM, { cert, key }; without them the server speaks plain HTTP" },
  maxConnections: {
    type: "integer",
    minimum: 1,
    maximum: 100_000,
    default: 4_096,
    meaning: "connections at once; more are closed at once",
  },
  maxHeaderBytes: {
    type: "integer",
    minimum: 4 * 1024,
    maximum: MIB,
    default: 64 * 1024,
    meaning: "bytes of the request line and all headers of a request",
  },
  maxHeaders: { type: "integer", minimum: 16, maximum: 2_000, default: 100, meaning: "headers of a request" },
  headersTimeoutMs: {
    type: "integer",
    minimum: 100,
    maximum: 600_000,
    default: 10_000,
    meaning: "how long a client may take to send the headers of a request, in milliseconds",
  },
  requestTimeoutMs: {
    type: "integer",
    minimum: 1_000,
    maximum: 24 * 3_600_000,
    default: 600_000,
    meaning: "how long a client may take to send a whole request, in milliseconds",
  },
  minimumBytesPerSecond: {
    type: "integer",
    minimum: 0,
    maximum: 1024 * MIB,
    default: 1_024,
    meaning: "what a client must send of its request, or take of its answer, after the first seconds; 0 for any",
  },
  keepAliveTimeoutMs: {
    type: "integer",
    minimum: 1_000,
    maximum: 3_600_000,
    default: 95_000,
    meaning: "how long an idle connection is kept, in milliseconds; above what clients keep theirs, or they meet closed ones",
  },
  drainMs: {
    type: "integer",
    minimum: 0,
    maximum: 3_600_000,
    default: 30_000,
    meaning: "how long requests may take to end when the server stops, in milliseconds; then their connections are cut",
  },
} as const satisfies OptionTable;
