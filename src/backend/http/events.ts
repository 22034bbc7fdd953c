/**
 * Hears of changes by the server's stream of events, on a connection of its own that is made when somebody listens for the first time. While
 * there is no stream, listeners are told to look at an interval.
 */

import { backoffMs } from "../../core/backoff.ts";
import type { Timer } from "../../core/clock.ts";
import type { QueueName } from "../../core/names.ts";
import type { ChangeListener } from "../contract.ts";
import type { HttpSettings } from "./options.ts";
import type { Opened, Transport } from "./transport.ts";

/** Silence after which a stream counts as dead, in milliseconds: the server sends a comment several times within it. */
const SILENCE_MS = 45_000;
/** After so long a server that had no stream is asked again, in milliseconds: it may have been restarted in another version. */
const NO_STREAM_MS = 30_000;
const RECONNECT_BACKOFF = { firstMs: 50, maximumMs: 2_000 } as const;
/** Characters of one event: a server that sends more without an end is not one of ours. */
const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024;

/** Hears of changes. */
export class Events {
  readonly #transport: Transport;
  readonly #settings: HttpSettings;
  readonly #listeners = new Set<ChangeListener>();
  #isStarted = false;
  #isLive = false;
  #isClosed = false;
  #failures = 0;
  #stream: Opened | undefined;
  #poll: Timer | undefined;
  #again: Timer | undefined;
  #changed: Set<QueueName> | undefined;
  #isAny = false;

  constructor(transport: Transport, settings: HttpSettings) {
    this.#transport = transport;
    this.#settings = settings;
  }

  subscribe(listener: ChangeListener): () => void {
    const own: ChangeListener = (queues) => listener(queues);
    this.#listeners.add(own);
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.#pollLater();
      void this.#connect();
    }
    return () => void this.#listeners.delete(own);
  }

  /** Says that a call of this client changed something; where there is no stream nobody else would. */
  ownChange(): void {
    if (!this.#isLive) this.#hear(undefined);
  }

  #pollLater(): void {
    if (this.#isLive || this.#isClosed) return;
    this.#poll = this.#settings.clock.setTimer(() => {
      this.#hear(undefined);
      this.#pollLater();
    }, this.#settings.pollIntervalMs);
  }

  async #connect(): Promise<void> {
    let waitMs: number | undefined;
    try {
      const headers = { accept: "text/event-stream", "cache-control": "no-store" };
      const opened = await this.#transport.open({ method: "GET", path: "/events", headers, timeoutMs: SILENCE_MS });
      const { response, request } = opened;
      if (response.statusCode === 200 && response.headers["content-type"]?.startsWith("text/event-stream")) {
        await this.#follow(opened);
      } else {
        // A server that is stopping or overloaded will have one soon.
        if (response.statusCode !== 503) waitMs = NO_STREAM_MS;
        request.destroy();
      }
    } catch {
      // The calls tell of a server that is away; once is enough.
    }
    if (this.#isClosed) return;
    this.#failures += 1;
    waitMs ??= backoffMs(RECONNECT_BACKOFF, this.#failures, this.#settings.random);
    this.#again = this.#settings.clock.setTimer(() => void this.#connect(), waitMs);
  }

  async #follow(opened: Opened): Promise<void> {
    if (this.#isClosed) {
      opened.request.destroy();
      return;
    }
    this.#stream = opened;
    this.#isLive = true;
    this.#failures = 0;
    this.#poll?.cancel();
    const { response } = opened;
    // Something may have changed while nobody listened.
    this.#hear(undefined);
    let text = "";
    try {
      response.setEncoding("utf8");
      for await (const part of response) {
        text += (part as string).replaceAll("\r", "");
        const end = text.lastIndexOf("\n\n");
        if (end >= 0) {
          for (const event of text.slice(0, end).split("\n\n")) this.#readEvent(event);
          text = text.slice(end + 2);
        }
        if (text.length > MAX_EVENT_CHARACTERS) break;
      }
    } finally {
      this.#stream = undefined;
      this.#isLive = false;
      opened.request.destroy();
      this.#pollLater();
    }
  }

  #readEvent(event: string): void {
    const data: string[] = [];
    let isComment = true;
    for (const line of event.split("\n")) {
      if (line === "" || line.startsWith(":")) continue;
      const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (field === "data") data.push(value);
      // `id` and `retry` say nothing of changes.
      if (field === "data" || field === "event") isComment = false;
    }
    if (!isComment) this.#hear(queuesOf(data.join("\n")));
  }

  #hear(queues: readonly QueueName[] | undefined): void {
    if (this.#isClosed || this.#listeners.size === 0) return;
    const isFirst = this.#changed === undefined;
    this.#changed ??= new Set();
    if (queues === undefined) this.#isAny = true;
    else for (const queue of queues) this.#changed.add(queue);
    // What arrives together is told together.
    if (isFirst) setImmediate(() => this.#tell());
  }

  #tell(): void {
    const changed = this.#isAny ? undefined : this.#changed;
    this.#changed = undefined;
    this.#isAny = false;
    if (this.#isClosed) return;
    for (const listener of [...this.#listeners]) {
      try {
        listener(changed);
      } catch (error) {
        this.#settings.onError(error);
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#listeners.clear();
    this.#poll?.cancel();
    this.#again?.cancel();
    this.#stream?.request.destroy();
  }
}

/** The queues that an event names; `undefined`, for any, also where it is not understood: it is a hint, and too many are harmless. */
function queuesOf(data: string): readonly QueueName[] | undefined {
  try {
    const { queues } = JSON.parse(data) as { readonly queues?: unknown };
    return Array.isArray(queues) ? (queues as QueueName[]) : undefined;
  } catch {
    return undefined;
  }
}
