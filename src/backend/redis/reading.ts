/** What only looks: statuses of one moment, marks, statistics, listings of messages. */

import { assert, QueueFSError, queueNotFound, quote } from "../../core/errors.ts";
import type {
  DeadLetter,
  ListedMessage,
  Mark,
  MarkAnswer,
  Message,
  Page,
  PageOptions,
  QueueSelection,
  QueueStatus,
  Statistics,
} from "../../core/message.ts";
import type { QueueName } from "../../core/names.ts";
import { checkPage } from "../../core/request.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import type { Argument } from "./client.ts";
import { readEntry } from "./dequeue-part.ts";
import type { Keys } from "./keys.ts";
import { messageOf, readLetter } from "./letter.ts";
import { PROGRAMS, type Program } from "./programs.ts";
import { QueueLife, type Registry } from "./registry.ts";
import { type EncodedKeys, encodeKeys, joinKeys, type ScriptRunner } from "./script-call.ts";

/** Bytes of messages after which a page ends. */
export const PAGE_BYTES = 8 * 1024 * 1024;
/** How often a snapshot begins anew because queues were made or removed meanwhile, before the store counts as busy. */
const MOST_ATTEMPTS = 100;
/** What the answer of a snapshot begins with. */
const SNAPSHOT = { done: 0, changed: 1, missing: 2 } as const;
const CURSOR = /^(0|[1-9][0-9]{0,14})$/;
const PLACE = /^([0-9a-z]{8})\.([0-9]{1,15})\.([0-9]{1,15})\.([0-9]{1,15})$/;

/** The answer of a script that answers with bytes. */
export function expectBytes(reply: unknown): ByteReader {
  assert(Buffer.isBuffer(reply), "a script answers with bytes");
  return new ByteReader(reply);
}

/** Answers calls that change nothing. */
export class Reading {
  readonly #runner: ScriptRunner;
  readonly #registry: Registry;
  readonly #namespace: string;
  readonly #metaKey: EncodedKeys;
  readonly #tasksKey: EncodedKeys;

  constructor(runner: ScriptRunner, registry: Registry, namespace: string, keys: Keys) {
    this.#runner = runner;
    this.#registry = registry;
    this.#namespace = namespace;
    this.#metaKey = encodeKeys([keys.meta]);
    this.#tasksKey = encodeKeys([keys.tasks]);
  }

  #snapshot(store: string, lives: readonly QueueLife[], change: string, want: Argument): Promise<unknown> {
    return this.#runner.read(PROGRAMS.snapshot, joinKeys([this.#metaKey, ...lives.map((life) => life.snapshotKeys)]), [
      store,
      change,
      want,
    ]);
  }

  /** One snapshot of a selection, whose queues it gives to `read` one after the other. */
  async #select<Item>(
    selection: QueueSelection,
    want: "status" | "mark",
    read: (reader: ByteReader, life: QueueLife) => Item,
  ): Promise<Item[]> {
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const { lives, change } =
        "under" in selection ? await this.#subtree(selection.under) : { lives: await this.#named(selection.queues), change: "" };
      const reader = expectBytes(await this.#snapshot(this.#registry.store, lives, change, want));
      const status = reader.u8();
      if (status === SNAPSHOT.done) return lives.map((life) => read(reader, life));
      if (status === SNAPSHOT.missing) this.#registry.forget(lives[reader.u32()] as QueueLife);
      if ("under" in selection) this.#registry.expire(selection.under);
    }
    throw new QueueFSError(
      "store-busy",
      `queues were made and removed so fast that ${MOST_ATTEMPTS} snapshots were out of date; try again`,
    );
  }

  async #subtree(under: QueueName | ""): Promise<{ lives: readonly QueueLife[]; change: string }> {
    const { queues, change } = await this.#registry.subtree(under);
    return { lives: queues, change };
  }

  async #named(names: readonly QueueName[]): Promise<readonly QueueLife[]> {
    let lives = names.map((name) => this.#registry.known(name));
    if (lives.includes(undefined)) lives = await this.#registry.look(names);
    return lives.map((life, index) => {
      if (life === undefined) throw queueNotFound(names[index] as string);
      return life;
    });
  }

  /** The status of several queues, of one moment. */
  statuses(selection: QueueSelection): Promise<QueueStatus[]> {
    return this.#select(selection, "status", readStatus);
  }

  /** This moment of several queues. */
  async mark(selection: QueueSelection): Promise<Mark> {
    const queues = await this.#select(selection, "mark", (reader, life) => {
      readStatus(reader, life);
      const clears = reader.u48();
      return { queue: life.name, place: `${life.store}.${life.life}.${clears}.${reader.u48()}` };
    });
    return { queues };
  }

  /** Whether all that was enqueued before a mark is settled. */
  async reached(mark: Mark): Promise<MarkAnswer> {
    const wanted = new ByteWriter(mark.queues.length * 12 + 1);
    let store = this.#registry.store;
    const lives = mark.queues.map(({ queue, place }) => {
      const [, ofStore, life, clears, sequence] = PLACE.exec(place) ?? [];
      if (ofStore === undefined)
        throw new QueueFSError(
          "invalid-argument",
          `mark of queue ${quote(queue)} has the malformed place ${quote(place)}; pass a mark that this store gave`,
        );
      wanted.u48(Number(clears));
      wanted.u48(Number(sequence));
      store = ofStore;
      return new QueueLife(this.#namespace, ofStore, queue, Number(life));
    });
    const mixed = lives.find((life) => life.store !== store);
    if (mixed !== undefined) throw queueNotFound(mixed.name);
    if (lives.length === 0) return { reached: true, statuses: [] };
    const reader = expectBytes(await this.#snapshot(store, lives, "", wanted.view()));
    if (reader.u8() === SNAPSHOT.missing) throw queueNotFound(lives[reader.u32()]?.name ?? "");
    let reached = true;
    const statuses = lives.map((life) => {
      const status = readStatus(reader, life);
      if (reader.u8() === 0) reached = false;
      return status;
    });
    return { reached, statuses };
  }

  /** Asks a script about one queue, which it answers with nothing when this life of the queue is over. */
  async #ask(
    name: QueueName,
    program: Program,
    keys: (life: QueueLife) => EncodedKeys,
    values: readonly Argument[],
  ): Promise<{ reader: ByteReader; life: QueueLife }> {
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const life = await this.#registry.find(name);
      const reply = await this.#runner.read(program, keys(life), [life.store, ...values]);
      if (reply !== null) return { reader: expectBytes(reply), life };
      this.#registry.forget(life);
    }
    throw queueNotFound(name);
  }

  /** Counts, ages and settings of a queue. */
  async statistics(name: QueueName): Promise<Statistics> {
    const keys = (life: QueueLife): EncodedKeys =>
      life.some("queue", "pending", "bodies", "returned", "delayed", "later", "leases", "held", "dead");
    const { reader } = await this.#ask(name, PROGRAMS.statistics, keys, []);
    const next = (): number => reader.u48();
    const counts = {
      pending: next(),
      processing: next(),
      delayed: next(),
      dead: next(),
      enqueued: next(),
      delivered: next(),
      acked: next(),
      returned: next(),
      deadLettered: next(),
      cleared: next(),
      createdAtMs: next(),
      settings: { maxDeliveries: next() },
    };
    const [oldestPending, oldestProcessing] = [next(), next()];
    return {
      ...counts,
      ...(oldestPending > 0 ? { oldestPendingMs: oldestPending - 1 } : {}),
      ...(oldestProcessing > 0 ? { oldestProcessingMs: oldestProcessing - 1 } : {}),
    };
  }

  /** How long until a dequeue could find something merely because time passed. */
  async nextDue(name: QueueName): Promise<number | undefined> {
    const keys = (life: QueueLife): EncodedKeys => life.some("queue", "pending", "returned", "delayed", "leases");
    const { reader } = await this.#ask(name, PROGRAMS.nextDue, keys, []);
    return reader.isAtEnd ? undefined : reader.u48();
  }

  /** The message that a dequeue would hand out now. */
  async peek(name: QueueName): Promise<Message | undefined> {
    const keys = (life: QueueLife): EncodedKeys =>
      joinKeys([life.some("queue", "pending", "bodies", "states", "returned", "delayed", "leases"), this.#tasksKey]);
    const { reader, life } = await this.#ask(name, PROGRAMS.peek, keys, []);
    if (reader.isAtEnd) return undefined;
    const deliveryCount = reader.u32();
    return messageOf(readEntry(reader, reader.left, life), deliveryCount);
  }

  /** A page of unacked messages. */
  async messages(name: QueueName, options?: PageOptions): Promise<Page<ListedMessage>> {
    const { after, limit } = checkPage(options);
    const place = new ByteWriter(6);
    if (after !== undefined) place.u48(parseCursor(after));
    const keys = (life: QueueLife): EncodedKeys => life.some("queue", "pending", "bodies", "states", "returned", "later", "held");
    const { reader, life } = await this.#ask(name, PROGRAMS.messages, keys, [place.view(), String(limit), String(PAGE_BYTES)]);
    const hasMore = reader.u8() === 1;
    const items: ListedMessage[] = [];
    let last = 0;
    while (!reader.isAtEnd) {
      const state = reader.u8() === 1 ? "processing" : "pending";
      const deliveryCount = reader.u32();
      const entry = readEntry(reader, reader.u32(), life);
      items.push({ ...messageOf(entry, deliveryCount), state });
      last = entry.sequence;
    }
    return hasMore ? { items, next: String(last) } : { items };
  }

  /** A page of dead letters. */
  async deadLetters(name: QueueName, options?: PageOptions): Promise<Page<DeadLetter>> {
    const { after, limit } = checkPage(options);
    const from = after === undefined ? "0" : String(parseCursor(after));
    const keys = (life: QueueLife): EncodedKeys => joinKeys([life.some("queue", "dead", "graves"), this.#tasksKey]);
    const { reader, life } = await this.#ask(name, PROGRAMS.deadLetters, keys, [from, String(limit), String(PAGE_BYTES)]);
    const hasMore = reader.u8() === 1;
    const items: DeadLetter[] = [];
    let last = 0;
    while (!reader.isAtEnd) {
      last = reader.u48();
      const sequence = reader.u48();
      const isOwned = reader.u8() === 1;
      items.push(readLetter(reader.part(reader.u32()), sequence, life, isOwned));
    }
    return hasMore ? { items, next: String(last) } : { items };
  }
}

function readStatus(reader: ByteReader, life: QueueLife): QueueStatus {
  const pending = reader.u48();
  return { queue: life.name, pending, processing: reader.u48() };
}

/** The number that a page of a listing went to. @throws QueueFSError `invalid-argument` */
export function parseCursor(after: string): number {
  if (CURSOR.test(after) && Number(after) < 2 ** 48) return Number(after);
  throw new QueueFSError(
    "invalid-argument",
    `after ${quote(after)} is not the next of a page of this listing; pass what the page before gave`,
  );
}
