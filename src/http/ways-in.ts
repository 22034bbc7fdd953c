/** The two ways from a request to its answer: any request by the router, and a plain one of the native API straight to its route. */

import type { Hono } from "hono";
import { errorAnswer } from "./agfs/answers.ts";
import { isAgfsPath } from "./agfs/mounting.ts";
import type { AppEnv } from "./app.ts";
import type { Exchange } from "./exchange.ts";
import { type Asked, type Passage, pathOf } from "./passage.ts";
import { problemAnswer, problemParts, wrongMethod } from "./problem.ts";
import type { FoundRoute } from "./route-finder.ts";
import { type Routed, type Serving, serveRoute } from "./serve-route.ts";
import type { KeptAnswer } from "./sessions.ts";

/** Path and query of an absolute URL. */
export function targetOf(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("://") + 3));
}

/** Takes a request of any kind through the passage and the router. */
export async function fetchThrough(passage: Passage, hono: Hono<AppEnv>, request: Request, exchange: Exchange): Promise<Response> {
  const { method, headers: given } = request;
  const target = targetOf(request.url);
  const asked: Asked = { method, target, exchange, header: (name) => given.get(name) ?? undefined };
  const { answered, headers } = await passage.run<Response>(asked, {
    answer: async (passing) => hono.fetch(request, { exchange, passing }),
    refuse: (error) => {
      const response = isAgfsPath(pathOf(target)) ? errorAnswer(error, "read") : problemAnswer(error);
      return method === "HEAD" ? new Response(null, response) : response;
    },
    allow: () => new Response(null, { status: 204 }),
  });
  for (const [name, value] of Object.entries(headers)) answered.headers.set(name, value);
  return answered;
}

/** A request of which the route was found by its path. */
class DirectRequest implements Routed {
  readonly exchange: Exchange;
  readonly method: string;
  readonly target: string;
  readonly #asked: Asked;
  readonly #parameter: string | undefined;

  constructor(asked: Asked, parameter: string | undefined) {
    this.exchange = asked.exchange;
    this.method = asked.method;
    this.target = asked.target;
    this.#asked = asked;
    this.#parameter = parameter;
  }

  header(name: string): string | undefined {
    return this.#asked.header(name);
  }

  /** It has one at most. */
  param(): string | undefined {
    return this.#parameter;
  }
}

/** Takes a request of the native API through the passage to its route. */
export async function serveThrough(
  passage: Passage,
  serving: Serving,
  { route, parameter }: FoundRoute,
  asked: Asked,
): Promise<KeptAnswer> {
  const { answered, headers } = await passage.run<KeptAnswer>(asked, {
    // Routes that stream are not found by this way.
    answer: (passing) => serveRoute(serving, route, passing, new DirectRequest(asked, parameter)) as Promise<KeptAnswer>,
    refuse: problemParts,
    // No row of the table has that method.
    allow: () => problemParts(wrongMethod(asked.method, [route.method])),
  });
  return { status: answered.status, headers: { ...answered.headers, ...headers }, body: answered.body };
}
