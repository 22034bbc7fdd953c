/** A reader of server-sent events on a connection of its own, which can also stop reading. */

import { type ClientRequest, get, type IncomingMessage } from "node:http";

/** One event. */
export interface HeardEvent {
  readonly id?: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at.
  readonly data: any;
}

/** An open stream. */
export interface EventStream {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** All that was heard. */
  readonly events: readonly HeardEvent[];
  /** Comments and ids without events. */
  readonly beats: () => number;
  /** The last id that came, as a browser keeps it. */
  lastId(): string | undefined;
  /** Resolves with the first event from now on, or of those not asked for yet, that fits. */
  next(event: string, fits?: (data: HeardEvent["data"]) => boolean): Promise<HeardEvent>;
  pause(): void;
  resume(): void;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  /** Goes away. */
  leave(): void;
}

/** Opens a stream; also resolves when it is refused. */
export async function openEvents(url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventStream> {
  let request: ClientRequest | undefined;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request = get(url, { headers: { accept: "text/event-stream", ...headers }, agent: false }, resolve).on("error", reject);
  });
  request?.on("error", () => {});
  const events: HeardEvent[] = [];
  let beats = 0;
  let lastId: string | undefined;
  let asked = 0;
  let look = (): void => {};
  let text = "";
  response.setEncoding("utf8");
  response.on("data", (part: string) => {
    text += part;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string): string | undefined => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      lastId = field("id") ?? lastId;
      const data = field("data");
      if (data === undefined) beats += 1;
      else
        events.push({
          event: field("event") ?? "message",
          data: JSON.parse(data),
          ...(field("id") === undefined ? {} : { id: lastId }),
        } as HeardEvent);
    }
    look();
  });
  response.on("error", () => {});
  const ended = new Promise<void>((resolve) => response.once("close", resolve));
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    beats: () => beats,
    lastId: () => lastId,
    next: (event, fits = () => true) =>
      new Promise((resolve, reject) => {
        look = () => {
          while (asked < events.length) {
            const heard = events[asked] as HeardEvent;
            asked += 1;
            if (heard.event === event && fits(heard.data)) {
              look = () => {};
              resolve(heard);
              return;
            }
          }
        };
        void ended.then(() => reject(new Error(`the stream ended before ${event}; there was ${JSON.stringify(events)}`)));
        look();
      }),
    pause: () => response.pause(),
    resume: () => response.resume(),
    ended,
    leave: () => request?.destroy(),
  };
}
