/** One method of the contract as one request of the API: its path, its body, and its answer taken apart. */

import { QueueFSError, queueNotFound } from "../../core/errors.ts";
import { parseQueueName, type TaskId } from "../../core/names.ts";
import { badAnswer } from "../../core/wire.ts";
import { type BytesBeside, type BytesReader, decodeFrame, encodeFrame, MESSAGES_TYPE } from "../../core/wire-bytes.ts";
import type { ApiRequest, Connection } from "./connection.ts";
import type { Received } from "./transport.ts";

const JSON_TYPE = "application/json";

/** The body of an answer. */
export interface Body<Json> {
  readonly json: Json;
  /** The bytes of its messages, where it came in the binary form. */
  readonly beside?: BytesReader;
}

/** The path of a queue. A name that can be none's is not asked for: its path might be another's. @throws QueueFSError `queue-not-found` */
export function queuePath(queue: string, rest = ""): string {
  try {
    parseQueueName(queue);
  } catch {
    throw queueNotFound(queue);
  }
  return `/queues/${encodeURIComponent(queue)}${rest}`;
}

/** The path of a task. */
export function taskPath(id: TaskId, rest = ""): string {
  return `/tasks/${encodeURIComponent(id)}${rest}`;
}

/** A query of those values that are given. */
export function queryOf(values: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.append(name, String(value));
  }
  return query.size === 0 ? "" : `?${query}`;
}

/** Makes requests of calls. */
export class Calls {
  readonly #connection: Connection;
  /** Called when something was changed. */
  readonly #onChange: () => void;

  constructor(connection: Connection, onChange: () => void) {
    this.#connection = connection;
    this.#onChange = onChange;
  }

  /** Reads by GET. @param withMessages whether the answer holds messages */
  async get<Json>(path: string, withMessages = false): Promise<Body<Json>> {
    return this.#run({ method: "GET", path, kind: "read", ...(withMessages ? { accept: MESSAGES_TYPE } : {}) });
  }

  /** Reads by GET what may take as long as the store is large. */
  async getLong<Json>(path: string): Promise<Body<Json>> {
    return this.#run({ method: "GET", path, kind: "read", isLong: true });
  }

  /** Reads by POST, where what is asked is too much for a path. */
  async ask<Json>(path: string, json: unknown): Promise<Json> {
    const body = await this.#run<Json>({ method: "POST", path, kind: "read", ...encoded(json) });
    return body.json;
  }

  /**
   * Changes something. What is sent is taken now: the caller may use its arrays again.
   *
   * @param kind whether twice is as good as once
   * @param beside the bytes of the messages of `json`
   */
  change<Json>(
    method: Exclude<ApiRequest["method"], "GET">,
    path: string,
    kind: "repeatable" | "once",
    json?: unknown,
    beside?: BytesBeside,
    withMessages = false,
  ): Promise<Body<Json>> {
    const sending = { ...(json === undefined ? {} : encoded(json, beside)), ...(withMessages ? { accept: MESSAGES_TYPE } : {}) };
    const storesMessages = beside !== undefined && beside.parts.length > 0;
    return this.#run<Json>({ method, path, kind, storesMessages, ...sending }).finally(this.#onChange);
  }

  async #run<Json>(request: ApiRequest): Promise<Body<Json>> {
    const received = await this.#connection.run(request);
    return decoded<Json>(received);
  }
}

function encoded(json: unknown, beside?: BytesBeside): { readonly body: string | Uint8Array; readonly type: string } {
  // As text it is sent in one piece with the head.
  if (beside === undefined || beside.parts.length === 0) return { body: JSON.stringify(json), type: JSON_TYPE };
  return { body: encodeFrame(json, beside), type: MESSAGES_TYPE };
}

/** The body of an answer in whatever form it came. @throws QueueFSError `store-failed` when it is in none */
export function decoded<Json>({ headers, body }: Pick<Received, "headers" | "body">): Body<Json> {
  try {
    if (headers["content-type"]?.startsWith(MESSAGES_TYPE)) {
      const { json, beside } = decodeFrame(body);
      return { json: json as Json, beside };
    }
    return { json: JSON.parse(body.toString("utf8")) as Json };
  } catch (error) {
    throw badAnswer(error instanceof QueueFSError ? error.message : "it is not JSON");
  }
}

/** The answers of an answer, one for each item. @throws QueueFSError `store-failed` when there are more or fewer */
export function answersOf<Answer>(json: { readonly answers?: readonly Answer[] }, count: number): Answer[] {
  const { answers } = json;
  if (!Array.isArray(answers) || answers.length !== count) throw badAnswer(`it does not have ${count} answers`);
  return answers as Answer[];
}
