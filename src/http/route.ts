/** What a route of the native API is: one row says who may call it, what it takes and gives, and does it. */

import type { Backend } from "../backend/contract.ts";
import type { ErrorCode } from "../core/errors.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import type { QueueSelection } from "../core/message.ts";
import { parseQueueName, parseTaskId, type QueueName, type TaskId } from "../core/names.ts";
import { type OptionTable, type OptionValues, readOptions } from "../core/options.ts";
import type { BytesBeside, BytesReader } from "../core/wire-bytes.ts";
import type { Caller } from "./auth.ts";
import type { EventHub } from "./events/hub.ts";
import type { LongPolls } from "./long-polls.ts";
import type { SchemaName } from "./schemas.ts";

export type { EventSelection } from "./events/hub.ts";

/** What all requests of one server share. */
export interface Shared {
  readonly backend: Backend;
  readonly polls: LongPolls;
  readonly events: EventHub;
  /** Lease of a dequeue that names none, in milliseconds. */
  readonly leaseMs: number;
  /** Differs between two lives of a server. */
  readonly instance: string;
  /** The version of the package. */
  readonly version: string;
}

/** The body of a request, taken apart. */
export interface RequestBody {
  /** The JSON value; `undefined` for an empty body. */
  readonly json: unknown;
  /** The bytes that came beside the JSON in the binary form. */
  readonly beside?: BytesReader;
}

/** One request that was let in. */
export interface Call extends Shared {
  readonly caller: Caller;
  /** The value of a header. */
  header(name: string): string | undefined;
  /** A decoded component of the path. */
  param(name: string): string;
  /** The parameters of the query, checked against the route's table. */
  query<const Table extends OptionTable>(table: Table): OptionValues<Table>;
  /** The body as JSON, or in the binary form. @throws QueueFSError `invalid-argument`, RequestError 415 */
  body(): Promise<RequestBody>;
  /** The body's bytes as they came. */
  bytes(): Promise<Uint8Array>;
  /** The media type of the body, in lower case, without parameters; empty when it has none. */
  readonly contentType: string;
  /** Collects the bytes of messages of an answer, when the client takes the binary form. */
  readonly beside?: BytesBeside;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Whether it has gone away. */
  readonly isGone: boolean;
  /** Has `listener` called when the answer did not reach the client, as far as that can be known. */
  onLost(listener: () => void): void;
}

/** What a route answers. */
export interface RouteAnswer {
  /** Default 200. */
  readonly status?: number;
  /** The body as JSON; bytes of messages are in `beside` of the call. */
  readonly json?: unknown;
  /** In place of that: a stream of events, which goes on until either side ends it. */
  readonly stream?: ReadableStream<Uint8Array>;
}

/** How an answer, or a body, is described. */
export interface Described {
  readonly description: string;
  readonly schema: SchemaName;
  /** The media type, if it is another than that of JSON. */
  readonly type?: string;
}

/** One route. */
export interface Route {
  /** A short stable name, for metrics, logs and `operationId`. */
  readonly name: string;
  readonly method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  /** Below `/api/v1`; a component in braces is a parameter. */
  readonly path: string;
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  /** Whether a token that may only look may call it. */
  readonly access: "read" | "write";
  /**
   * What a token for some queues needs: `queue`: that of the path; `body`: those that the handler finds and checks; `none`: nothing;
   * `store`: it cannot call it.
   */
  readonly scope: "queue" | "body" | "none" | "store";
  /**
   * Whether its answers are remembered, so that a repeat does not do it twice. So it is for whatever changes something, also where twice is as good
   * as once: a copy of the request that comes late, after later requests of its client, must not undo what these did.
   */
  readonly remembered?: boolean;
  /** `waits`: a request may wait for something to happen. `looks-at-all`: it may take as long as the store is large. */
  readonly slow?: "waits" | "looks-at-all";
  readonly query?: OptionTable;
  readonly body?: Described & { readonly required: boolean; readonly types: readonly string[] };
  readonly answers: Readonly<Record<number, Described>>;
  /** Errors of its own, beside those that any route may answer. */
  readonly errors: readonly ErrorCode[];
  handle(call: Call): Promise<RouteAnswer>;
}

/** A value as an object of named properties. @throws QueueFSError `invalid-argument` */
export function asObject(what: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new QueueFSError("invalid-argument", `${what} must be a JSON object, got ${quote(value)}`);
  return value as Record<string, unknown>;
}

/** The properties of a body that has these and no others. @throws QueueFSError `invalid-argument` */
export function properties<const Name extends string>(value: unknown, names: readonly Name[]): { readonly [Key in Name]: unknown } {
  const given = asObject("the body", value ?? {});
  for (const name of Object.keys(given)) {
    if (!(names as readonly string[]).includes(name))
      throw new QueueFSError("invalid-argument", `the body has no property ${quote(name)}; it has ${names.join(", ")}`);
  }
  return given as { readonly [Key in Name]: unknown };
}

/** The one property of a body that has one. @throws QueueFSError `invalid-argument` */
export async function property<Value>(call: Call, name: string): Promise<Value> {
  const { json } = await call.body();
  return properties(json, [name])[name] as Value;
}

/** The queue in the path. @throws QueueFSError `invalid-name`, `reserved-name` */
export function queueOf(call: Call): QueueName {
  return parseQueueName(call.param("queue"));
}

/** The task in the path. @throws QueueFSError `invalid-name` */
export function taskOf(call: Call): TaskId {
  return parseTaskId(call.param("task"));
}

/** A path under which queues lie: empty for all. @throws QueueFSError `invalid-name`, `reserved-name` */
export function parseUnder(under: unknown): QueueName | "" {
  return under === undefined || under === "" ? "" : parseQueueName(under);
}

/** A selection of queues in a body, which the caller may see. @throws QueueFSError `invalid-argument`, `invalid-name`; RequestError `forbidden` */
export function selectionOf(call: Call, value: unknown): QueueSelection {
  const given = asObject("a selection of queues", value);
  const { queues, under, ...more } = given;
  const [other] = Object.keys(more);
  if (other !== undefined || (queues === undefined) === (under === undefined))
    throw new QueueFSError("invalid-argument", `queues are selected by "queues" or by "under", and nothing else, got ${quote(value)}`);
  if (queues === undefined) {
    const path = parseUnder(under);
    call.caller.needQueue(path);
    return { under: path };
  }
  if (!Array.isArray(queues)) throw new QueueFSError("invalid-argument", `"queues" must be an array of names, got ${quote(queues)}`);
  const names = queues.map(parseQueueName);
  for (const name of names) call.caller.needQueue(name);
  return { queues: names };
}

/**
 * Reads the query of a request against a table.
 *
 * @throws QueueFSError `invalid-argument` for what the table does not have, what is given twice, and values out of bounds
 */
export function readQuery<const Table extends OptionTable>(table: Table, query: Iterable<[string, string]>): OptionValues<Table> {
  // Without a prototype, so that no name means anything by itself.
  const given: Record<string, unknown> = Object.create(null);
  for (const [name, text] of query) {
    if (Object.hasOwn(given, name)) throw new QueueFSError("invalid-argument", `the query has ${quote(name)} twice`);
    const row = Object.hasOwn(table, name) ? table[name] : undefined;
    given[name] =
      row?.type === "integer" && /^-?\d{1,16}$/.test(text)
        ? Number(text)
        : row?.type === "boolean" && (text === "true" || text === "false")
          ? text === "true"
          : text;
  }
  return readOptions("the query", table, given);
}
