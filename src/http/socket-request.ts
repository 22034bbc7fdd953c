/** A request as Node has it, and an answer as Node sends it: without the detour by `Request` and `Response`, which costs more than all else. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Exchange } from "./exchange.ts";
import type { Asked } from "./passage.ts";
import type { KeptAnswer } from "./sessions.ts";

/** Whether a request has a header twice, of which Node would tell the first only, or both joined. */
export function repeatsHeaders({ headers, rawHeaders }: IncomingMessage): boolean {
  return Object.keys(headers).length * 2 !== rawHeaders.length;
}

/** A request on a socket, none of whose headers is there twice. */
export class SocketRequest implements Asked {
  readonly method: string;
  readonly target: string;
  readonly exchange: Exchange;
  readonly #incoming: IncomingMessage;

  constructor(incoming: IncomingMessage, exchange: Exchange) {
    this.method = incoming.method ?? "";
    this.target = incoming.url ?? "";
    this.exchange = exchange;
    this.#incoming = incoming;
  }

  header(name: string): string | undefined {
    // Only of a cookie there may be several.
    return this.#incoming.headers[name.toLowerCase()] as string | undefined;
  }
}

/** What a client may still send of a body that nobody reads, in bytes, and for how long, in milliseconds; then the connection is cut. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
const UNREAD_MS = 500;

/** Sends an answer. */
export function send(incoming: IncomingMessage, outgoing: ServerResponse, { status, headers, body }: KeptAnswer): void {
  if (outgoing.destroyed) return;
  if (!incoming.readableEnded) outgoing.once("finish", () => dropRest(incoming));
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  outgoing.writeHead(status, { ...headers, "content-length": length });
  outgoing.end(body);
}

/** Reads and drops what is left of a body, so that the client gets to the answer and the connection can be used again. */
function dropRest(incoming: IncomingMessage): void {
  if (incoming.readableEnded || incoming.destroyed) return;
  let bytes = 0;
  const timer = setTimeout(() => incoming.socket.destroySoon(), UNREAD_MS);
  timer.unref();
  incoming.on("data", (part: Buffer) => {
    bytes += part.byteLength;
    if (bytes > MAX_UNREAD_BYTES) incoming.socket.destroySoon();
  });
  incoming.once("close", () => clearTimeout(timer));
  incoming.resume();
}
