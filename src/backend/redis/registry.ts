/** Which life each queue name has. Lives are remembered here; the scripts tell when one is over. */

import { assert, queueNotFound } from "../../core/errors.ts";
import { makeMessageId, type QueueName } from "../../core/names.ts";
import { encodeQueueKeys, KEYS_PER_QUEUE, type Keys, keysOf, type QueueKey, queueKey } from "./keys.ts";
import { PROGRAMS } from "./programs.ts";
import { type EncodedKeys, encodeKeys, joinKeys, type ScriptRunner } from "./script-call.ts";

/** The keys that the plain scripts take after that of the session: those of the queue, then those of the namespace. */
const PLAIN_KEYS = {
  enqueue: [["queue", "pending"], []],
  enqueueOwned: [
    ["queue", "pending"],
    ["tasks", "taskCounts", "taskQueues"],
  ],
  dequeue: [
    ["queue", "pending", "bodies", "returned", "leases", "held"],
    ["taskCounts", "taskSearches"],
  ],
  ack: [["queue", "bodies", "states", "leases", "held"], []],
  ackOwned: [
    ["queue", "bodies", "states", "leases", "held"],
    ["tasks", "taskCounts", "taskQueues", "taskDue"],
  ],
} as const satisfies Record<string, readonly [readonly QueueKey[], readonly (keyof Keys)[]]>;

/** What there is a plain script for. */
export type PlainKind = keyof typeof PLAIN_KEYS;

/** Calls in a row that go the general way before a plain script is tried again. */
const MOST_DETOURS = 255;

/** One life of a queue: from its creation to its removal. */
export class QueueLife {
  readonly name: QueueName;
  readonly life: number;
  /** Id of the store it lives in. */
  readonly store: string;
  /** All its keys. */
  readonly keys: EncodedKeys;
  /** What the ids of its messages begin with. */
  readonly idPrefix: string;
  readonly #namespace: string;
  readonly #detours = new Map<PlainKind, { left: number; readonly next: number }>();
  readonly #plainKeys = new Map<PlainKind, EncodedKeys>();
  #snapshotKeys: EncodedKeys | undefined;

  constructor(namespace: string, store: string, name: QueueName, life: number) {
    this.#namespace = namespace;
    this.store = store;
    this.name = name;
    this.life = life;
    this.keys = { count: KEYS_PER_QUEUE, bytes: encodeQueueKeys(namespace, life) };
    this.idPrefix = makeMessageId(store, life, 0).slice(0, -1);
  }

  /** The keys that a snapshot reads. */
  get snapshotKeys(): EncodedKeys {
    this.#snapshotKeys ??= this.some("queue", "pending", "returned", "delayed", "leases", "later", "held");
    return this.#snapshotKeys;
  }

  /** Whether a plain script is worth a try. */
  mayBePlain(kind: PlainKind): boolean {
    const detours = this.#detours.get(kind);
    if (detours === undefined || detours.left === 0) return true;
    detours.left -= 1;
    return false;
  }

  /** Whether a plain script could do it: if not, some calls go the general way at once, the more the longer it lasts. */
  notePlain(kind: PlainKind, wasPlain: boolean): void {
    const next = wasPlain ? 0 : Math.min(MOST_DETOURS, (this.#detours.get(kind)?.next ?? 0) * 2 + 1);
    if (next > 0) this.#detours.set(kind, { left: next - 1, next });
    else this.#detours.delete(kind);
  }

  /** Its keys for a plain script: made once, since each call needs them. */
  plainKeys(kind: PlainKind): EncodedKeys {
    let keys = this.#plainKeys.get(kind);
    if (keys === undefined) {
      const [own, shared] = PLAIN_KEYS[kind];
      const all = keysOf(this.#namespace);
      keys = joinKeys([this.some(...own), encodeKeys(shared.map((name) => all[name]))]);
      this.#plainKeys.set(kind, keys);
    }
    return keys;
  }

  /** Some of its keys. */
  some(...parts: QueueKey[]): EncodedKeys {
    return encodeKeys(parts.map((part) => queueKey(this.#namespace, this.life, part)));
  }
}

/** What a listing of the registry gives. */
export interface RegistryPage {
  readonly change: string;
  readonly queues: readonly QueueLife[];
}

function texts(reply: unknown): string[] {
  assert(Array.isArray(reply), "a list is answered");
  return reply.map((item) => (Buffer.isBuffer(item) ? item.toString("utf8") : String(item)));
}

/** The queues of a namespace, as far as they are known here. */
export class Registry {
  /** Id of the store; another one after the server was emptied and the namespace opened anew. */
  store: string;
  readonly #runner: ScriptRunner;
  readonly #keys: Keys;
  readonly #namespace: string;
  readonly #lives = new Map<string, QueueLife>();
  readonly #listings = new Map<string, RegistryPage>();

  constructor(runner: ScriptRunner, namespace: string, keys: Keys, store: string) {
    this.#runner = runner;
    this.#namespace = namespace;
    this.#keys = keys;
    this.store = store;
  }

  /** What is known of a name. */
  known(name: QueueName): QueueLife | undefined {
    return this.#lives.get(name);
  }

  /** A life that turned out to be over is not known any longer. */
  forget(life: QueueLife): void {
    if (this.#lives.get(life.name) === life) this.#lives.delete(life.name);
  }

  /** A life that was just made or found. */
  add(name: QueueName, life: number): QueueLife {
    const known = this.#lives.get(name);
    if (known?.life === life && known.store === this.store) return known;
    const made = new QueueLife(this.#namespace, this.store, name, life);
    this.#lives.set(name, made);
    return made;
  }

  /** Looks up lives by name on the server; `undefined` for queues that do not exist. */
  async look(names: readonly QueueName[]): Promise<(QueueLife | undefined)[]> {
    const [store, ...lives] = texts(await this.#runner.read(PROGRAMS.resolve, encodeKeys([this.#keys.meta, this.#keys.queues]), names));
    this.#moveTo(store as string);
    return names.map((name, index) => (lives[index] === "" ? this.#drop(name) : this.add(name, Number(lives[index]))));
  }

  #drop(name: QueueName): undefined {
    this.#lives.delete(name);
  }

  #moveTo(store: string): void {
    if (store === "" || store === this.store) return;
    this.store = store;
    this.#lives.clear();
    this.#listings.clear();
  }

  /** The life of a queue, looked up where it is not known. @throws QueueFSError `queue-not-found` */
  async find(name: QueueName): Promise<QueueLife> {
    const known = this.#lives.get(name) ?? (await this.look([name]))[0];
    if (known === undefined) throw queueNotFound(name);
    return known;
  }

  /** A page of the queues at and under a path, in order of their names. */
  async list(under: QueueName | "", after: string, limit: number): Promise<RegistryPage> {
    const bytes = (text: string): Buffer => Buffer.from(text);
    const isAfter = (name: string): boolean => after === "" || Buffer.compare(bytes(name), bytes(after)) > 0;
    const from = under === "" ? (after === "" ? "-" : `(${after}`) : isAfter(`${under}/`) ? `[${under}/` : `(${after}`;
    // What lies under `a` is between `a/` and `a0`, since 0 follows the slash.
    const to = under === "" ? "+" : `(${under}0`;
    const first = under !== "" && isAfter(under) ? under : "";
    const keys = encodeKeys([this.#keys.meta, this.#keys.queues, this.#keys.names]);
    const [store, change, ...rest] = texts(await this.#runner.read(PROGRAMS.list, keys, [first, from, to, String(limit)]));
    this.#moveTo(store as string);
    const queues: QueueLife[] = [];
    for (let index = 0; index + 1 < rest.length; index += 2) queues.push(this.add(rest[index] as QueueName, Number(rest[index + 1])));
    return { change: change as string, queues };
  }

  /** All queues at and under a path, founded on one change number of the registry. Kept until {@link expire}. */
  async subtree(under: QueueName | ""): Promise<RegistryPage> {
    const kept = this.#listings.get(under);
    if (kept !== undefined) return kept;
    // Lists of many pages begin anew when the registry changes between two of them.
    for (;;) {
      const queues: QueueLife[] = [];
      let change: string | undefined;
      for (;;) {
        const page = await this.list(under, queues.at(-1)?.name ?? "", 5000);
        if (change !== undefined && page.change !== change) break;
        change = page.change;
        queues.push(...page.queues);
        if (page.queues.length < 5000) {
          const listing = { change, queues };
          if (this.#listings.size >= 100) this.#listings.clear();
          this.#listings.set(under, listing);
          return listing;
        }
      }
    }
  }

  /** The listing of a subtree is out of date. */
  expire(under: QueueName | ""): void {
    this.#listings.delete(under);
  }
}
