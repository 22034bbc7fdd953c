/**
 * One run of the classes that programs use: processes with workers on two queues, producers of tasks and waiters, over a line that loses and
 * delays their calls; any process may die at any moment. What each task must have done is known from its first values.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Backend } from "../../src/backend/contract.ts";
import { MemoryStore, openMemory } from "../../src/backend/memory/index.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { isComplete } from "../../src/core/message.ts";
import type { TaskId } from "../../src/core/names.ts";
import { isTerminal, type Task } from "../../src/core/task.ts";
import { giveUp, type HandlerContext, NamedQueue, retryAfter, type Verdict, Worker, waitComplete } from "../../src/queue/index.ts";
import { batch, Tasks } from "../../src/task/index.ts";
import { SeededRandom } from "../../src/testing/index.ts";
import { Line } from "./memory-surroundings.ts";
import { type Ground, type Move, RunFailure, type RunReport } from "./run.ts";
import { SimulationClock } from "./simulation-clock.ts";

/** A piece of work: its task, its own name, and how many pieces its handler forwards. */
interface Piece {
  readonly task: number;
  readonly name: string;
  readonly children: number;
}

interface Handling {
  readonly process: number;
  readonly piece: Piece;
  readonly context: HandlerContext;
  readonly begunMs: number;
  end(verdict: Verdict | undefined): void;
  fail(error: Error): void;
}

interface Producer {
  readonly number: number;
  id: TaskId | undefined;
  readonly pieces: Piece[];
  isSealed: boolean;
  ended: Task | undefined;
}

/** How a pipeline is run. */
export interface PipelineOptions {
  /** Put between every process and its line: something deliberately broken. */
  readonly between?: (backend: Backend, ground: Ground) => Backend;
}

const LEASE_MS = 10_000;
const PRODUCER_LEASE_MS = 8_000;
const MOVES = 250;
const MOST_MOVES = 6_000;
const PROCESSES = 2;

class Pipeline {
  readonly lines: string[] = [];
  readonly #hash = createHash("sha256");
  readonly #seed: number;
  readonly #options: PipelineOptions;
  readonly #clock = new SimulationClock();
  readonly #choice: SeededRandom;
  readonly #ground: Ground;
  readonly #store: MemoryStore;
  readonly #line: Line;
  readonly #opened: Backend[] = [];
  readonly #handlings = new Set<Handling>();
  readonly #done = new Set<string>();
  readonly #producers: Producer[] = [];
  /** Whether nothing was unacked at some moment since the waiter began. */
  readonly #waiters: { wasComplete: boolean }[] = [];
  #truth: Backend | undefined;
  #live: number[] = [];
  /** The processes that have workers; the others are producers. */
  readonly #working = new Set<number>();
  #clients = 0;
  #crashes = 0;
  #failure: unknown;

  constructor(seed: number, options: PipelineOptions) {
    this.#seed = seed;
    this.#options = options;
    this.#choice = new SeededRandom(seed);
    this.#ground = {
      clock: this.#clock,
      random: new SeededRandom(seed + 1),
      choice: this.#choice,
      seed,
      tell: (line) => this.#tell(line),
      current: () => undefined,
      happens: () => {},
    };
    this.#store = new MemoryStore(this.#ground.random);
    this.#line = new Line(this.#ground);
  }

  async play(): Promise<RunReport> {
    const { setInterval } = globalThis;
    // A worker keeps its process alive by an interval; one that died here would do so for good.
    globalThis.setInterval = (() => ({ unref() {} })) as unknown as typeof setInterval;
    try {
      this.#truth = await this.#open();
      for (const name of ["parse", "index"] as const)
        await this.#truth.createQueue(new NamedQueue(this.#truth, name).name, { maxDeliveries: 4 });
      for (let count = 0; count < PROCESSES; count += 1) await this.#startProcess();
      for (let number = 0; number < 3; number += 1) await this.#startProducer(number);
      for (let move = 0; move < MOVES; move += 1) await this.#move(true);
      await this.#finish();
      await this.#judge();
    } finally {
      globalThis.setInterval = setInterval;
      for (const backend of this.#opened) await backend.close();
    }
    return {
      seed: this.#seed,
      hash: this.#hash.digest("hex"),
      lines: this.lines,
      calls: this.lines.length,
      unknown: 0,
      refused: 0,
      crashes: this.#crashes,
    };
  }

  async #open(): Promise<Backend> {
    const { random } = this.#ground;
    const backend = await openMemory({ store: this.#store, clock: this.#clock, random, onError: (error) => this.#fail(error) });
    this.#opened.push(backend);
    return backend;
  }

  /** A client of its own for a process or producer, on the line. */
  async #client(): Promise<{ client: number; backend: Backend }> {
    this.#clients += 1;
    const client = this.#clients;
    const held = this.#line.hold(await this.#open(), client);
    return { client, backend: this.#options.between?.(held, this.#ground) ?? held };
  }

  async #startProcess(): Promise<void> {
    const { client, backend } = await this.#client();
    const clock = this.#clock;
    const [parse, index] = ["parse", "index"].map((name) => new NamedQueue<Piece>(backend, name, { clock, leaseMs: LEASE_MS }));
    const options = { clock, random: this.#ground.random, keepLeasesWhileBusy: false, onError: () => {} };
    new Worker(parse as NamedQueue<Piece>, (piece, context) => this.#handle(client, piece, context, index), {
      ...options,
      concurrency: 2,
    }).start();
    new Worker(index as NamedQueue<Piece>, (piece, context) => this.#handle(client, piece, context, undefined), options).start();
    this.#live.push(client);
    this.#working.add(client);
  }

  #handle(process: number, piece: Piece, context: HandlerContext, next: NamedQueue<Piece> | undefined): Promise<Verdict | undefined> {
    this.#tell(`process ${process} begins ${piece.name}, delivery ${context.deliveryCount}`);
    for (const other of this.#handlings) {
      if (other.piece.name !== piece.name || !this.#live.includes(other.process)) continue;
      // Two deliveries of one message at once: only when the lease of the first can have ended.
      if (this.#clock.monotonicMs() - other.begunMs < LEASE_MS && !other.context.signal.aborted)
        this.#fail(new Error(`${piece.name} is handled twice at once`));
    }
    return new Promise((resolve, reject) => {
      const handling: Handling = {
        process,
        piece,
        context,
        begunMs: this.#clock.monotonicMs(),
        end: (verdict) => {
          this.#handlings.delete(handling);
          if (verdict === undefined) {
            for (const child of childrenOf(piece)) if (next !== undefined) void context.forward(next, child);
            this.#done.add(piece.name);
          }
          resolve(verdict);
        },
        fail: (error) => {
          this.#handlings.delete(handling);
          reject(error);
        },
      };
      this.#handlings.add(handling);
    });
  }

  async #startProducer(number: number): Promise<void> {
    const { client, backend } = await this.#client();
    const clock = this.#clock;
    const tasks = new Tasks(backend, { clock, producerLeaseMs: PRODUCER_LEASE_MS, onError: () => {} });
    const parse = new NamedQueue<Piece>(backend, "parse", { clock });
    const pieces = Array.from({ length: 2 + Math.floor(this.#choice.fraction() * 4) }, (_, index) => ({
      task: number,
      name: `t${number}.${index}`,
      children: Math.floor(this.#choice.fraction() * 3),
    }));
    const producer: Producer = { number, id: undefined, pieces, isSealed: false, ended: undefined };
    this.#producers.push(producer);
    this.#live.push(client);
    const waitWith = async (): Promise<void> => {
      const waiter = { wasComplete: isComplete(await (this.#truth as Backend).statuses({ under: "" })) };
      this.#waiters.push(waiter);
      await waitComplete(backend, { queues: [parse.name, new NamedQueue(backend, "index").name] }, { clock });
      this.#tell(`producer ${number} is told that all is complete`);
      assert.ok(waiter.wasComplete, "complete was said although something was unacked all the time");
    };
    const work = async (): Promise<void> => {
      const task = await tasks.open({ type: "import", id: `task-${number}` }, [batch(parse, pieces.slice(0, 1))]);
      producer.id = task.id;
      for (const piece of pieces.slice(1)) await task.run(() => parse.enqueue(piece, { id: piece.name }));
      const sealed = await task.seal();
      producer.isSealed = true;
      this.#tell(`producer ${number} has sealed: ${sealed.status}`);
      const ended = await tasks.wait(task.id, {});
      this.#tell(`producer ${number} is told that its task is ${ended.status}`);
      assert.ok(isTerminal(ended.status));
      await waitWith();
    };
    work().catch((error: unknown) => {
      if (!isQueueFSError(error)) {
        this.#fail(error);
        return;
      }
      // A call of unknown outcome ends a producer that does not repeat it, and its process; its lease then settles its task.
      this.#tell(`producer ${number} gives up: ${error.code}`);
      this.#live = this.#live.filter((one) => one !== client);
      this.#line.kill(client, () => false);
    });
  }

  async #move(faulty: boolean): Promise<void> {
    const moves: Move[] = [...this.#line.moves(faulty), ...this.#handlingMoves(faulty)];
    const next = this.#clock.nextTimerMs;
    if (next !== undefined) {
      const ms = this.#choice.fraction() < 0.7 ? next : next + Math.floor(this.#choice.fraction() * 3_000);
      moves.push({ weight: moves.length === 0 ? 1 : 0.8, text: `${ms} ms pass`, make: () => this.#pass(ms) });
    }
    if (faulty && this.#live.length > 1) moves.push({ weight: 0.12, text: "", make: () => this.#crash() });
    let left = this.#choice.fraction() * moves.reduce((sum, { weight }) => sum + weight, 0);
    const move = moves.find(({ weight }) => {
      left -= weight;
      return left < 0;
    });
    assert.ok(move, "something can always happen");
    if (move.text !== "") this.#tell(move.text);
    await move.make();
    await this.#settle();
  }

  #handlingMoves(faulty: boolean): Move[] {
    return [...this.#handlings]
      .filter(({ process }) => this.#live.includes(process))
      .flatMap((handling) => {
        const { name } = handling.piece;
        const done: Move = { weight: 3, text: `${name} is done`, make: () => handling.end(undefined) };
        if (!faulty) return [done];
        return [
          done,
          { weight: 0.3, text: `${name} fails`, make: () => handling.fail(new Error("on purpose")) },
          { weight: 0.2, text: `${name} asks for another try`, make: () => handling.end(retryAfter(500)) },
          { weight: 0.08, text: `${name} is given up`, make: () => handling.end(giveUp("on purpose")) },
        ];
      });
  }

  async #crash(): Promise<void> {
    const client = this.#live[Math.floor(this.#choice.fraction() * this.#live.length)] as number;
    this.#tell(`process ${client} dies`);
    this.#crashes += 1;
    this.#live = this.#live.filter((one) => one !== client);
    this.#line.kill(client, () => this.#choice.fraction() < 0.5);
    // Without any worker nothing would ever be done.
    if (this.#live.length < PROCESSES + 1 || !this.#live.some((one) => this.#working.has(one))) await this.#startProcess();
  }

  async #pass(ms: number): Promise<void> {
    const endMs = this.#clock.monotonicMs() + ms;
    for (;;) {
      const left = endMs - this.#clock.monotonicMs();
      this.#clock.advance(Math.min(left, this.#clock.nextTimerMs ?? left));
      await this.#settle();
      if (this.#clock.monotonicMs() >= endMs) return;
    }
  }

  /** Lets what can run do so, and looks at the truth. */
  async #settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    const truth = this.#truth as Backend;
    if (isComplete(await truth.statuses({ under: "" }))) for (const waiter of this.#waiters) waiter.wasComplete = true;
    for (const producer of this.#producers) if (producer.id !== undefined) this.#look(producer, await truth.task(producer.id));
    if (this.#failure !== undefined) throw this.#failure;
  }

  #look(producer: Producer, task: Task): void {
    const { status, progress, sealed } = task;
    if (producer.ended !== undefined) {
      assert.deepEqual(task, producer.ended, `task ${producer.number} stays as it ended`);
      return;
    }
    // The step that settles the last message of a sealed task ends it: no moment shows one without the other.
    assert.equal(
      isTerminal(status),
      sealed && progress.unacked === 0,
      `task ${producer.number}: ${status}, ${JSON.stringify(progress)}, sealed ${sealed}`,
    );
    if (!isTerminal(status)) return;
    producer.ended = task;
    this.#tell(`task ${producer.number} has ended as ${status}`);
    if (status !== "completed") return;
    const missing = producer.pieces.flatMap((piece) => [piece, ...childrenOf(piece)]).filter((piece) => !this.#done.has(piece.name));
    assert.deepEqual(
      missing.map(({ name }) => name),
      [],
      `task ${producer.number} is completed with all that it is made of done`,
    );
  }

  async #finish(): Promise<void> {
    for (let move = 0; move < MOST_MOVES; move += 1) {
      const truth = this.#truth as Backend;
      const isSettled = this.#producers.every(({ id, ended }) => id === undefined || ended !== undefined);
      if (isSettled && isComplete(await truth.statuses({ under: "" })) && this.#line.moves(false).length === 0) return;
      await this.#move(false);
    }
    throw new Error(`not at rest after ${MOST_MOVES} moves without faults`);
  }

  /** At the end everything that was begun is done or a dead letter, and every task says which. */
  async #judge(): Promise<void> {
    const truth = this.#truth as Backend;
    for (const { id, number } of this.#producers) {
      if (id === undefined) continue;
      const { status, progress } = await truth.task(id);
      assert.ok(status === "completed" || status === "failed", `task ${number} is ${status}`);
      assert.equal(progress.total, progress.done + progress.failed + progress.cancelled, JSON.stringify(progress));
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
  }

  #tell(line: string): void {
    this.lines.push(line);
    this.#hash.update(`${line}\n`);
  }
}

function childrenOf(piece: Piece): Piece[] {
  return Array.from({ length: piece.children }, (_, index) => ({ task: piece.task, name: `${piece.name}.${index}`, children: 0 }));
}

let loaded: Promise<void> | undefined;

/** What the product loads at its first use takes real time, which no run may depend on: it is there before the first. */
function load(): Promise<void> {
  loaded ??= (async () => {
    const backend = await openMemory();
    await new NamedQueue(backend, "first").enqueue(1);
    await backend.close();
  })();
  return loaded;
}

/** Plays one run. @throws RunFailure with the seed */
export async function playPipeline(seed: number, options: PipelineOptions = {}): Promise<RunReport> {
  await load();
  const pipeline = new Pipeline(seed, options);
  try {
    return await pipeline.play();
  } catch (error) {
    throw new RunFailure(seed, pipeline.lines, error);
  }
}
