/** Cuts clients that send a request, or take an answer, so slowly that they only hold the connection. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** How often connections are looked at, in milliseconds. */
const LOOK_MS = 5_000;

interface Watched {
  /** The request and answer that are on the connection now. */
  current: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } | undefined;
  /** Bytes in both directions at the last look; `undefined` when nothing was to be moved then. */
  atLook: number | undefined;
}

/** Looks after all connections of a server. */
export class SlowClients {
  readonly #minimumBytes: number;
  readonly #watched = new Map<Socket, Watched>();
  readonly #timer: ReturnType<typeof setInterval> | undefined;

  /** @param minimumBytesPerSecond 0 for any */
  constructor(minimumBytesPerSecond: number, lookMs = LOOK_MS) {
    this.#minimumBytes = (minimumBytesPerSecond * lookMs) / 1_000;
    if (minimumBytesPerSecond === 0) return;
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  /** Watches a connection until it is closed. */
  watch(socket: Socket): void {
    if (this.#timer === undefined) return;
    this.#watched.set(socket, { current: undefined, atLook: undefined });
    socket.once("close", () => this.#watched.delete(socket));
  }

  /** Says which request a connection has now. */
  begin(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const watched = this.#watched.get(incoming.socket);
    if (watched !== undefined) watched.current = { incoming, outgoing };
  }

  #look(): void {
    for (const [socket, watched] of this.#watched) {
      const bytes = isMoving(watched) ? movedBytes(socket) : undefined;
      // The first look only takes the measure: so a client has between one and two spans.
      if (bytes !== undefined && watched.atLook !== undefined && bytes - watched.atLook < this.#minimumBytes) socket.destroy();
      watched.atLook = bytes;
    }
  }

  /** Ends looking. */
  stop(): void {
    clearInterval(this.#timer);
  }
}

/**
 * Bytes that came, and that left for the network. What was written tells too little: a large answer is written in one piece, which counts
 * for nothing before all of it has left. How much of it has, Node knows for its own timeouts; where it does not tell, the whole counts.
 */
function movedBytes(socket: Socket): number {
  const { _handle: own } = socket as Socket & { readonly _handle?: Handle | null };
  // With TLS what leaves is what its connection below has sent.
  const handle = own?._parent ?? own;
  const left =
    handle?.bytesWritten === undefined ? socket.bytesWritten - socket.writableLength : handle.bytesWritten - (handle.writeQueueSize ?? 0);
  return socket.bytesRead + left;
}

/** What Node keeps of a connection. */
interface Handle {
  readonly bytesWritten?: number;
  /** Of these: bytes that have not left. */
  readonly writeQueueSize?: number;
  readonly _parent?: Handle;
}

/** Whether bytes are to come from the client, or to be taken by it: not so while it waits for an answer. */
function isMoving({ current }: Watched): boolean {
  if (current === undefined) return false;
  const { incoming, outgoing } = current;
  return (!incoming.complete && !outgoing.writableEnded) || outgoing.writableLength > 0;
}
