/** The limit in memory: a ring of pending messages and a map of those in processing, awaited as a queue is, and nothing around them. */

import { type Contender, type Contest, drainWith, PAYLOAD, runCallers } from "../contender.ts";

/** Places that the ring begins with; a power of two. */
const FIRST_PLACES = 1_024;

/** The ring and the map. */
export const ringAndMap: Contender = {
  name: "ring and map",
  role: "limit",
  drainMessages: 200_000,
  open: async () => openRing(),
};

class RingAndMap {
  #places: (Uint8Array | undefined)[] = new Array<Uint8Array | undefined>(FIRST_PLACES).fill(undefined);
  #head = 0;
  #tail = 0;
  readonly #held = new Map<number, Uint8Array>();

  async enqueue(data: Uint8Array): Promise<number> {
    if (this.#tail - this.#head === this.#places.length) this.#grow();
    this.#places[this.#tail & (this.#places.length - 1)] = data;
    this.#tail += 1;
    return this.#tail;
  }

  async dequeue(): Promise<{ readonly receipt: number; readonly data: Uint8Array } | undefined> {
    if (this.#head === this.#tail) return undefined;
    const place = this.#head & (this.#places.length - 1);
    const data = this.#places[place] as Uint8Array;
    this.#places[place] = undefined;
    this.#head += 1;
    this.#held.set(this.#head, data);
    return { receipt: this.#head, data };
  }

  async ack(receipt: number): Promise<boolean> {
    return this.#held.delete(receipt);
  }

  async status(): Promise<{ readonly pending: number; readonly processing: number }> {
    return { pending: this.#tail - this.#head, processing: this.#held.size };
  }

  #grow(): void {
    const { length } = this.#places;
    const grown = new Array<Uint8Array | undefined>(length * 2).fill(undefined);
    for (let sequence = this.#head; sequence < this.#tail; sequence += 1) {
      grown[sequence & (length * 2 - 1)] = this.#places[sequence & (length - 1)];
    }
    this.#places = grown;
  }
}

function openRing(): Contest {
  const ring = new RingAndMap();
  const take = async (): Promise<boolean> => {
    const message = await ring.dequeue();
    return message !== undefined && (await ring.ack(message.receipt));
  };
  return {
    enqueue: (load) => runCallers(load, () => ring.enqueue(PAYLOAD)),
    cycle: (load) =>
      runCallers(load, async () => {
        await ring.enqueue(PAYLOAD);
        if (!(await take())) throw new Error("a message that was enqueued could not be taken");
      }),
    fill: async (count) => {
      for (let left = count; left > 0; left -= 1) await ring.enqueue(PAYLOAD);
    },
    drain: (callers) => drainWith(callers, take),
    status: () => ring.status(),
    close: async () => {},
  };
}
