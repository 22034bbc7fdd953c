/** A real backend with something put in the way of single methods: a delay, a failure, a count. */

import type { Backend } from "../../src/backend/contract.ts";

/**
 * `backend` with the given methods called instead of its own; they are free to call those of `backend`.
 *
 * @param instead the methods to put in the way
 */
export function interpose(backend: Backend, instead: Partial<Backend>): Backend {
  return new Proxy(backend, {
    get(target, property) {
      const own: unknown = Reflect.get(instead, property);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, property);
      // Private fields are found on the backend itself only, never on a proxy of it.
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
