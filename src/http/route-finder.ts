/** Finds the route of a plain request without taking its path apart: what is written in any unusual way is left to the router. */

import { API_PREFIX } from "../core/wire.ts";
import type { Route } from "./route.ts";
import { EVENTS_TYPE } from "./serve-route.ts";

/** A route, and the decoded component of the path that its parameter stands for. */
export interface FoundRoute {
  readonly route: Route;
  readonly parameter: string | undefined;
}

/** A path with one parameter, as its second component. */
const WITH_PARAMETER = /^(\/[^/{]+)\/\{\w+\}(\/[^{]*)?$/;

/** The routes of a table by method and path. */
export class RouteFinder {
  readonly #plain = new Map<string, Route>();
  /** By the path without its parameter. */
  readonly #withParameter = new Map<string, Route>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      // A stream needs more than a head and a body.
      if (Object.values(route.answers).some(({ type }) => type === EVENTS_TYPE)) continue;
      const [, first, rest = ""] = WITH_PARAMETER.exec(route.path) ?? [];
      if (first !== undefined) this.#withParameter.set(`${route.method} ${API_PREFIX}${first}/${rest}`, route);
      else if (!route.path.includes("{")) this.#plain.set(`${route.method} ${API_PREFIX}${route.path}`, route);
    }
  }

  /** The route of a request. @param path as the client sent it, checked. Nothing where the router must look */
  find(method: string, path: string): FoundRoute | undefined {
    const plain = this.#plain.get(`${method} ${path}`);
    if (plain !== undefined) return { route: plain, parameter: undefined };
    const from = path.indexOf("/", API_PREFIX.length + 1) + 1;
    if (from === 0) return undefined;
    const end = path.indexOf("/", from);
    const to = end < 0 ? path.length : end;
    const route = this.#withParameter.get(`${method} ${path.slice(0, from)}${path.slice(to)}`);
    return route === undefined || from === to ? undefined : { route, parameter: decodeURIComponent(path.slice(from, to)) };
  }
}
