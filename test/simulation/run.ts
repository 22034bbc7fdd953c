/** One run: clients, their calls, faults and time, all chosen by one seed, and every answer held against the model. */

import { createHash } from "node:crypto";
import type { Backend } from "../../src/backend/contract.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { isComplete } from "../../src/core/message.ts";
import { ManualClock, ModelStore, SeededRandom } from "../../src/testing/index.ts";
import { Linearization } from "./linearization.ts";
import { Knowledge, type Operation, Operations, QUEUES, type Span } from "./operations.ts";
import { SimulationClock } from "./simulation-clock.ts";

/** Something that the surroundings of a store can do next. */
export interface Move {
  readonly weight: number;
  readonly text: string;
  make(): void | Promise<void>;
}

/** A store and all that can go wrong around it. */
export interface Surroundings {
  readonly span: Span;
  /** Whether the store has the clock of the run. */
  readonly isTimed: boolean;
  /** Whether calls whose outcome is unknown may still happen, after their callers were told so. */
  hasLate?(): boolean;
  /** Whether it tells of each call when it reaches the store. */
  readonly isTold: boolean;
  /** Unknown outcomes of a run after which no more faults are made: each doubles what may have happened. */
  readonly mostUnknown: number;
  /** How long calls remember ids and requests, in milliseconds. */
  readonly rememberMs: number;
  /** Opens a client. */
  open(client: number): Promise<Backend>;
  /** Drops a client without a word. Its calls in the air are never answered. */
  crash(client: number): void;
  /** What can happen now. @param faulty whether faults may be among it */
  moves(faulty: boolean): readonly Move[];
  /** Takes back faults that are still to come. */
  calm?(): void;
  /** Which client has died by itself and was not opened anew yet. */
  died?(): number | undefined;
  /** Lets go of everything. */
  end(): Promise<void>;
}

/** What surroundings are made of. */
export interface Ground {
  readonly clock: SimulationClock;
  /** Shared by everything that draws by chance within the product. */
  readonly random: SeededRandom;
  /** Draws what the surroundings choose. */
  readonly choice: SeededRandom;
  readonly seed: number;
  readonly tell: (line: string) => void;
  /** The operation that is being called right now, to be given to `happens` later. */
  readonly current: () => Operation | undefined;
  /** Says that an operation reaches the store now. */
  readonly happens: (operation: Operation | undefined) => void;
}

/** How a run goes. */
export interface RunOptions {
  readonly clients?: number;
  readonly calls?: number;
  readonly inAir?: number;
  /** Whether nothing goes wrong but what is put in between. */
  readonly isCalm?: boolean;
  /** Put between the clients and their store: something deliberately broken, to see that it is found. */
  readonly between?: (backend: Backend, ground: Ground) => Backend;
}

/** What a run tells. */
export interface RunReport {
  readonly seed: number;
  /** SHA-256 of all that happened, in order. */
  readonly hash: string;
  readonly lines: readonly string[];
  readonly calls: number;
  readonly unknown: number;
  readonly refused: number;
  readonly crashes: number;
}

/** Errors that say that nothing happened. */
const NOTHING_HAPPENED: ReadonlySet<string> = new Set(["store-busy", "store-unreachable", "store-full", "store-failed", "closed"]);
const MOST_QUIET_MOVES = 4_000;
/** Longer than any lease or delay of a run, in milliseconds, and less than the hour after which clients sweep by themselves. */
const DRAIN_MS = 700_000;
const TIMES: ReadonlySet<string> = new Set(["enqueuedAtMs", "diedAtMs", "createdAtMs", "oldestPendingMs", "oldestProcessingMs"]);

interface Flight {
  readonly operation: Operation;
  readonly client: number;
  isDropped: boolean;
}

/** A run that failed, with the seed that repeats it and what led there. */
export class RunFailure extends Error {
  readonly seed: number;
  /** All that happened before. */
  readonly lines: readonly string[];

  constructor(seed: number, lines: readonly string[], cause: unknown) {
    super(
      `${cause instanceof Error ? cause.message : String(cause)}\nQUEUEFS_SIMULATION_SEED=${seed}\nthe last steps:\n  ${lines.slice(-30).join("\n  ")}`,
      { cause },
    );
    this.seed = seed;
    this.lines = lines;
  }
}

class Run {
  readonly lines: string[] = [];
  readonly #hash = createHash("sha256");
  readonly #seed: number;
  readonly #options: RunOptions;
  readonly #choice: SeededRandom;
  readonly #ground: Ground;
  readonly #surroundings: Surroundings;
  readonly #linearization: Linearization;
  readonly #operations: Operations;
  readonly #knowledge = new Knowledge();
  readonly #flights = new Set<Flight>();
  /** Operations of unknown outcome that may still happen. */
  readonly #late = new Set<Operation>();
  readonly #clients: Backend[] = [];
  readonly #isTold: boolean;
  #current: Operation | undefined;
  #failure: unknown;
  #calls = 0;
  #unknown = 0;
  #refused = 0;
  #crashes = 0;

  constructor(seed: number, surround: (ground: Ground) => Surroundings, options: RunOptions) {
    this.#seed = seed;
    this.#options = options;
    this.#choice = new SeededRandom(seed);
    const clock = new SimulationClock();
    this.#ground = {
      clock,
      random: new SeededRandom(seed + 1),
      choice: new SeededRandom(seed + 2),
      seed,
      tell: (line) => this.#tell(line),
      current: () => this.#current,
      happens: (operation) => {
        if (operation !== undefined && this.#isTold) this.#linearization.happens(operation);
      },
    };
    this.#surroundings = surround(this.#ground);
    const { span, isTimed, rememberMs, isTold } = this.#surroundings;
    // What is put in between may make several calls of one, so only a search can judge it.
    this.#isTold = isTold && options.between === undefined;
    // Where time is the server's it stands still for the model: nothing in such runs ends by time.
    this.#linearization = new Linearization(new ModelStore(isTimed ? clock : new ManualClock(), rememberMs), isTimed, this.#isTold);
    this.#operations = new Operations(new SeededRandom(seed + 3), this.#knowledge, span);
  }

  async play(): Promise<RunReport> {
    try {
      await this.#begin();
      await this.#work();
      await this.#drain();
    } finally {
      await this.#surroundings.end();
    }
    if (this.#failure !== undefined) throw this.#failure;
    return {
      seed: this.#seed,
      hash: this.#hash.digest("hex"),
      lines: this.lines,
      calls: this.#calls,
      unknown: this.#unknown,
      refused: this.#refused,
      crashes: this.#crashes,
    };
  }

  async #begin(): Promise<void> {
    for (let client = 0; client < (this.#options.clients ?? 3); client += 1) await this.#open(client);
    for (const queue of QUEUES) {
      this.#call(0, this.#operations.createQueue(queue, [1, 3, 4, 20][Math.floor(this.#choice.fraction() * 4)] as number));
      await this.#untilQuiet();
    }
  }

  async #open(client: number): Promise<void> {
    const backend = await this.#surroundings.open(client);
    this.#clients[client] = this.#options.between?.(backend, this.#ground) ?? backend;
  }

  async #work(): Promise<void> {
    const calls = this.#options.calls ?? 60;
    while (this.#calls < calls) {
      const moves = [...this.#surroundings.moves(this.#isFaulty), ...this.#ownMoves()];
      if (moves.length > 0) await this.#make(moves);
      else await this.#pass(this.#ground.clock.nextTimerMs ?? 1);
    }
    await this.#untilQuiet();
  }

  /** What is left comes back and is taken, by the model as by the store: nothing is lost, and nothing is held for ever. */
  async #drain(): Promise<void> {
    if (this.#surroundings.isTimed) await this.#pass(DRAIN_MS);
    this.#call(0, this.#operations.recover());
    await this.#untilQuiet();
    for (const queue of QUEUES) {
      for (let turn = 0; turn < 60; turn += 1) {
        const known = this.#knowledge.receipts.length;
        this.#call(turn % this.#clients.length, this.#operations.dequeue(queue, 50));
        await this.#untilQuiet();
        const taken = this.#knowledge.receipts.slice(known).filter((one) => one.queue === queue);
        if (taken.length === 0) break;
        this.#call(
          0,
          this.#operations.ack(
            queue,
            taken.map((one) => one.receipt),
          ),
        );
        await this.#untilQuiet();
      }
    }
    const backend = this.#clients[0] as Backend;
    const statuses = backend.statuses({ under: "" });
    this.#call(0, this.#operations.statuses());
    await this.#untilQuiet(statuses);
    // Without time, deliveries in the hands of nobody stay; with it nothing can.
    if (this.#surroundings.isTimed && !isComplete(await statuses)) throw new Error(`not drained: ${JSON.stringify(await statuses)}`);
  }

  get #isFaulty(): boolean {
    return this.#options.isCalm !== true && this.#unknown < this.#surroundings.mostUnknown;
  }

  #ownMoves(): Move[] {
    const { isTimed } = this.#surroundings;
    const inAir = [...this.#flights].filter((flight) => !flight.isDropped);
    const moves: Move[] = [];
    const most = this.#options.inAir ?? 3;
    if (inAir.length < most) {
      moves.push({
        weight: 12,
        text: "",
        make: () => this.#call(Math.floor(this.#choice.fraction() * this.#clients.length), this.#operations.next()),
      });
    }
    if (inAir.length <= 2) {
      const spans = isTimed ? [1, 5, 20, 1_000, 1_000, 3_000] : [1, 5, 300, 3_000];
      const ms = spans[Math.floor(this.#choice.fraction() * spans.length)] as number;
      moves.push({ weight: inAir.length > 0 ? 3 : 1, text: `${ms} ms pass`, make: () => this.#pass(ms) });
    }
    if (isTimed && inAir.length === 0) {
      moves.push({
        weight: 0.2,
        text: "the wall clock is set back and forth",
        make: () => this.#ground.clock.stepWall(Math.floor(this.#choice.fraction() * 7_200_000) - 3_600_000),
      });
    }
    if (this.#isFaulty) moves.push({ weight: 0.5, text: "", make: () => this.#crash() });
    return moves;
  }

  async #crash(client: number = Math.floor(this.#choice.fraction() * this.#clients.length)): Promise<void> {
    this.#tell(`client ${client} crashes`);
    this.#crashes += 1;
    this.#surroundings.crash(client);
    for (const flight of this.#flights) {
      if (flight.client !== client) continue;
      flight.isDropped = true;
      this.#flights.delete(flight);
      this.#unknown += 1;
      this.#isUnknown(flight.operation);
    }
    await this.#reopen(client);
  }

  /** Opening recovers what has ended, at some moment before it answers. */
  async #reopen(client: number): Promise<void> {
    const recovery = this.#operations.recover();
    this.#linearization.begin(recovery);
    // Where calls tell when they happen, this one happens as the client opens, with no call in between.
    if (this.#isTold) this.#linearization.happens(recovery);
    await this.#open(client);
    this.#linearization.isUnknown(recovery);
  }

  async #make(moves: readonly Move[]): Promise<void> {
    let left = this.#choice.fraction() * moves.reduce((sum, { weight }) => sum + weight, 0);
    const move = moves.find(({ weight }) => {
      left -= weight;
      return left < 0;
    });
    if (move === undefined) throw new Error("nothing can happen any more, although calls are in the air");
    if (move.text !== "") this.#tell(move.text);
    await move.make();
    await this.#settle();
    this.#closeLate();
    const died = this.#surroundings.died?.();
    if (died !== undefined) await this.#crash(died);
  }

  #call(client: number, operation: Operation): void {
    const flight: Flight = { operation, client, isDropped: false };
    this.#calls += 1;
    this.#tell(`client ${client} calls ${operation.text}`);
    this.#flights.add(flight);
    this.#linearization.begin(operation);
    this.#current = operation;
    const called = operation.store(this.#clients[client] as Backend);
    this.#current = undefined;
    called.then(
      (value) => this.#landed(flight, () => this.#answered(operation, value)),
      (error: unknown) => this.#landed(flight, () => this.#failed(operation, error)),
    );
  }

  #landed(flight: Flight, then: () => void): void {
    // Nobody hears what a dead client is told.
    if (flight.isDropped || this.#surroundings.died?.() === flight.client) return;
    this.#flights.delete(flight);
    try {
      then();
    } catch (error) {
      this.#failure ??= error;
    }
  }

  #answered(operation: Operation, value: unknown): void {
    const read = readable(value);
    this.#tell(`  ${operation.text.split(" ")[0]} answers ${JSON.stringify(this.#withoutTimes(read))}`);
    const queue = QUEUES.find((one) => one === operation.touches[0]);
    this.#knowledge.learn(queue, operation.index, value);
    // What a mark says is the store's own business: only its queues are compared.
    const isMark = operation.text.endsWith(" mark");
    this.#linearization.answer(operation, {
      value: isMark ? { queues: (read as { queues: { queue: string }[] }).queues.map(({ queue: name }) => ({ queue: name })) } : read,
    });
  }

  #failed(operation: Operation, error: unknown): void {
    if (!isQueueFSError(error)) throw error;
    this.#tell(`  ${operation.text.split(" ")[0]} is refused: ${error.code}`);
    if (error.code === "outcome-unknown") {
      this.#unknown += 1;
      this.#isUnknown(operation);
    } else if (NOTHING_HAPPENED.has(error.code)) {
      this.#refused += 1;
      this.#linearization.didNotHappen(operation);
    } else this.#linearization.answer(operation, { refusal: error.code });
  }

  /** Moves the clock, with a stop wherever a timer is due: what is in the air may happen before each, or after. */
  async #pass(ms: number): Promise<void> {
    const { clock } = this.#ground;
    const endMs = clock.monotonicMs() + ms;
    for (;;) {
      const left = endMs - clock.monotonicMs();
      const next = Math.min(left, clock.nextTimerMs ?? left);
      if (this.#surroundings.isTimed && next > 0) this.#linearization.timePasses();
      clock.advance(next);
      await this.#settle();
      if (clock.monotonicMs() >= endMs) return;
    }
  }

  /** Without faults every call is answered, in a bounded number of moves. */
  async #untilQuiet(...others: readonly Promise<unknown>[]): Promise<void> {
    this.#surroundings.calm?.();
    let open = others.length;
    for (const other of others) other.finally(() => (open -= 1)).catch(() => {});
    await this.#settle();
    for (let turn = 0; this.#flights.size > 0 || this.#late.size > 0 || open > 0; turn += 1) {
      if (turn > MOST_QUIET_MOVES)
        throw new Error(`calls that are never answered: ${[...this.#flights].map((one) => one.operation.text).join(", ")}`);
      const moves = this.#surroundings.moves(false);
      if (moves.length > 0) await this.#make(moves);
      else {
        const next = this.#ground.clock.nextTimerMs;
        if (next === undefined)
          throw new Error(`calls that nothing can answer: ${[...this.#flights].map((one) => one.operation.text).join(", ")}`);
        await this.#pass(next);
      }
    }
  }

  #isUnknown(operation: Operation): void {
    if (this.#surroundings.hasLate?.() === true) this.#late.add(operation);
    else this.#linearization.isUnknown(operation);
  }

  /** What was on its way when nobody waited for it any more has arrived by now, or never will. */
  #closeLate(): void {
    if (this.#late.size === 0 || this.#surroundings.hasLate?.() === true) return;
    for (const operation of this.#late) this.#linearization.isUnknown(operation);
    this.#late.clear();
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < 2; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    if (this.#failure !== undefined) throw this.#failure;
  }

  #withoutTimes(value: unknown): unknown {
    if (this.#surroundings.isTimed) return value;
    return JSON.parse(JSON.stringify(value ?? null, (key, one: unknown) => (TIMES.has(key) ? undefined : one)));
  }

  #tell(line: string): void {
    this.lines.push(line);
    this.#hash.update(`${line}\n`);
  }
}

/** Plays one run. @throws RunFailure with the seed, when an answer fits nothing that may have happened */
export async function playRun(seed: number, surround: (ground: Ground) => Surroundings, options: RunOptions = {}): Promise<RunReport> {
  const run = new Run(seed, surround, options);
  try {
    return await run.play();
  } catch (error) {
    throw new RunFailure(seed, run.lines, error);
  }
}

function readable(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, readable(item)]));
}
