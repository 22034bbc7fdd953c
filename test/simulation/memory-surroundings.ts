/**
 * The memory backend behind a line on which every call waits twice, on its way there and back, in whatever order: a call may be refused,
 * overtaken, lost on the way, or answered into the void.
 */

import type { Backend } from "../../src/backend/contract.ts";
import { MemoryStore, openMemory } from "../../src/backend/memory/index.ts";
import { QueueFSError } from "../../src/core/errors.ts";
import type { Operation } from "./operations.ts";
import type { Ground, Move, Surroundings } from "./run.ts";

/** How long the store of a run remembers ids and requests, in milliseconds: some of it ends during a run. */
const REMEMBER_MS = 10_000;

interface Held {
  readonly operation: Operation | undefined;
  readonly client: number;
  readonly text: string;
  make(): Promise<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** How the call went; `undefined` before it was made. */
  went: (() => void) | undefined;
}

/** Holds every call of a backend until it is told to go on. */
export class Line {
  #held: Held[] = [];
  #count = 0;
  readonly #dead = new Set<number>();
  readonly #ground: Ground;

  constructor(ground: Ground) {
    this.#ground = ground;
  }

  /** The backend, with every call held. */
  hold(backend: Backend, client: number): Backend {
    return new Proxy(backend, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== "function") return value;
        if (property === "subscribe" || property === "close" || typeof property === "symbol") return value.bind(target);
        return (...values: unknown[]) => {
          return this.#hold(client, property, () => value.apply(target, values) as Promise<unknown>);
        };
      },
    });
  }

  #hold(client: number, name: string, make: () => Promise<unknown>): Promise<unknown> {
    if (this.#dead.has(client)) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      this.#count += 1;
      this.#held.push({
        operation: this.#ground.current(),
        client,
        text: `${name} ${this.#count}`,
        make,
        resolve,
        reject,
        went: undefined,
      });
    });
  }

  /** Ends a client for good: nothing that it still calls goes anywhere. */
  kill(client: number, arrive: (text: string) => boolean): void {
    this.#dead.add(client);
    this.drop(client, arrive);
  }

  /** Forgets the calls of a client that is gone; those on their way to the store may still arrive if `arrive` says so. */
  drop(client: number, arrive: (text: string) => boolean): void {
    for (const held of this.#held.filter((one) => one.client === client && one.went === undefined)) {
      if (!arrive(held.text)) continue;
      this.#ground.happens(held.operation);
      held.make().catch(() => {});
    }
    this.#held = this.#held.filter((one) => one.client !== client);
  }

  /** What can happen on the line now. */
  moves(faulty: boolean): Move[] {
    return this.#held.flatMap((held) => {
      const { text } = held;
      if (held.went !== undefined) {
        const arrives: Move = { weight: 4, text: `the answer of ${text} arrives`, make: () => this.#end(held, held.went as () => void) };
        const isLost: Move = {
          weight: 0.25,
          text: `the answer of ${text} is lost`,
          make: () => this.#end(held, () => held.reject(lost())),
        };
        return faulty ? [arrives, isLost] : [arrives];
      }
      const moves: Move[] = [{ weight: 4, text: `${text} reaches the store`, make: () => this.#reach(held) }];
      if (faulty) {
        moves.push(
          {
            weight: 0.2,
            text: `${text} is refused`,
            make: () => this.#end(held, () => held.reject(new QueueFSError("store-unreachable", "nothing was sent"))),
          },
          { weight: 0.2, text: `${text} is lost on its way`, make: () => this.#end(held, () => held.reject(lost())) },
        );
      }
      return moves;
    });
  }

  async #reach(held: Held): Promise<void> {
    this.#ground.happens(held.operation);
    await held.make().then(
      (value) => (held.went = () => held.resolve(value)),
      (error: unknown) => (held.went = () => held.reject(error)),
    );
  }

  #end(held: Held, how: () => void): void {
    this.#held = this.#held.filter((one) => one !== held);
    how();
  }
}

function lost(): QueueFSError {
  return new QueueFSError("outcome-unknown", "the connection broke");
}

/** A memory store behind such a line. */
export function memorySurroundings(ground: Ground): Surroundings {
  const { clock, random, choice, tell } = ground;
  const store = new MemoryStore(random);
  const line = new Line(ground);
  const opened: Backend[] = [];
  return {
    span: { leasesMs: [1_000, 2_000, 5_000, 60_000, 600_000], delaysMs: [1_000, 3_000], isExact: true, sendsAgain: false },
    isTimed: true,
    isTold: true,
    mostUnknown: 12,
    rememberMs: REMEMBER_MS,
    async open(client) {
      const backend = await openMemory({
        store,
        clock,
        random,
        rememberMs: REMEMBER_MS,
        sweepIntervalMs: 3_600_000,
        onError: (error) => {
          throw error;
        },
      });
      opened.push(backend);
      return line.hold(backend, client);
    },
    crash(client) {
      line.drop(client, (text) => {
        const arrives = choice.fraction() < 0.5;
        tell(`${text} ${arrives ? "still reaches" : "never reaches"} the store`);
        return arrives;
      });
    },
    moves: (faulty) => line.moves(faulty),
    async end() {
      for (const backend of opened) await backend.close();
    },
  };
}
