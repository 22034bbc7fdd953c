/**
 * Tells readers what changes. Changes are gathered for a short while and told together, to everybody who is ready to hear; whoever is not
 * hears later, of all it missed at once, or that it missed more than is remembered.
 */

import type { Backend } from "../../backend/contract.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { isQueueFSError, QueueFSError } from "../../core/errors.ts";
import type { QueueName, TaskId } from "../../core/names.ts";
import type { Caller } from "../auth.ts";
import { type Feed, HintFeed, StatusFeed, TaskFeed } from "./feed.ts";
import { Heard, Journal } from "./journal.ts";
import { Reader, textOfEvents } from "./reader.ts";

/** What a hub needs of its store. */
export type EventsBackend = Pick<Backend, "statuses" | "task" | "subscribe">;

/** Limits of the streams of one server. */
export interface EventsSettings {
  /** Streams at once. */
  readonly maxEventReaders: number;
  /** Silence after which a stream shows that it lives, in milliseconds. */
  readonly eventHeartbeatMs: number;
  /** The shortest time between two events of a stream, in milliseconds. */
  readonly eventIntervalMs: number;
  /** Changes that are remembered for readers that come back or are slow. */
  readonly eventHistory: number;
}

/** What is listened to: one of them, or none for hints about all that the caller may see. */
export interface EventSelection {
  readonly queue?: QueueName;
  readonly under?: QueueName | "";
  readonly task?: TaskId;
}

/** Events that all readers together get per second at most, about: more readers hear less often. */
const MAX_EVENTS_PER_SECOND = 2_000;
/** Looks take at most this part of the time. */
const LOOKING_PART = 0.1;
/** But however long they take, events come at least this often, in milliseconds. */
const MAX_INTERVAL_MS = 1_000;
/** A look that failed is tried again after so long, in milliseconds. */
const RETRY_LOOK_MS = 1_000;
/** How long changes are remembered for readers that come back when there is no reader, in milliseconds. */
const LINGER_MS = 60_000;

/** The streams of one server. */
export class EventHub {
  readonly #backend: EventsBackend;
  readonly #clock: Clock;
  readonly #settings: EventsSettings;
  readonly #journal: Journal;
  /** What begins every id, so that ids of another life of the server are not taken for ours. */
  readonly #life: string;
  readonly #readers = new Set<Reader>();
  readonly #feeds = new Map<string, { readonly feed: Feed; readonly ready: Promise<void>; readers: number }>();
  #opening = 0;
  #gaps = 0;
  #heard = new Heard();
  /** The number of the last change after which all feeds that it concerns have looked. */
  #settled = 0;
  #unsubscribe: (() => void) | undefined;
  #round: Timer | undefined;
  #isRunning = false;
  #nextMs = 0;
  #beating: Timer | undefined;
  #lingering: Timer | undefined;
  #isEnded = false;

  constructor(backend: EventsBackend, clock: Clock, settings: EventsSettings, instance: string) {
    this.#backend = backend;
    this.#clock = clock;
    this.#settings = settings;
    this.#journal = new Journal(settings.eventHistory);
    this.#life = instance.slice(0, 12);
  }

  /** Streams that are open. */
  get readers(): number {
    return this.#readers.size;
  }

  /** How often a reader was told that it missed more than is remembered. */
  get gaps(): number {
    return this.#gaps;
  }

  /**
   * Opens a stream.
   *
   * @param lastEventId the id of the last event that the client heard, on another stream
   * @throws QueueFSError `overloaded` when there are too many; `queue-not-found`, `task-not-found`; `closed` once the server stops
   */
  async open(selection: EventSelection, caller: Caller, lastEventId: string | undefined): Promise<Reader> {
    if (this.#isEnded) throw new QueueFSError("closed", "the server stops; listen to another, or to this one again later");
    const { maxEventReaders } = this.#settings;
    if (this.#readers.size + this.#opening >= maxEventReaders)
      throw new QueueFSError("overloaded", `${maxEventReaders} streams are open, as many as this server lets; ask again later`);
    this.#opening += 1;
    this.#listen();
    const key = keyOf(selection, caller);
    try {
      const feed = await this.#feed(key, () => this.#makeFeed(selection, caller));
      if (this.#isEnded) throw new QueueFSError("closed", "the server stops");
      return this.#begin(key, feed, isHints(selection), lastEventId);
    } catch (error) {
      this.#leaveFeed(key);
      this.#lingerWhenIdle();
      throw error;
    } finally {
      this.#opening -= 1;
    }
  }

  #makeFeed({ queue, under, task }: EventSelection, caller: Caller): Feed {
    if (task !== undefined) return new TaskFeed(this.#backend, task);
    if (queue !== undefined) return new StatusFeed(this.#backend, this.#journal, queue, false);
    if (under !== undefined) return new StatusFeed(this.#backend, this.#journal, under, true);
    return new HintFeed(this.#journal, caller);
  }

  /** The feed of a key, which has looked once. */
  async #feed(key: string, make: () => Feed): Promise<Feed> {
    let entry = this.#feeds.get(key);
    if (entry === undefined) {
      const feed = make();
      entry = { feed, ready: feed.look(this.#journal.last), readers: 0 };
      this.#feeds.set(key, entry);
    }
    entry.readers += 1;
    await entry.ready;
    return entry.feed;
  }

  #leaveFeed(key: string): void {
    const entry = this.#feeds.get(key);
    if (entry === undefined) return;
    entry.readers -= 1;
    if (entry.readers === 0) this.#feeds.delete(key);
  }

  #begin(key: string, feed: Feed, isHints: boolean, lastEventId: string | undefined): Reader {
    const reader = new Reader(feed, this.#settled, {
      idOf: (number) => this.#idOf(number),
      onReady: (ready) => {
        if (ready.cursor !== this.#settled) this.#runLater();
      },
      onEnd: (ended) => {
        this.#readers.delete(ended);
        this.#leaveFeed(key);
        this.#lingerWhenIdle();
      },
    });
    this.#readers.add(reader);
    const id = this.#idOf(this.#settled);
    const last = lastEventId === undefined ? undefined : this.#numberOf(lastEventId);
    if (lastEventId === undefined) reader.greet(isHints ? "" : textOfEvents(feed.whole(), id));
    else if (last === undefined || !this.#journal.knows(last))
      reader.greet(this.#gap(feed, "what changed after that event is not remembered"));
    else reader.greet(textOfEvents(feed.since(last), id));
    this.#beatLater();
    return reader;
  }

  #idOf(number: number): string {
    return `${this.#life}.${number}`;
  }

  /** The number in an id, unless that is of another life of the server. */
  #numberOf(id: string): number | undefined {
    const [, life, number] = /^([^.]+)\.(\d{1,15})$/.exec(id) ?? [];
    return life === this.#life ? Number(number) : undefined;
  }

  #gap(feed: Feed, reason: string): string {
    this.#gaps += 1;
    return textOfEvents([{ event: "gap", data: { reason } }, ...feed.whole()], this.#idOf(this.#settled));
  }

  /** Begins to hear the store, unless it does. */
  #listen(): void {
    this.#lingering?.cancel();
    this.#lingering = undefined;
    this.#unsubscribe ??= this.#backend.subscribe((queues) => {
      this.#heard.add(queues);
      this.#runLater();
    });
  }

  #lingerWhenIdle(): void {
    if (this.#readers.size > 0 || this.#isEnded) return;
    this.#lingering?.cancel();
    this.#lingering = this.#clock.setTimer(() => {
      if (this.#readers.size > 0 || this.#opening > 0) return;
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
      this.#heard = new Heard();
      this.#journal.lose();
      this.#settled = this.#journal.last;
    }, LINGER_MS);
  }

  #runLater(): void {
    if (this.#round !== undefined || this.#isRunning || this.#isEnded) return;
    this.#round = this.#clock.setTimer(() => void this.#run(), Math.max(0, this.#nextMs - this.#clock.monotonicMs()));
  }

  /** One round: keeps what was heard, has feeds look, and tells readers. */
  async #run(): Promise<void> {
    this.#round = undefined;
    this.#isRunning = true;
    const begunMs = this.#clock.monotonicMs();
    let lookedMs = 0;
    if (!this.#heard.isEmpty) {
      const { change } = this.#heard;
      this.#heard = new Heard();
      const number = this.#journal.add(change);
      await Promise.all([...this.#feeds.values()].map((entry) => this.#look(entry.feed, entry.ready, number, change)));
      this.#settled = number;
      lookedMs = this.#clock.monotonicMs() - begunMs;
    }
    this.#tellAll();
    const { eventIntervalMs } = this.#settings;
    const shareMs = (this.#readers.size * 1_000) / MAX_EVENTS_PER_SECOND;
    this.#nextMs = begunMs + Math.max(eventIntervalMs, shareMs, Math.min(lookedMs / LOOKING_PART, MAX_INTERVAL_MS));
    this.#isRunning = false;
    if (!this.#heard.isEmpty) this.#runLater();
  }

  async #look(feed: Feed, ready: Promise<void>, number: number, change: Heard["change"]): Promise<void> {
    if (!feed.concerns(change)) return;
    try {
      await ready;
    } catch {
      // Whoever opened it was told.
      return;
    }
    try {
      await feed.look(number);
    } catch (error) {
      if (isQueueFSError(error, "invalid-argument")) this.#endReaders(feed);
      // The calls tell of a store that is away.
      else this.#clock.setTimer(() => this.#lookAgain(), RETRY_LOOK_MS);
    }
  }

  /** Has all feeds look though nothing was heard: a change that is none. */
  #lookAgain(): void {
    if (this.#readers.size === 0 || this.#isEnded) return;
    this.#heard.merge({ queues: new Set(), tasks: false });
    this.#runLater();
  }

  #tellAll(): void {
    // Most readers of a feed know the same.
    const texts = new Map<Feed, Map<number, string>>();
    for (const reader of [...this.#readers]) {
      if (reader.cursor === this.#settled || !reader.isReady) continue;
      const { feed, cursor } = reader;
      if (!this.#journal.knows(cursor)) {
        reader.tell(this.#gap(feed, "you were too slow to be told of every change"), this.#settled);
        continue;
      }
      const byCursor = texts.get(feed) ?? new Map<number, string>();
      texts.set(feed, byCursor);
      let text = byCursor.get(cursor);
      if (text === undefined) {
        text = textOfEvents(feed.since(cursor), this.#idOf(this.#settled));
        byCursor.set(cursor, text);
      }
      reader.tell(text, this.#settled);
    }
  }

  #endReaders(feed: Feed): void {
    for (const reader of [...this.#readers]) if (reader.feed === feed) reader.end();
  }

  #beatLater(): void {
    if (this.#beating !== undefined) return;
    this.#beating = this.#clock.setTimer(() => {
      this.#beating = undefined;
      if (this.#readers.size === 0 || this.#isEnded) return;
      for (const reader of this.#readers) reader.beat();
      // Hints are hints: a look now and then finds what none told of.
      this.#lookAgain();
      this.#beatLater();
    }, this.#settings.eventHeartbeatMs);
  }

  /** Ends all streams, and lets none begin. */
  end(): void {
    this.#isEnded = true;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    for (const timer of [this.#round, this.#beating, this.#lingering]) timer?.cancel();
    for (const reader of [...this.#readers]) reader.end();
  }
}

function isHints({ queue, under, task }: EventSelection): boolean {
  return queue === undefined && under === undefined && task === undefined;
}

function keyOf({ queue, under, task }: EventSelection, caller: Caller): string {
  if (task !== undefined) return `task ${task}`;
  if (queue !== undefined) return `queue ${queue}`;
  return under === undefined ? `hints ${caller.key}` : `under ${under}`;
}
