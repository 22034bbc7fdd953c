/** The server without its sockets: a request in, an answer out. */

import { Hono } from "hono";
import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { readOptions } from "../core/options.ts";
import { API_PREFIX } from "../core/wire.ts";
import { rootAnswer } from "./agfs/about.ts";
import { Agfs } from "./agfs/agfs.ts";
import { mountAgfs } from "./agfs/mounting.ts";
import { Gate, type Token } from "./auth.ts";
import { BodyBudget, bodyLimit, readStream } from "./body.ts";
import { docsAnswer } from "./docs-page.ts";
import { EventHub } from "./events/hub.ts";
import { type Exchange, exchangeOf, type RequestObserver } from "./exchange.ts";
import { Neighbourhood } from "./guards.ts";
import { LongPolls } from "./long-polls.ts";
import { Metrics } from "./observe/metrics.ts";
import { errorFields, type Logger, RequestLog } from "./observe/request-log.ts";
import { openApiDocument } from "./openapi.ts";
import { APP_OPTIONS } from "./options.ts";
import { type Asked, Passage, type Passing, pathOf } from "./passage.ts";
import { noSuchRoute, problemAnswer, wrongMethod } from "./problem.ts";
import type { Route, Shared } from "./route.ts";
import { RouteFinder } from "./route-finder.ts";
import { ROUTES } from "./routes/table.ts";
import { type Served, type Serving, serveRoute } from "./serve-route.ts";
import { type KeptAnswer, Sessions } from "./sessions.ts";
import { packageVersion } from "./version.ts";
import { fetchThrough, serveThrough, targetOf } from "./ways-in.ts";

/** Options of {@link createApp}. */
export interface AppOptions {
  /** The tokens that let somebody in; without any, everybody who can connect. */
  readonly tokens?: readonly Token[];
  /** Host names, beside `localhost` and addresses, by which the server may be called. */
  readonly allowHosts?: readonly string[];
  /** Origins of web pages that may use the server. */
  readonly allowOrigins?: readonly string[];
  /** Requests that may wait at once. Default 2,048. */
  readonly maxLongPolls?: number;
  /** Bytes of request bodies in memory at once. Default 512 MiB. */
  readonly maxBufferedBytes?: number;
  /** Bytes of path and query. Default 32 KiB. */
  readonly maxUrlBytes?: number;
  /** Parameters of a query. Default 64. */
  readonly maxQueryParameters?: number;
  /** How long the store may take for one request, in milliseconds. Default 120,000. */
  readonly answerTimeoutMs?: number;
  /** Lease of a dequeue that names none, in milliseconds. Default 30,000. */
  readonly leaseMs?: number;
  /** Where in the tree that AGFS clients see the queues lie, an absolute path. Default `/queuefs`. */
  readonly mount?: string;
  /** How long a message that an AGFS client took may be held, in milliseconds. Default 900,000 (15 minutes): those clients cannot renew. */
  readonly plainLeaseMs?: number;
  /** Streams of events that may be open at once. Default 1,000. */
  readonly maxEventReaders?: number;
  /** How often an idle stream of events shows that it lives, in milliseconds. Default 15,000. */
  readonly eventHeartbeatMs?: number;
  /** The shortest time between two events of a stream, in milliseconds. Default 50. */
  readonly eventIntervalMs?: number;
  /** Changes that are remembered for readers of events that come back or are slow. Default 1,024. */
  readonly eventHistory?: number;
  /** Queues that `/metrics` tells of, the first by name. Default 1,000. */
  readonly maxMetricQueues?: number;
  /** Gets a line for each request; a pino logger is one. Default: no logs. */
  readonly logger?: Logger;
  /** Told of every request. */
  readonly observer?: RequestObserver;
  /** Called with errors that are no fault of a request. Default: the logger, else a process warning. */
  readonly onError?: (error: unknown) => void;
}

/** What routes of other subjects (files, events, metrics) get from the app they are mounted in. */
export interface AppParts {
  readonly shared: Shared;
  readonly budget: BodyBudget;
  /** Bytes of one body. */
  readonly bodyLimit: number;
  readonly agfs: Agfs;
  readonly metrics: Metrics;
}

/** What a handler finds in its context. */
export interface AppEnv {
  readonly Bindings: { readonly exchange: Exchange; readonly passing: Passing };
}

/** A server without sockets. */
export interface App {
  /** Sent with every answer. Differs between two lives of a server. */
  readonly instance: string;
  /** Whether a token is asked for. */
  readonly asksForToken: boolean;
  /** Origins of web pages that may use the server. */
  readonly origins: ReadonlySet<string>;
  /** Limits of what a request may ask for, which the holder of a socket checks before anything is decoded. */
  readonly limits: { readonly maxUrlBytes: number; readonly maxQueryParameters: number };
  /** Answers a request; never rejects. @param exchange what the holder of the socket knows */
  fetch(request: Request, exchange?: Exchange): Promise<Response>;
  /** Says where the number of open connections comes from, for metrics. */
  countConnections(count: () => number): void;
  /** Aborted once the server stops. */
  readonly drained: AbortSignal;
  /** Ends all that waits, with what there is, and lets nothing wait any more. Requests are still answered. */
  drain(): void;
  /** Lets go of the store, which belongs to whoever opened it, once what goes on in the background is done. To be called when no request is left. */
  close(): Promise<void>;
}

/** An app, for whoever holds the sockets. */
export interface SocketApp extends App {
  /**
   * Answers a plain request of the native API, without the detour by `Request` and `Response`; never rejects. Nothing where the request is one
   * for `fetch`.
   *
   * @param asked its target is checked
   */
  serve(asked: Asked): Promise<KeptAnswer> | undefined;
}

/** A route's path as the router has it. */
function routerPath(path: string): string {
  return API_PREFIX + path.replace(/\{(\w+)\}/g, ":$1");
}

function randomWord(): string {
  return globalThis.crypto.randomUUID().replaceAll("-", "");
}

function warnOf(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

/** Paths of the table with the methods that they have. */
function methodsByPath(routes: readonly Route[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of routes) {
    const list = methods.get(path) ?? [];
    list.push(method, ...(method === "GET" ? ["HEAD"] : []));
    methods.set(path, list);
  }
  return methods;
}

async function toResponse(served: Promise<Served>): Promise<Response> {
  const { status, headers, body } = await served;
  return new Response(body, { status, headers });
}

/** Adds all routes. */
function addRoutes(hono: Hono<AppEnv>, serving: Serving, agfs: Agfs, metrics: Metrics): void {
  for (const route of ROUTES) {
    hono.on(route.method, routerPath(route.path), (c) => {
      const { req, env } = c;
      return toResponse(
        serveRoute(serving, route, env.passing, {
          exchange: env.exchange,
          method: req.method,
          target: targetOf(req.url),
          header: (name) => req.header(name),
          param: (name) => req.param(name),
        }),
      );
    });
  }
  for (const [path, methods] of methodsByPath(ROUTES)) {
    hono.all(routerPath(path), (c) => {
      throw wrongMethod(c.req.method, methods);
    });
  }
  const document = openApiDocument(serving.shared.version);
  hono.get("/openapi.json", (c) => c.json(document));
  hono.get("/docs", () => docsAnswer(document));
  // People come with a browser; what AGFS clients and their probes get says who is there.
  hono.get("/", (c) => (c.req.header("accept")?.includes("text/html") ? c.redirect("/docs") : rootAnswer(serving.shared.version)));
  for (const path of ["/openapi.json", "/docs", "/"]) {
    hono.all(path, (c) => {
      throw wrongMethod(c.req.method, ["GET", "HEAD"]);
    });
  }
  // The router runs the handler of GET for HEAD, and what follows may take a message for it.
  hono.use("*", (c, next) => {
    if (c.req.method === "HEAD") throw wrongMethod("HEAD", ["GET"]);
    return next();
  });
  mountOthers(hono, { shared: serving.shared, budget: serving.budget, bodyLimit: serving.bodyLimit, agfs, metrics });
}

/** The one place where routes of other subjects are mounted: the AGFS file API, metrics. */
function mountOthers(hono: Hono<AppEnv>, { agfs, budget, bodyLimit, metrics }: AppParts): void {
  mountAgfs(hono, agfs, { budget, bodyLimit });
  hono.get("/metrics", async (c) => {
    const { passing } = c.env;
    passing.route = "metrics";
    // They tell of all queues.
    passing.caller.needWholeStore();
    return c.body(await metrics.scrape(), 200, { "content-type": metrics.contentType });
  });
  hono.all("/metrics", (c) => {
    throw wrongMethod(c.req.method, ["GET"]);
  });
}

/**
 * Makes the server of a store, without sockets. The store stays open when the app is done with: it belongs to whoever opened it.
 *
 * @throws QueueFSError `invalid-argument` for an option that is not understood
 */
export function createApp(backend: Backend, options: AppOptions = {}): App {
  return createSocketApp(backend, options);
}

/** The same, for whoever holds the sockets. @throws QueueFSError as {@link createApp} does */
export function createSocketApp(backend: Backend, options: AppOptions = {}): SocketApp {
  const values = readOptions("createApp", APP_OPTIONS, options);
  const { tokens = [], allowHosts = [], allowOrigins: origins = [], observer, logger } = options;
  const onError = options.onError ?? (logger === undefined ? warnOf : (error: unknown) => logger.error(errorFields(error), "error"));
  const gate = new Gate(tokens);
  const neighbourhood = new Neighbourhood(allowHosts, origins);
  const clock: Clock = systemClock;
  const polls = new LongPolls(backend, values.maxLongPolls, clock);
  const instance = randomWord();
  const version = packageVersion();
  const events = new EventHub(backend, clock, values, instance);
  const shared: Shared = { backend, polls, events, leaseMs: values.leaseMs, instance, version };
  const metrics = new Metrics(
    backend,
    values.maxMetricQueues,
    { longPolls: () => polls.count, eventReaders: () => events.readers, eventGaps: () => events.gaps },
    version,
  );
  const serving: Serving = {
    shared,
    sessions: new Sessions(clock),
    budget: new BodyBudget(values.maxBufferedBytes),
    bodyLimit: bodyLimit(backend.description.maxMessageBytes),
    answerTimeoutMs: values.answerTimeoutMs,
  };
  const passage = new Passage({
    gate,
    neighbourhood,
    limits: values,
    observers: { metrics, log: logger && new RequestLog(logger), observer },
    clock,
    instance,
    drained: polls.drained,
    onError,
  });
  const hono = new Hono<AppEnv>();
  hono.notFound((c) => problemAnswer(noSuchRoute(c.req.path)));
  hono.onError((error) => {
    // The passage answers it.
    throw error;
  });
  const { mount, plainLeaseMs } = values;
  const agfs = new Agfs({ ...shared, clock, answerTimeoutMs: values.answerTimeoutMs, onError }, { mount, plainLeaseMs });
  addRoutes(hono, serving, agfs, metrics);
  const finder = new RouteFinder(ROUTES);
  return {
    instance,
    asksForToken: gate.isClosed,
    origins: neighbourhood.origins,
    limits: { maxUrlBytes: values.maxUrlBytes, maxQueryParameters: values.maxQueryParameters },
    fetch: (request, exchange) => fetchThrough(passage, hono, request, exchange ?? exchangeOf(request, readStream)),
    serve(asked) {
      const found = finder.find(asked.method, pathOf(asked.target));
      return found === undefined ? undefined : serveThrough(passage, serving, found, asked);
    },
    countConnections: (count) => metrics.countConnections(count),
    drained: polls.drained,
    drain: () => {
      polls.end();
      events.end();
    },
    close: () => agfs.close(),
  };
}
