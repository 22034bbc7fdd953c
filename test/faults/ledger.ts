/** What a process told of its work before it was killed, and what must therefore be found in the store. */

import type { Backend } from "../../src/backend/contract.ts";
import type { QueueName } from "../../src/core/names.ts";

/** One call, told when it was made and again when it was answered. */
export interface LedgerEvent {
  readonly number: number;
  readonly answered: boolean;
  readonly work: {
    readonly kind: "enqueue" | "dequeue" | "ack" | "forward" | "return" | "give-up";
    readonly queue: QueueName;
    /** The messages it is about; of a dequeue only with the answer. */
    readonly names: readonly string[];
    /** Of a forward. */
    readonly to?: QueueName;
    readonly followUp?: string;
  };
}

/** The payload of a message: its name, and bytes that only this name gives, of a length that it decides. */
export function payloadOf(name: string): Uint8Array {
  let word = 2_166_136_261;
  for (const character of name) word = Math.imul(word ^ character.charCodeAt(0), 16_777_619) >>> 0;
  const rest = Array.from({ length: word % 3_000 }, (_none, index) => (word >>> (index % 24)) & 0xff);
  return Buffer.concat([Buffer.from(`${name}\0`), Buffer.from(rest)]);
}

/** The name of a message, from its payload. */
export function nameOf(payload: Uint8Array): string {
  return Buffer.from(payload.subarray(0, payload.indexOf(0))).toString();
}

type Place = "absent" | "removed" | "dead" | QueueName;

interface Entry {
  /** Where it is for certain, unless a call is open. */
  place: Place;
  /** Where an open call may have put it. */
  maybe: Place | undefined;
  /** The message that takes its place if, and only if, that call happened. */
  followUp: string | undefined;
  deliveries: number;
}

/** What must be true of the messages of processes that were killed. */
export class Ledger {
  readonly #entries = new Map<string, Entry>();
  #openDequeues = 0;

  /** Takes in what one process told, in order. */
  read(events: readonly LedgerEvent[]): void {
    const answered = new Set(events.filter((event) => event.answered).map(({ number }) => number));
    for (const event of events) {
      // An answer stands for the whole call; a call without one stays open.
      if (!event.answered && answered.has(event.number)) continue;
      this.#take(event);
    }
  }

  #take({ work, answered }: LedgerEvent): void {
    if (work.kind === "dequeue" && !answered) this.#openDequeues += 1;
    for (const name of work.names) {
      const entry = this.#entry(name);
      if (work.kind === "dequeue") {
        // What was delivered was stored, also when the answer to its enqueue did not come any more.
        if (entry.place === "absent") entry.place = work.queue;
        // And a call of the delivery before, if it stayed open, did not remove it, nor store what it would have forwarded.
        Object.assign(entry, { maybe: undefined, followUp: undefined });
        entry.deliveries += 1;
      } else {
        const place = this.#placeAfter(work);
        if (answered) entry.place = place;
        else entry.maybe = place;
      }
      if (work.followUp !== undefined) {
        this.#entry(work.followUp)[answered ? "place" : "maybe"] = work.to as QueueName;
        if (!answered) entry.followUp = work.followUp;
      }
    }
  }

  #placeAfter({ kind, queue }: LedgerEvent["work"]): Place {
    if (kind === "ack" || kind === "forward") return "removed";
    return kind === "give-up" ? "dead" : queue;
  }

  #entry(name: string): Entry {
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    const entry: Entry = { place: "absent", maybe: undefined, followUp: undefined, deliveries: 0 };
    this.#entries.set(name, entry);
    return entry;
  }

  /** Messages that the ledger knows of. */
  get size(): number {
    return this.#entries.size;
  }

  /** Recovers, looks over, and empties the queues; answers everything that is not as it must be. */
  async settle(backend: Backend, queues: readonly QueueName[]): Promise<string[]> {
    const faults: string[] = [];
    while ((await backend.recover()).more);
    for (const { severity, check, message } of await backend.inspect()) if (severity === "error") faults.push(`${check}: ${message}`);
    const found = new Map<string, Place>();
    for (const queue of queues) {
      const { pending, processing } = await backend.status(queue);
      if (processing > 0) faults.push(`${processing} messages of ${queue} are still in the hands of the dead`);
      const drained = await this.#drain(backend, queue, found, faults);
      if (drained !== pending) faults.push(`the status of ${queue} said ${pending} pending, but ${drained} were delivered`);
      await this.#buried(backend, queue, found, faults);
    }
    for (const [name, entry] of this.#entries) this.#compare(name, entry, found, faults);
    for (const name of found.keys()) if (!this.#entries.has(name)) faults.push(`${name} was found, but nobody enqueued it`);
    this.#entries.clear();
    this.#openDequeues = 0;
    return faults;
  }

  async #drain(backend: Backend, queue: QueueName, found: Map<string, Place>, faults: string[]): Promise<number> {
    let count = 0;
    for (;;) {
      const messages = await backend.dequeue(queue, { limit: 1_000 });
      if (messages.length === 0) return count;
      for (const { data, deliveryCount } of messages) {
        const name = nameOf(data);
        count += 1;
        if (found.has(name)) faults.push(`${name} was delivered twice`);
        if (!Buffer.from(payloadOf(name)).equals(data)) faults.push(`the bytes of ${name} have changed`);
        // A release takes a delivery back, and an open dequeue may have begun one more.
        const most = (this.#entries.get(name)?.deliveries ?? 0) + this.#openDequeues + 1;
        if (deliveryCount < 1 || deliveryCount > most)
          faults.push(`${name} counts ${deliveryCount} deliveries, at most ${most} were begun`);
        found.set(name, queue);
      }
      const answers = await backend.ack(
        queue,
        messages.map(({ receipt }) => ({ receipt })),
      );
      if (answers.some(({ outcome }) => outcome !== "acked")) faults.push(`an ack of the survivor in ${queue} was stale`);
    }
  }

  async #buried(backend: Backend, queue: QueueName, found: Map<string, Place>, faults: string[]): Promise<void> {
    for (;;) {
      const { items } = await backend.deadLetters(queue, { limit: 1_000 });
      if (items.length === 0) return;
      for (const { data } of items) {
        if (found.has(nameOf(data))) faults.push(`${nameOf(data)} is a dead letter and was delivered as well`);
        found.set(nameOf(data), "dead");
      }
      await backend.drop(
        queue,
        items.map(({ id }) => id),
      );
    }
  }

  #compare(name: string, { place, maybe, followUp }: Entry, found: ReadonlyMap<string, Place>, faults: string[]): void {
    const actual = found.get(name) ?? (place === "removed" || maybe === "removed" ? "removed" : "absent");
    if (actual !== place && actual !== maybe)
      faults.push(`${name} is ${actual}, but must be ${place}${maybe === undefined ? "" : ` or ${maybe}`}`);
    if (followUp === undefined) return;
    // Another process may have found the follow-up, and worked it off.
    const followed = found.has(followUp) || this.#entry(followUp).place !== "absent";
    if ((actual === "removed") !== followed)
      faults.push(`${name} is ${actual}, and its follow-up ${followed ? "exists" : "does not exist"}: one step was torn in two`);
  }
}
