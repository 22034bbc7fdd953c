/** What every request passes through, by whichever way it came: it is observed, checked and let in, and its answer gets what all answers have. */

import type { Clock } from "../core/clock.ts";
import { isQueueFSError, QueueFSError } from "../core/errors.ts";
import { API_PREFIX, INSTANCE_HEADER } from "../core/wire.ts";
import { type Caller, type Gate, NOBODY } from "./auth.ts";
import { originHeaders } from "./cross-origin.ts";
import type { Exchange } from "./exchange.ts";
import { checkTarget, type Neighbourhood, type TargetLimits } from "./guards.ts";
import { Observation, type Observers } from "./observe/observation.ts";

/** A request as whoever received it knows it. */
export interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly exchange: Exchange;
  /** The value of a header, by its name in any case. */
  header(name: string): string | undefined;
}

/** What becomes known of a request on its way. */
export interface Passing {
  caller: Caller;
  /** The name of the route, for whoever observes. */
  route: string | undefined;
  /** The error that the answer tells of. */
  error: unknown;
}

/** How answers are made, in whatever form the one who received the request sends them. */
export interface Hands<Answered> {
  /** Answers a request that was let in. */
  answer(passing: Passing): Promise<Answered>;
  /** Answers with an error. */
  refuse(error: unknown): Answered;
  /** Answers a preflight. */
  allow(): Answered;
}

/** An answer, and the headers that it must have beside its own. */
export interface Passed<Answered> {
  readonly answered: Answered;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the passage needs. */
export interface PassageParts {
  readonly gate: Gate;
  readonly neighbourhood: Neighbourhood;
  readonly limits: TargetLimits;
  readonly observers: Observers;
  readonly clock: Clock;
  readonly instance: string;
  /** Aborted once the server stops. */
  readonly drained: AbortSignal;
  /** Called with errors that are no fault of a request. */
  readonly onError: (error: unknown) => void;
}

/** Paths that tell nothing of the store, and so ask for no token: probes and documentation. */
const OPEN_PATHS: ReadonlySet<string> = new Set(["/", "/docs", "/openapi.json", `${API_PREFIX}/health`, `${API_PREFIX}/ready`]);

/** The path of a target, without its query. */
export function pathOf(target: string): string {
  const end = target.indexOf("?");
  return end < 0 ? target : target.slice(0, end);
}

/** The way in. */
export class Passage {
  readonly #parts: PassageParts;
  readonly #observation: Observation;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(parts: PassageParts) {
    this.#parts = parts;
    this.#observation = new Observation(parts.observers, parts.clock, parts.instance);
    this.#headers = { [INSTANCE_HEADER.toLowerCase()]: parts.instance, "cache-control": "no-store", "x-content-type-options": "nosniff" };
  }

  /** Takes a request through; never rejects. */
  async run<Answered extends { readonly status: number }>(asked: Asked, hands: Hands<Answered>): Promise<Passed<Answered>> {
    const passing: Passing = { caller: NOBODY, route: undefined, error: undefined };
    const { origins } = this.#parts.neighbourhood;
    const serve = (): Promise<Answered> =>
      origins.size > 0 && asked.method === "OPTIONS" ? Promise.resolve(hands.allow()) : this.#serve(asked, passing, hands);
    let observed: { readonly answered: Answered; readonly headers: Readonly<Record<string, string>> | undefined };
    try {
      observed = await this.#observation.run(asked, passing, serve);
    } catch (error) {
      // An observer threw.
      this.#parts.onError(error);
      observed = { answered: hands.refuse(error), headers: undefined };
    }
    const { answered, headers } = observed;
    if (headers === undefined && origins.size === 0 && !this.#parts.drained.aborted) return { answered, headers: this.#headers };
    const all = { ...originHeaders(origins, asked), ...this.#headers, ...headers };
    return { answered, headers: this.#parts.drained.aborted ? { ...all, connection: "close" } : all };
  }

  async #serve<Answered>(asked: Asked, passing: Passing, hands: Hands<Answered>): Promise<Answered> {
    try {
      this.#letIn(asked, passing);
      return await hands.answer(passing);
    } catch (error) {
      const { isGone } = asked.exchange;
      if (!isQueueFSError(error) && !isGone) this.#parts.onError(error);
      passing.error = isGone && !isQueueFSError(error) ? new QueueFSError("aborted", "the client went away") : error;
      return hands.refuse(passing.error);
    }
  }

  /** @throws RequestError, QueueFSError when the request is refused before anybody looks at what it asks for */
  #letIn(asked: Asked, passing: Passing): void {
    const { limits, neighbourhood, gate, instance } = this.#parts;
    checkTarget(asked.target, limits);
    const host = asked.header("host");
    neighbourhood.needHost(host);
    const life = asked.header(INSTANCE_HEADER);
    if (life !== undefined && life !== instance)
      throw new QueueFSError(
        "outcome-unknown",
        "this is another life of the server than the request was sent to first; whether that one did it is forgotten",
      );
    if (OPEN_PATHS.has(pathOf(asked.target))) return;
    neighbourhood.needOrigin({ origin: asked.header("origin"), host, site: asked.header("sec-fetch-site") });
    passing.caller = gate.caller(asked.header("authorization"));
  }
}
