/** Who takes part: one queue under a name, opened afresh for each measurement, with the few things that all of them can do. */

/** Bytes of each message, unless a measure says otherwise. */
export const PAYLOAD_BYTES = 256;
/** The payload as bytes, and as the text that queues get which keep text. */
export const PAYLOAD: Buffer = Buffer.alloc(PAYLOAD_BYTES, "queue ");
/** The same as text. */
export const PAYLOAD_TEXT: string = PAYLOAD.toString("latin1");

/** When a load is over: after a time, or after so many calls. */
export type Extent = { readonly durationMs: number } | { readonly calls: number };

/** What a measurement asks for: so many callers at once, each making one call after the other until it is over. */
export class Load {
  /** How many callers make calls at once. */
  readonly callers: number;
  /** Calls done. */
  done = 0;
  /** How long each call took, in milliseconds; only where there is a single caller. */
  readonly latenciesMs: number[] = [];
  readonly #extent: Extent;
  #begunMs = 0;
  #lastMs = 0;
  #endedMs = 0;

  constructor(callers: number, extent: Extent) {
    this.callers = callers;
    this.#extent = extent;
  }

  /** Starts the clock: what a contender prepares before does not count. */
  begin(): void {
    this.#begunMs = performance.now();
    this.#lastMs = this.#begunMs;
  }

  /** Asked before each call: whether no more is to be made. */
  isOver(): boolean {
    const nowMs = performance.now();
    if (this.callers === 1 && this.done > this.latenciesMs.length) this.latenciesMs.push(nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    return "calls" in this.#extent ? this.done >= this.#extent.calls : nowMs - this.#begunMs >= this.#extent.durationMs;
  }

  /** Stops the clock. */
  end(): void {
    this.#endedMs = performance.now();
  }

  /** Calls per second. */
  get perSecond(): number {
    return (this.done / (this.#endedMs - this.#begunMs)) * 1_000;
  }
}

/** One queue, open. A cycle is an enqueue, a dequeue and an ack. */
export interface Contest {
  /** Enqueues until the load is over. */
  enqueue(load: Load): Promise<void>;
  /** Makes cycles until the load is over. */
  cycle(load: Load): Promise<void>;
  /** Stores messages as fast as it can. */
  fill(count: number): Promise<void>;
  /** Dequeues and acks with so many callers until nothing is left; answers how many. */
  drain(callers: number): Promise<number>;
  /** Reads how many messages are pending and in processing. */
  status(): Promise<unknown>;
  close(): Promise<void>;
}

/** What a contender is in a comparison. */
export type Role =
  /** QueueFS. */
  | "queuefs"
  /** What the store can do when nothing but its statements is run. */
  | "limit"
  /** One transaction per call. */
  | "per-call"
  /** Another queue that people use. */
  | "peer";

/** One who takes part. */
export interface Contender {
  /** Stands in tables. */
  readonly name: string;
  readonly role: Role;
  /** What a crash of the power may take: `full` nothing, `normal` the last commits. */
  readonly durability?: "full" | "normal";
  /** The only measure it takes part in, if it does not in all. */
  readonly only?: string;
  /** The deepest queue at which its status is read, where that takes long; 0 where it has none. */
  readonly deepestStatus?: number;
  /** Whether it does without SQLite's write-ahead log. */
  readonly isWithoutLog?: boolean;
  /** Whether it takes so long that it takes no part in a quick run. */
  readonly isSlow?: boolean;
  /** How many messages a drain begins with: fewer where it is slow. */
  readonly drainMessages: number;
  /** Opens it, empty. @param folder a fresh one, for files */
  open(folder: string): Promise<Contest>;
}

/** Lets callers run at once, each awaiting one call after the other. */
export async function runCallers(load: Load, call: () => unknown): Promise<void> {
  const one = async (): Promise<void> => {
    while (!load.isOver()) {
      await call();
      load.done += 1;
    }
  };
  load.begin();
  await Promise.all(Array.from({ length: load.callers }, one));
  load.end();
}

/** Lets callers take messages until there are no more. @param take takes one and acks it; false when there was none */
export async function drainWith(callers: number, take: () => Promise<boolean> | boolean): Promise<number> {
  let taken = 0;
  const one = async (): Promise<void> => {
    while (await take()) taken += 1;
  };
  await Promise.all(Array.from({ length: callers }, one));
  return taken;
}
