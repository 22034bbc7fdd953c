/**
 * Sends one request on one connection, once. It uses node:http, not fetch: that is several times faster on Node 20, and tells whether a request was
 * sent at all, which decides whether it may be repeated.
 */

import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { DEFAULT_MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES_BOUND } from "../../core/limits.ts";
import { API_PREFIX, badAnswer } from "../../core/wire.ts";
import type { HttpSettings } from "./options.ts";

/** What is sent. */
export interface Sending {
  readonly method: string;
  /** Below the API's prefix, percent-encoded, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Silence after which the connection is given up, in milliseconds; 0 for never. */
  readonly timeoutMs: number;
}

/** What came back. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** No answer came. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  /** Whether the server may have got the request. */
  readonly wasSent: boolean;

  constructor(cause: Error, wasSent: boolean) {
    super(wordsOf(cause), { cause });
    this.wasSent = wasSent;
  }
}

/** What an error of a socket says; where several addresses were tried, it is in the errors of each. */
function wordsOf(error: Error): string {
  if (error.message !== "") return error.message;
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return first instanceof Error ? first.message : ((error as NodeJS.ErrnoException).code ?? error.name);
}

/** An answer whose body has not been read. */
export interface Opened {
  readonly response: IncomingMessage;
  readonly request: ClientRequest;
}

/** What an answer may need beside the bytes of its messages: 16 MiB, as for bodies of requests. Before the store is known it is all. */
const OVERHEAD_BYTES = 16 * 1024 * 1024;

/**
 * Bytes that an answer may have. A dequeue hands out messages until it has 64 MiB, and the last may be as large as any; all may come in base64.
 * What the server says of itself is believed up to what any store can hold.
 */
export function answerLimit(maxMessageBytes: number): number {
  const payload = DEFAULT_MAX_MESSAGE_BYTES + Math.min(maxMessageBytes, MAX_MESSAGE_BYTES_BOUND);
  return Math.ceil(payload / 3) * 4 + OVERHEAD_BYTES;
}

/** The connections to one server. */
export class Transport {
  readonly #settings: HttpSettings;
  /** Where requests go. */
  readonly #address: { readonly protocol: string; readonly hostname: string; readonly port: string };
  /** What comes before the path of each. */
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: HttpAgent;
  readonly #send: typeof httpRequest;
  readonly #inAir = new Set<ClientRequest>();
  #maxAnswerBytes = OVERHEAD_BYTES;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
    const { protocol, hostname, port, pathname } = new URL(settings.url);
    // An IPv6 address stands in brackets in a url, and without them here.
    this.#address = { protocol, hostname: hostname.replace(/^\[(.*)\]$/, "$1"), port };
    this.#prefix = `${pathname.replace(/\/$/, "")}${API_PREFIX}`;
    this.#headers = settings.token === undefined ? {} : { authorization: `Bearer ${settings.token}` };
    const isSecure = protocol === "https:";
    const options = {
      keepAlive: true,
      maxSockets: Number.POSITIVE_INFINITY,
      maxFreeSockets: settings.maxConnections,
      scheduling: "lifo",
    } as const;
    this.#agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options);
    this.#send = isSecure ? httpsRequest : httpRequest;
  }

  /** Says what the largest message of the server's store may have, on which depends how large its answers may be. */
  expectMessages(maxMessageBytes: number): void {
    this.#maxAnswerBytes = answerLimit(maxMessageBytes);
  }

  /** Sends a request and reads its answer. @throws TransportError; QueueFSError `store-failed` for an answer that is too large to be one */
  exchange(sending: Sending): Promise<Received> {
    const limit = this.#maxAnswerBytes;
    return new Promise((resolve, reject) => {
      const read = (response: IncomingMessage, request: ClientRequest): void => {
        const parts: Buffer[] = [];
        let bytes = 0;
        // By events: to iterate over the answer costs more than to send the request.
        response.on("data", (part: Buffer) => {
          bytes += part.byteLength;
          if (bytes <= limit) {
            parts.push(part);
            return;
          }
          request.destroy();
          reject(badAnswer(`it has more than ${limit} bytes, which no answer of a QueueFS server has`));
        });
        response.once("error", (error) => reject(new TransportError(error, true)));
        response.once("close", () => {
          if (!response.readableEnded) reject(new TransportError(new Error("the connection was closed"), true));
        });
        response.once("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts),
          }),
        );
      };
      this.#start(sending, false, read, reject);
    });
  }

  /** Sends a request and answers when the head of the answer has come, on a connection of its own. @throws TransportError */
  open(sending: Sending): Promise<Opened> {
    return new Promise((resolve, reject) => {
      this.#start(sending, true, (response, request) => resolve({ response, request }), reject);
    });
  }

  #start(
    { method, path, headers, body, timeoutMs }: Sending,
    isStream: boolean,
    onAnswer: (response: IncomingMessage, request: ClientRequest) => void,
    onError: (error: TransportError) => void,
  ): void {
    const { connectTimeoutMs } = this.#settings;
    let wasSent = false;
    let isAnswered = false;
    let connecting: ReturnType<typeof setTimeout> | undefined;
    const length = body === undefined ? undefined : typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    const request = this.#send({
      ...this.#address,
      agent: isStream ? false : this.#agent,
      method,
      path: this.#prefix + path,
      headers: {
        ...headers,
        ...this.#headers,
        ...(length === undefined ? {} : { "content-length": length }),
      },
    });
    this.#inAir.add(request);
    request.once("socket", (socket) => {
      // Listening does not keep the process alive, a call does.
      if (isStream) socket.unref();
      wasSent = request.reusedSocket || !socket.connecting;
      if (wasSent) return;
      socket.setNoDelay(true);
      connecting = setTimeout(() => request.destroy(new Error("no connection within the connect timeout")), connectTimeoutMs);
      if (isStream) connecting.unref();
      socket.once(this.#address.protocol === "https:" ? "secureConnect" : "connect", () => {
        wasSent = true;
        clearTimeout(connecting);
      });
    });
    if (timeoutMs > 0) request.setTimeout(timeoutMs, () => request.destroy(new Error("no answer within the request timeout")));
    request.once("response", (response) => {
      isAnswered = true;
      onAnswer(response, request);
    });
    // Errors after the head of the answer are the reader's.
    request.on("error", (error) => {
      if (!isAnswered) onError(new TransportError(error, wasSent));
    });
    request.once("close", () => {
      clearTimeout(connecting);
      this.#inAir.delete(request);
      if (!isAnswered) onError(new TransportError(new Error("the connection was closed"), wasSent));
    });
    if (body === undefined) request.end();
    else request.end(body);
  }

  /** Ends all connections. Requests in the air fail. */
  close(): void {
    for (const request of this.#inAir) request.destroy(new Error("the store was closed"));
    this.#agent.destroy();
  }
}
