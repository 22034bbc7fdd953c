/** The sockets of a server: who may listen where, limits on connections, slow clients, and an end that loses nothing. */

import { createServer, type IncomingMessage, type Server as NodeServer, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, isIP, type Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Backend } from "../backend/contract.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import { type OptionValues, readOptions } from "../core/options.ts";
import { type AppOptions, createSocketApp, type SocketApp } from "./app.ts";
import { answerBadly } from "./bad-request.ts";
import { checkTarget } from "./guards.ts";
import { APP_OPTIONS, LISTEN_OPTIONS } from "./options.ts";
import { RequestError } from "./problem.ts";
import { SlowClients } from "./slow-clients.ts";
import { SocketExchange } from "./socket-exchange.ts";
import { repeatsHeaders, SocketRequest, send } from "./socket-request.ts";

/** Options of {@link listen}. */
export interface ListenOptions extends AppOptions {
  /** The address to listen on. Default 127.0.0.1; any but a loopback address needs a token. */
  readonly host?: string;
  /** Default 7333; 0 for any that is free. */
  readonly port?: number;
  /** Certificate and key in PEM. Without them: plain HTTP. */
  readonly tls?: { readonly cert: string | Uint8Array; readonly key: string | Uint8Array };
  /** Connections at once. Default 4,096. */
  readonly maxConnections?: number;
  /** Bytes of the request line and all headers. Default 64 KiB. */
  readonly maxHeaderBytes?: number;
  /** Headers of a request. Default 100. */
  readonly maxHeaders?: number;
  /** How long a client may take to send headers, in milliseconds. Default 10,000. */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send a request, in milliseconds. Default 600,000. */
  readonly requestTimeoutMs?: number;
  /** What a client must send or take per second, in bytes. Default 1,024; 0 for any. */
  readonly minimumBytesPerSecond?: number;
  /** How long an idle connection is kept, in milliseconds. Default 95,000. */
  readonly keepAliveTimeoutMs?: number;
  /** How long requests may take to end when the server stops, in milliseconds. Default 30,000. */
  readonly drainMs?: number;
}

/** What became of the requests that ran when a server was told to stop. The shape of what workers report, for `stopOnSignals`. */
export interface DrainReport {
  /** Requests that came to their end. */
  readonly finished: number;
  /** Connections that were cut because theirs did not. */
  readonly released: number;
}

/** A server that listens. */
export interface HttpServer extends AsyncDisposable {
  /** Where it can be reached, such as `http://127.0.0.1:7333`. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops: no new connections, waiting requests are answered with what there is, the others finish, and what does not within `drainMs` is cut.
   * Stopping twice is one stop.
   */
  stop(): Promise<DrainReport>;
  /** The same, for who has no use for the report. */
  close(): Promise<void>;
}

type ListenValues = OptionValues<typeof LISTEN_OPTIONS>;

/** How often idle connections are looked for while the server stops, in milliseconds. */
const IDLE_LOOK_MS = 50;

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "::ffff:127.0.0.1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** A server for TLS. @throws QueueFSError `invalid-argument` for what is no certificate with its key */
function secureServer(
  limits: ServerOptions & { readonly headersTimeout: number },
  { cert, key }: NonNullable<ListenOptions["tls"]>,
): NodeServer {
  try {
    return createSecureServer({ ...limits, handshakeTimeout: limits.headersTimeout, cert: Buffer.from(cert), key: Buffer.from(key) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new QueueFSError(
      "invalid-argument",
      `certificate and key cannot be used (${why}); give both in PEM, the key without a passphrase`,
    );
  }
}

/** Serves connections of one server. */
class Listener implements HttpServer {
  readonly #app: SocketApp;
  readonly #server: NodeServer;
  readonly #slow: SlowClients;
  readonly #drainMs: number;
  readonly #scheme: string;
  #running = 0;
  #connections = 0;
  #finished = 0;
  #stopping: Promise<DrainReport> | undefined;
  #onIdle: (() => void) | undefined;

  constructor(app: SocketApp, values: ListenValues, tls: ListenOptions["tls"]) {
    this.#app = app;
    this.#drainMs = values.drainMs;
    this.#slow = new SlowClients(values.minimumBytesPerSecond);
    const limits = {
      maxHeaderSize: values.maxHeaderBytes,
      headersTimeout: values.headersTimeoutMs,
      requestTimeout: Math.max(values.requestTimeoutMs, values.headersTimeoutMs),
      connectionsCheckingInterval: Math.min(1_000, values.headersTimeoutMs),
      keepAliveTimeout: values.keepAliveTimeoutMs,
      // Beside refusing what is ambiguous: a request that two readers may take for two.
      insecureHTTPParser: false,
      noDelay: true,
      // Node's own answer would not say what is wrong.
      requireHostHeader: false,
    };
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server = tls === undefined ? createServer(limits) : secureServer(limits, tls);
    // Node would leave the rest out without a word; they are counted below.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = values.maxConnections;
    const serve = getRequestListener((request, { incoming }) => app.fetch(request, exchanges.get(incoming as IncomingMessage)), {
      overrideGlobalObjects: false,
      // For HTTP/1.0, which may leave the host out.
      hostname: "localhost",
    });
    const exchanges = new WeakMap<IncomingMessage, SocketExchange>();
    this.#server.on("request", (incoming, outgoing) => {
      const exchange = new SocketExchange(incoming, outgoing);
      this.#begin(incoming, outgoing, exchange);
      try {
        this.#check(incoming, values.maxHeaders);
      } catch (error) {
        answerBadly(outgoing, error, app.origins);
        return;
      }
      const served = repeatsHeaders(incoming) ? undefined : app.serve(new SocketRequest(incoming, exchange));
      if (served !== undefined) {
        void served.then((answer) => send(incoming, outgoing, answer));
        return;
      }
      exchanges.set(incoming, exchange);
      void serve(incoming, outgoing);
    });
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => answerBadly(socket, error));
    // With TLS the connection below is not the one that requests come from.
    this.#server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => this.#slow.watch(socket));
    this.#server.on("connection", (socket: Socket) => {
      this.#connections += 1;
      socket.once("close", () => {
        this.#connections -= 1;
      });
    });
    app.countConnections(() => this.#connections);
  }

  #begin(incoming: IncomingMessage, outgoing: ServerResponse, exchange: SocketExchange): void {
    this.#running += 1;
    this.#slow.begin(incoming, outgoing);
    outgoing.once("close", () => {
      this.#running -= 1;
      if (this.#stopping !== undefined && exchange.isFinished) this.#finished += 1;
      if (this.#running === 0) this.#onIdle?.();
    });
  }

  /** What must be seen as the client sent it: `Request` has cleaned the path, and forgotten the order of headers. */
  #check(incoming: IncomingMessage, maxHeaders: number): void {
    checkTarget(incoming.url ?? "", this.#app.limits);
    if (incoming.headers.host === undefined && incoming.httpVersion !== "1.0")
      throw new RequestError("invalid-argument", 400, "the request has no Host header");
    const headers = incoming.rawHeaders.length / 2;
    if (headers > maxHeaders)
      throw new RequestError("invalid-argument", 431, `the request has ${headers} headers; the limit is ${maxHeaders}`);
    const encoding = incoming.headers["content-encoding"] ?? "identity";
    if (encoding.toLowerCase() !== "identity")
      throw new RequestError("invalid-argument", 415, `the body is encoded with ${quote(encoding)}; send it as it is`);
  }

  /** Begins to listen. */
  async open(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", (error: NodeJS.ErrnoException) => {
        const why = error.code === "EADDRINUSE" ? "somebody else listens there" : (error.code ?? error.message);
        reject(
          new QueueFSError("invalid-argument", `cannot listen on ${host}:${port}: ${why}; choose another address or port`, {
            cause: error,
          }),
        );
      });
      this.#server.listen({ host, port }, resolve);
    });
    this.#server.removeAllListeners("error");
    this.#server.on("error", () => {});
  }

  get #address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }

  get port(): number {
    return this.#address.port;
  }

  get url(): string {
    const { address, family, port } = this.#address;
    return `${this.#scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  stop(): Promise<DrainReport> {
    this.#stopping ??= this.#drain();
    return this.#stopping;
  }

  async #drain(): Promise<DrainReport> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#app.drain();
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      if (this.#running === 0) resolve();
    });
    const late = Symbol("late");
    let timer: ReturnType<typeof setTimeout> | undefined;
    const deadline = new Promise<typeof late>((resolve) => {
      timer = setTimeout(() => resolve(late), this.#drainMs);
    });
    const sweep = setInterval(() => this.#server.closeIdleConnections(), IDLE_LOOK_MS);
    await Promise.race([idle, deadline]);
    const released = this.#running;
    // Those that are left have sent half a request at most, which nobody has begun to act on, or did not come to their end.
    this.#server.closeAllConnections();
    await closed;
    clearInterval(sweep);
    clearTimeout(timer);
    this.#slow.stop();
    await this.#app.close();
    return { finished: this.#finished, released };
  }

  async close(): Promise<void> {
    await this.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/**
 * Serves a store over HTTP. The store stays open when the server has stopped: it belongs to whoever opened it.
 *
 * @throws QueueFSError `invalid-argument` for options that are not understood, an address other than loopback without any token, and one
 *   that cannot be listened on
 */
export async function listen(backend: Backend, options: ListenOptions = {}): Promise<HttpServer> {
  const given = Object.entries(options);
  const ofApp = Object.fromEntries(given.filter(([name]) => Object.hasOwn(APP_OPTIONS, name)));
  const values = readOptions("listen", LISTEN_OPTIONS, Object.fromEntries(given.filter(([name]) => !Object.hasOwn(ofApp, name))));
  const app = createSocketApp(backend, ofApp);
  const { host, port } = values;
  try {
    if (!isLoopback(host) && !app.asksForToken) {
      throw new QueueFSError(
        "invalid-argument",
        `listening on ${quote(host)} would let everybody in who can reach this host; give the server a token, or listen on 127.0.0.1`,
      );
    }
    const listener = new Listener(app, values, options.tls);
    await listener.open(host, port);
    return listener;
  } catch (error) {
    await app.close();
    throw error;
  }
}
