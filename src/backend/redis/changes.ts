/** Hears of changes by publish and subscribe, on a connection of its own that is made when somebody listens for the first time. */

import type { QueueName } from "../../core/names.ts";
import type { ChangeListener } from "../contract.ts";
import type { OwnClient } from "./client.ts";

/** Hears of changes. */
export class Changes {
  readonly #connect: () => OwnClient;
  readonly #channel: string;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<ChangeListener>();
  #client: OwnClient | undefined;
  #changed: Set<QueueName> | undefined;
  #isAny = false;
  #isClosed = false;
  #lastHeardMs = 0;
  #isAsking = false;

  /** @param connect makes a client that is not connected yet */
  constructor(connect: () => OwnClient, channel: string, onError: (error: unknown) => void) {
    this.#connect = connect;
    this.#channel = channel;
    this.#onError = onError;
  }

  subscribe(listener: ChangeListener): () => void {
    const own: ChangeListener = (queues) => listener(queues);
    this.#listeners.add(own);
    if (this.#client === undefined) this.#start();
    return () => void this.#listeners.delete(own);
  }

  #start(): void {
    const client = this.#connect();
    this.#client = client;
    // The connection for commands tells of a server that is away; once is enough.
    client.on("error", () => {});
    client.on("connect", () => client.stream?.unref?.());
    client.on("ready", () => {
      client.subscribe(this.#channel).then(
        // Something may have changed while nobody listened.
        () => this.#hear(undefined),
        (error: unknown) => {
          if (!this.#isClosed && client.status === "ready") this.#onError(error);
        },
      );
    });
    client.on("message", (_channel: string, message: string) => this.#hear(message));
    client.connect().catch(() => {});
  }

  #hear(message: string | undefined): void {
    this.#isAsking = false;
    if (this.#isClosed || this.#listeners.size === 0) return;
    if (message === undefined || message === "") this.#isAny = true;
    const isFirst = this.#changed === undefined;
    this.#changed ??= new Set();
    if (message) for (const name of message.split("\0")) this.#changed.add(name as QueueName);
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
        this.#onError(error);
      }
    }
  }

  /** Makes the connection anew when it has fallen silent: a subscriber is never answered, so it would not notice. */
  check(nowMs: number, timeoutMs: number): void {
    const client = this.#client;
    if (client === undefined || client.status !== "ready") return;
    if (this.#isAsking) {
      if (nowMs - this.#lastHeardMs > timeoutMs) client.stream?.destroy();
      return;
    }
    if (nowMs - this.#lastHeardMs < timeoutMs) return;
    this.#lastHeardMs = nowMs;
    this.#isAsking = true;
    client.callBuffer("ping").then(
      () => (this.#isAsking = false),
      () => (this.#isAsking = false),
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#listeners.clear();
    this.#client?.disconnect();
    this.#client?.stream?.destroy();
  }
}
