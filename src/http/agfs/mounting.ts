/** Puts the routes of the AGFS file API into the server's router. */

import type { Context, Hono } from "hono";
import { API_PREFIX } from "../../core/wire.ts";
import type { AppEnv } from "../app.ts";
import { type BodyBudget, BodyReading, mediaType } from "../body.ts";
import { wrongMethod } from "../problem.ts";
import type { Agfs } from "./agfs.ts";
import { errorAnswer } from "./answers.ts";
import { AGFS_ROUTES, type AgfsRoute } from "./routes.ts";

/** What bodies may have, and how many bytes of them the server holds at once. */
export interface BodyLimits {
  readonly budget: BodyBudget;
  /** Bytes of one body. */
  readonly bodyLimit: number;
}

/** The routes by path. */
const BY_PATH: ReadonlyMap<string, readonly AgfsRoute[]> = new Map(
  AGFS_ROUTES.map(({ path }) => [path, AGFS_ROUTES.filter((route) => route.path === path)]),
);

/** The first components of all paths of the API. */
const FIRST_COMPONENTS: ReadonlySet<string> = new Set(AGFS_ROUTES.map(({ path }) => path.split("/")[1] ?? ""));

/** Whether a path belongs to this API, so that errors must have its form. */
export function isAgfsPath(path: string): boolean {
  if (!path.startsWith(`${API_PREFIX}/`)) return false;
  return FIRST_COMPONENTS.has(path.slice(API_PREFIX.length + 1).split("/", 1)[0] ?? "");
}

/** Adds all routes. */
export function mountAgfs(hono: Hono<AppEnv>, agfs: Agfs, limits: BodyLimits): void {
  for (const [path, routes] of BY_PATH) {
    hono.all(API_PREFIX + path, async (c) => {
      const { method } = c.req;
      c.env.passing.route = `agfs ${path}`;
      const route = routes.find(({ methods }) => methods.includes(method));
      if (route !== undefined) return serve(c, agfs, route, limits);
      const error = wrongMethod(
        method,
        routes.flatMap(({ methods }) => methods),
      );
      c.env.passing.error = error;
      return errorAnswer(error, "read");
    });
  }
}

async function serve(c: Context<AppEnv>, agfs: Agfs, route: AgfsRoute, { budget, bodyLimit }: BodyLimits): Promise<Response> {
  const { req } = c;
  const { exchange, passing } = c.env;
  const { search } = new URL(req.url);
  const reading = new BodyReading(budget, bodyLimit);
  try {
    const { response, error } = await agfs.handle(route, {
      search: search.slice(1),
      contentType: mediaType(req.header("content-type")),
      caller: passing.caller,
      signal: exchange.signal,
      bytes: () => exchange.readBody(reading),
      onLost: (listener) => exchange.onLost(listener),
    });
    if (error !== undefined) passing.error = error;
    return response;
  } finally {
    reading.end();
  }
}
