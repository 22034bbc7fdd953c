/**
 * Runs the conformance cases and the model over HTTP: each on a server of its own, on a free port of this host, over a store of another
 * backend, with the store's time moved by hand and the network's time real.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "../../src/backend/contract.ts";
import { openHttp } from "../../src/backend/http/index.ts";
import { type HttpServer, listen } from "../../src/http/index.ts";
import type { CaseOptions, ConformanceHarness } from "../../src/testing/index.ts";

/** What a client can be told of the options of a case; the rest is the server's. */
function bound({ maxMessageBytes }: CaseOptions): Pick<CaseOptions, "maxMessageBytes"> {
  return maxMessageBytes === undefined ? {} : { maxMessageBytes };
}

/** The harness over HTTP of the store that another harness makes. */
export function httpHarness(inner: ConformanceHarness): ConformanceHarness {
  return {
    name: `http over ${inner.name}`,
    // The process that the store sees is the server's, whoever calls.
    capabilities: inner.capabilities.filter((capability) => capability !== "process-owners"),
    spanMs: inner.spanMs,
    async createStore() {
      const store = await inner.createStore();
      const errors: unknown[] = [];
      const onError = (error: unknown): void => void errors.push(error);
      let served: Promise<{ readonly backend: Backend; readonly server: HttpServer }> | undefined;
      const serve = async (options: CaseOptions): Promise<{ readonly backend: Backend; readonly server: HttpServer }> => {
        const backend = await store.open(options);
        return { backend, server: await listen(backend, { port: 0, onError }) };
      };
      return {
        async open(options) {
          served ??= serve(options);
          const { server } = await served;
          return openHttp({ url: server.url, onError, ...bound(options) });
        },
        async passTime(ms) {
          await store.passTime(ms);
          // What was woken by it has to come over the network.
          await sleep(2);
        },
        ...(store.stepWall === undefined ? {} : { stepWall: store.stepWall.bind(store) }),
        async destroy() {
          if (served !== undefined) {
            const { backend, server } = await served;
            await server.stop();
            await backend.close();
          }
          await store.destroy();
          const unexpected = errors.filter((error) => !String(error).includes("on purpose"));
          assert.deepEqual(unexpected, [], "no error in the background");
        },
      };
    },
  };
}
