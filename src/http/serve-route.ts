/** Does what a route of the table says for one request: rights, repeats, time limit, and the answer in the form that is asked for. */

import { systemClock } from "../core/clock.ts";
import { isQueueFSError, QueueFSError } from "../core/errors.ts";
import { MAX_LONG_POLL_MS } from "../core/limits.ts";
import { parseQueueName } from "../core/names.ts";
import { REQUEST_HEADER, SESSION_HEADER } from "../core/wire.ts";
import { BytesBeside, encodeFrame, MESSAGES_TYPE } from "../core/wire-bytes.ts";
import type { Caller } from "./auth.ts";
import type { BodyBudget } from "./body.ts";
import { BodyReading, mediaType, parseBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import type { Passing } from "./passage.ts";
import { problemParts } from "./problem.ts";
import { type Call, type Route, type RouteAnswer, readQuery, type Shared } from "./route.ts";
import type { KeptAnswer, Sessions, StepAnswer } from "./sessions.ts";

/** What serving needs beside the request. */
export interface Serving {
  readonly shared: Shared;
  readonly sessions: Sessions;
  readonly budget: BodyBudget;
  readonly bodyLimit: number;
  readonly answerTimeoutMs: number;
}

/** The answer of a route as it is to be sent. */
export type Served = Omit<KeptAnswer, "body"> & { readonly body: KeptAnswer["body"] | ReadableStream<Uint8Array> | null };

/** A request as routing gives it. */
export interface Routed {
  readonly exchange: Exchange;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  header(name: string): string | undefined;
  param(name: string): string | undefined;
}

/** The media type of a stream of events. */
export const EVENTS_TYPE = "text/event-stream";
/** Proxies are told to pass events on as they come. */
const EVENTS_HEADERS = { "content-type": EVENTS_TYPE, "x-accel-buffering": "no" } as const;
const JSON_HEADERS = { "content-type": "application/json" } as const;

/** One request on its way through a route. */
class Serve {
  readonly #serving: Serving;
  readonly #caller: Caller;
  readonly #routed: Routed;
  readonly #route: Route;
  readonly #reading: BodyReading;
  readonly #beside: BytesBeside | undefined;
  readonly #onLost: (() => void)[] = [];
  /** Whether the client was told something else, or nothing, so that what was done for it is lost. */
  #isLost = false;

  constructor(serving: Serving, route: Route, caller: Caller, routed: Routed) {
    this.#serving = serving;
    this.#caller = caller;
    this.#routed = routed;
    this.#route = route;
    this.#reading = new BodyReading(serving.budget, serving.bodyLimit);
    this.#beside = routed.header("accept")?.includes(MESSAGES_TYPE) ? new BytesBeside() : undefined;
  }

  async run(): Promise<Served> {
    this.#checkRights();
    const session = this.#route.remembered === true ? this.#session() : undefined;
    try {
      if (session === undefined) return await this.#inTime(this.#answer());
      return await this.#inTime(this.#repeatable(session.name, session.number));
    } catch (error) {
      this.#lose();
      throw error;
    } finally {
      this.#reading.end();
    }
  }

  #checkRights(): void {
    const caller = this.#caller;
    if (this.#route.access === "write") caller.needWrite();
    if (this.#route.scope === "store") caller.needWholeStore();
    if (this.#route.scope === "queue") caller.needQueue(parseQueueName(this.#routed.param("queue")));
  }

  /** Who repeats what, when the client numbers its requests. @throws QueueFSError `invalid-argument` */
  #session(): { readonly name: string; readonly number: number } | undefined {
    const name = this.#routed.header(SESSION_HEADER);
    const number = this.#routed.header(REQUEST_HEADER);
    if (name === undefined && number === undefined) return undefined;
    if (!/^[\w-]{1,64}$/.test(name ?? "") || !/^\d{1,15}$/.test(number ?? ""))
      throw new QueueFSError(
        "invalid-argument",
        `${SESSION_HEADER} must have 1 to 64 characters of A-Z a-z 0-9 _ -, and ${REQUEST_HEADER} be a whole number; send both or neither`,
      );
    return { name: name ?? "", number: Number(number) };
  }

  async #answer(): Promise<Served> {
    const answer = await this.#route.handle(this.#call());
    return answer.stream === undefined ? this.#encode(answer) : this.#streaming(answer.stream);
  }

  #streaming(stream: ReadableStream<Uint8Array>): Served {
    if (this.#routed.method !== "HEAD") return { status: 200, headers: EVENTS_HEADERS, body: stream };
    // Nobody will read it.
    void stream.cancel();
    return { status: 200, headers: EVENTS_HEADERS, body: null };
  }

  /** The answer of the route, in the form that the client takes. */
  #encode({ status = 200, json }: RouteAnswer): KeptAnswer {
    if (this.#beside !== undefined && this.#beside.parts.length > 0)
      return { status, headers: { "content-type": MESSAGES_TYPE }, body: encodeFrame(json, this.#beside) };
    return { status, headers: JSON_HEADERS, body: toText(json) };
  }

  #repeatable(name: string, number: number): Promise<KeptAnswer> {
    const { method, target } = this.#routed;
    const step = async (): Promise<StepAnswer> => {
      try {
        return { answer: this.#encode(await this.#route.handle(this.#call())), isFinal: true };
      } catch (error) {
        // What changed nothing may be tried again, and a body that broke off did not even begin.
        const isFinal = isQueueFSError(error) && !error.retryable && error.code !== "aborted" && error.code !== "closed";
        if (!isFinal) throw error;
        return { answer: problemParts(error), isFinal };
      }
    };
    // Whoever has another token may not read its answers.
    return this.#serving.sessions.run(name, number, `${method} ${target}`, step, this.#caller.key);
  }

  #call(): Call {
    const routed = this.#routed;
    const type = mediaType(routed.header("content-type"));
    let bytes: Promise<Uint8Array> | undefined;
    const read = (): Promise<Uint8Array> => {
      bytes ??= routed.exchange.readBody(this.#reading);
      return bytes;
    };
    const { backend, polls, events, leaseMs, instance, version } = this.#serving.shared;
    return {
      backend,
      polls,
      events,
      leaseMs,
      instance,
      version,
      caller: this.#caller,
      header: (name) => routed.header(name),
      param: (name) => routed.param(name) ?? "",
      query: (table) => readQuery(table, queryOf(routed.target)),
      body: async () => parseBody(type, await read()),
      bytes: read,
      contentType: type,
      ...(this.#beside === undefined ? {} : { beside: this.#beside }),
      // Made only where it is asked for: an AbortSignal costs more than routing a request.
      get signal() {
        return routed.exchange.signal;
      },
      get isGone() {
        return routed.exchange.isGone;
      },
      onLost: (listener) => {
        if (this.#isLost) listener();
        else if (this.#onLost.push(listener) === 1) routed.exchange.onLost(() => this.#lose());
      },
    };
  }

  #lose(): void {
    this.#isLost = true;
    for (const listener of this.#onLost.splice(0)) listener();
  }

  /** The answer, unless the store takes too long. What it does later is not undone, and a repeat with the same number gets its answer. */
  #inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const { slow, access, name } = this.#route;
    if (slow === "looks-at-all") return answer;
    const timeoutMs = this.#serving.answerTimeoutMs + (slow === "waits" ? MAX_LONG_POLL_MS : 0);
    return new Promise((resolve, reject) => {
      const timer = systemClock.setTimer(() => {
        const words = `${name} took longer than ${timeoutMs} ms`;
        this.#lose();
        reject(
          access === "write"
            ? new QueueFSError("outcome-unknown", `${words}: it may or may not have happened`)
            : new QueueFSError("timed-out", `${words}; ask again later`),
        );
      }, timeoutMs);
      answer.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

/** A body as text. @throws QueueFSError `message-too-large` beyond what a text can hold */
function toText(json: unknown): string {
  try {
    return JSON.stringify(json);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new QueueFSError("message-too-large", `the answer is too large for JSON; ask for less at once, or accept ${MESSAGES_TYPE}`);
  }
}

/** The parameters of a target. */
function queryOf(target: string): Iterable<[string, string]> {
  const at = target.indexOf("?");
  return at < 0 ? [] : new URLSearchParams(target.slice(at));
}

/** Serves one request. @param passing who asks, and where the route is noted. @throws whatever the answer is to tell of as an error */
export async function serveRoute(serving: Serving, route: Route, passing: Passing, routed: Routed): Promise<Served> {
  passing.route = route.name;
  return new Serve(serving, route, passing.caller, routed).run();
}
