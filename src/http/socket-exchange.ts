/** What the socket knows of one request: whether its client is there, and whether the answer has reached it. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { QueueFSError } from "../core/errors.ts";
import type { BodyReading } from "./body.ts";
import type { Exchange } from "./exchange.ts";

/**
 * How long after an answer was handed to the network a reset still says that it was not read, in milliseconds. A client that ends before
 * the answer has come makes its host send one at once.
 */
const RESET_MS = 2_000;

function gone(): QueueFSError {
  return new QueueFSError("aborted", "the client went away");
}

/** By connection, what says that the last answer has arrived: the next request on it shows that. */
const confirmations = new WeakMap<Socket, () => void>();

/**
 * Requests whose bodies came in one turn of the event loop go on together, once it has read all there was to read. So the store gets their calls
 * at once, and a store that shares a transaction, a sync of the disk or a round trip among such calls can do so, as for callers in its process.
 */
const arrived: (() => void)[] = [];
function goOnTogether(goOn: () => void): void {
  if (arrived.push(goOn) > 1) return;
  setImmediate(() => {
    for (const each of arrived.splice(0)) each();
  });
}

/** One request on a socket. */
export class SocketExchange implements Exchange {
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  #gone: AbortController | undefined;
  #isFinished = false;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    confirmations.get(incoming.socket)?.();
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    // What the answer says of itself cannot be relied on once its connection is gone, when it also claims to have been written.
    outgoing.once("finish", () => {
      this.#isFinished = !incoming.socket.destroyed;
    });
  }

  /** Whether the whole answer was handed to the network. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  get isGone(): boolean {
    const { closed, destroyed } = this.#outgoing;
    return (closed || destroyed) && !this.#isFinished;
  }

  get signal(): AbortSignal {
    if (this.#gone !== undefined) return this.#gone.signal;
    const controller = new AbortController();
    this.#gone = controller;
    const outgoing = this.#outgoing;
    const onClose = (): void => {
      if (!this.#isFinished) controller.abort(gone());
    };
    if (outgoing.closed || outgoing.destroyed) onClose();
    else outgoing.once("close", onClose);
    return controller.signal;
  }

  onLost(listener: () => void): void {
    const outgoing = this.#outgoing;
    const { socket } = this.#incoming;
    let isOver = false;
    const end = (isLost: boolean): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      socket.off("close", onSocketClose);
      if (isLost) listener();
    };
    const onSocketClose = (hadError: boolean): void => end(hadError || !this.#isFinished);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onFinish = (): void => {
      if (!this.#isFinished) return;
      timer = setTimeout(() => end(false), RESET_MS);
      timer.unref();
    };
    if (socket.destroyed) end(true);
    else {
      socket.once("close", onSocketClose);
      confirmations.set(socket, () => {
        // Not so for one that was sent before the answer was.
        if (this.#isFinished) end(false);
      });
      if (this.#isFinished) onFinish();
      else outgoing.once("finish", onFinish);
    }
  }

  readBody(reading: BodyReading): Promise<Uint8Array> {
    const incoming = this.#incoming;
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      const end = (settle: () => void): void => {
        incoming.off("data", onData);
        incoming.off("end", onEnd);
        incoming.off("error", onBroken);
        incoming.off("close", onBroken);
        settle();
      };
      const onData = (part: Buffer): void => {
        try {
          reading.count(part.byteLength);
          parts.push(part);
        } catch (error) {
          // The rest is not read: whoever answers closes the connection.
          incoming.pause();
          this.#outgoing.setHeader("connection", "close");
          end(() => reject(error));
        }
      };
      const onEnd = (): void => end(() => goOnTogether(() => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts))));
      const onBroken = (): void => end(() => reject(new QueueFSError("aborted", "the body of the request broke off; nothing was done")));
      if (incoming.readableEnded) onEnd();
      else if (incoming.destroyed) onBroken();
      else {
        const length = Number(incoming.headers["content-length"] ?? 0);
        if (length > 0) {
          try {
            reading.check(length);
          } catch (error) {
            this.#outgoing.setHeader("connection", "close");
            reject(error);
            return;
          }
        }
        incoming.on("data", onData);
        incoming.once("end", onEnd);
        incoming.once("error", onBroken);
        incoming.once("close", onBroken);
      }
    });
  }
}
