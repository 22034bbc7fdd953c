/** One stream of events. It keeps at most one chunk for a client that does not read, and a number: what else it missed the journal knows. */

import type { Feed, FeedEvent } from "./feed.ts";

const encoder = new TextEncoder();
/** How long a client waits before it connects again, in milliseconds. */
const RETRY_MS = 1_000;

/** What a reader needs of who serves it. */
export interface ReaderOwner {
  /** The id of the event that tells of the change of a number. */
  idOf(number: number): string;
  /** Called when the client takes more again. */
  onReady(reader: Reader): void;
  /** Called once, when the stream has ended, from whichever side. */
  onEnd(reader: Reader): void;
}

function textOf({ event, data }: FeedEvent | { readonly event: "gap"; readonly data: unknown }, id: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The texts of several events. Only the last has the id: a reader that hears half of them asks for all again. */
export function textOfEvents(events: readonly (FeedEvent | { readonly event: "gap"; readonly data: unknown })[], id: string): string {
  return events
    .map((event, index) => {
      const text = textOf(event, id);
      return index === events.length - 1 ? text : text.slice(text.indexOf("\n") + 1);
    })
    .join("");
}

/** One stream. */
export class Reader {
  readonly feed: Feed;
  readonly stream: ReadableStream<Uint8Array>;
  /** The number of the last change that it was told of, or that is none of its business. */
  cursor: number;
  readonly #owner: ReaderOwner;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(feed: Feed, cursor: number, owner: ReaderOwner) {
    this.feed = feed;
    this.cursor = cursor;
    this.#owner = owner;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => owner.onReady(this),
        cancel: () => this.end(),
      },
      // One chunk: what the client has not taken yet is not added to.
      { highWaterMark: 1 },
    );
  }

  /** Whether the client took what it was sent. */
  get isReady(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** Says how to come back, and from where. */
  greet(more: string): void {
    this.#send(`retry: ${RETRY_MS}\nid: ${this.#owner.idOf(this.cursor)}\n\n${more}`);
  }

  /** Sends events that bring the client to a number. */
  tell(text: string, number: number): void {
    this.cursor = number;
    if (text !== "") this.#send(text);
  }

  /** Shows that the connection lives. The id says that the client missed nothing, without being an event. */
  beat(): void {
    if (this.isReady) this.#send(`: heartbeat\nid: ${this.#owner.idOf(this.cursor)}\n\n`);
  }

  #send(text: string): void {
    this.#controller?.enqueue(encoder.encode(text));
  }

  /** Ends the stream; what it was sent still arrives. Ending twice is one end. */
  end(): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    this.#controller = undefined;
    try {
      controller.close();
    } catch {
      // The client has cancelled it.
    }
    this.#owner.onEnd(this);
  }
}
