/** Answers to what is no request that could be served: the parser refused it, it came too slowly, or its target is malformed. */

import { ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { isQueueFSError } from "../core/errors.ts";
import { problemParts, RequestError } from "./problem.ts";

/** What the parser's errors mean. */
function requestErrorOf(error: NodeJS.ErrnoException): RequestError {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return new RequestError("invalid-argument", 431, "the request line and headers have more bytes than this server takes");
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new RequestError("invalid-argument", 413, "the chunk extensions of the body have more bytes than this server takes");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new RequestError("timed-out", 408, "the request did not come within the time allowed");
    default:
      return new RequestError("invalid-argument", 400, "this is no valid HTTP/1.1 request");
  }
}

/** Which of the two APIs was meant is not known: clients of AGFS look for their own word. */
const inBothForms = (detail: string): object => ({ error: detail });

/**
 * Answers an error and closes the connection, since what follows on it cannot be trusted to be a request.
 *
 * @param origins pages of these may read it
 */
export function answerBadly(to: ServerResponse | Duplex, error: unknown, origins: ReadonlySet<string> = new Set()): void {
  if (to instanceof ServerResponse) {
    const { status, headers, body } = problemParts(error, inBothForms);
    const { origin } = to.req.headers;
    const page = origin !== undefined && origins.has(origin) ? { "access-control-allow-origin": origin, vary: "Origin" } : {};
    to.writeHead(status, { ...headers, ...page, connection: "close", "content-length": Buffer.byteLength(body) });
    to.end(body);
    // What is left of the request is read and dropped, so that the client gets to the answer; for a moment only.
    to.req.resume();
    to.once("finish", () => setTimeout(() => to.req.socket.destroy(), LINGER_MS).unref());
    return;
  }
  const isReset = (error as NodeJS.ErrnoException).code === "ECONNRESET";
  // An answer that was begun cannot be turned into another.
  const begun = (to as Duplex & { readonly _httpMessage?: { readonly headersSent?: boolean } })._httpMessage?.headersSent === true;
  if (isReset || begun || !to.writable) {
    to.destroy();
    return;
  }
  const { status, headers, body } = problemParts(
    isQueueFSError(error) ? error : requestErrorOf(error as NodeJS.ErrnoException),
    inBothForms,
  );
  const lines = Object.entries({ ...headers, connection: "close", "content-length": String(Buffer.byteLength(body)) });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  to.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${head}\r\n${body}`);
  setTimeout(() => to.destroy(), LINGER_MS).unref();
}

/** How long a client has to read the answer before the connection is cut, in milliseconds. */
const LINGER_MS = 500;
