/**
 * Sends what calls ask. Calls made in the same turn travel as one script call, in which each keeps its own answer, or as several when
 * they are many; calls made while all lanes are busy gather for the next one. So the number of round trips falls as the load rises, and
 * a lone call never waits.
 */

import { assert, closedError, queueNotFound } from "../../core/errors.ts";
import { WAITING_ITEM_BYTES, WaitingBytes } from "../../core/waiting-bytes.ts";
import { Batch, type Operation } from "./batch.ts";
import { ByteReader } from "./bytes.ts";
import type { Argument } from "./client.ts";
import { translate } from "./failure.ts";
import { ANSWER, isEnqueue, KIND, type Part } from "./part.ts";
import { PROGRAMS, type Program } from "./programs.ts";
import type { PlainKind, QueueLife, Registry } from "./registry.ts";
import type { EncodedKeys } from "./script-call.ts";
import type { Lane, Session } from "./session.ts";
import { TaskBatch } from "./task-batch.ts";
import { readRefusal } from "./task-texts.ts";

/** Script calls in the air at once: one runs on the server while the answer of the other is read. */
const LANES = 2;
/** Calls from which on a batch that holds its share of all calls is complete, so that the lanes take turns; fewer are not worth a script of their own. */
const SHARE_CALLS = 32;
/** Calls of one kind on a queue from which on those of another kind are not added: the general script costs more than two plain ones. */
const PLAIN_CALLS = 8;
/** By how much the larger of two batches may be so: were it cut at the half, the few calls left over would join others of another kind. */
const LARGER_BY = 1.25;
/** How often a call is sent anew because its queue was removed and made again meanwhile. */
const MOST_ATTEMPTS = 8;

/** The kinds of operation that have a plain script. */
const PLAIN_KINDS: Readonly<Record<number, PlainKind>> = {
  [KIND.enqueue]: "enqueue",
  [KIND.enqueueOwned]: "enqueueOwned",
  [KIND.dequeue]: "dequeue",
  [KIND.ack]: "ack",
};
const PLAIN_PROGRAMS: Readonly<Record<PlainKind, Program>> = {
  enqueue: PROGRAMS.plainEnqueue,
  enqueueOwned: PROGRAMS.plainEnqueueOwned,
  dequeue: PROGRAMS.plainDequeue,
  ack: PROGRAMS.plainAck,
  ackOwned: PROGRAMS.plainAckOwned,
};

/** A script call that waits for a lane. */
interface Waiting {
  send(lane: Lane): Promise<void>;
  reject(error: unknown): void;
}

/** Sends what calls ask. */
export class Steps {
  readonly #session: Session;
  readonly #registry: Registry;
  /** Where the store is, for errors. */
  readonly location: string;
  readonly #free: Lane[] = [];
  readonly #waiting: Waiting[] = [];
  #gathering: Batch | undefined;
  /** What was entered last, where operations on tasks may still be added to it. */
  #joining: TaskBatch | undefined;
  readonly #waitingBytes: WaitingBytes;
  #isScheduled = false;
  #pending = 0;
  #idle: (() => void) | undefined;
  #isClosed = false;

  /** @param maxWaitingBytes bytes of calls that store messages, beyond which more are refused */
  constructor(session: Session, registry: Registry, location: string, maxWaitingBytes: number) {
    this.#waitingBytes = new WaitingBytes(location, maxWaitingBytes);
    this.#session = session;
    this.#registry = registry;
    this.location = location;
    for (let index = LANES - 1; index >= 0; index -= 1) this.#free.push(session.newLane(index));
  }

  /** Sends one part of a frequent operation, together with others. @throws QueueFSError `store-busy` when too many wait that store messages */
  run<Answer>(part: Part<Answer>): Promise<Answer> {
    if (this.#isClosed) return Promise.reject(closedError(`store ${this.location}`));
    if (part.weight > 0 || isEnqueue(part.kind)) {
      const bytes = part.weight + part.items * WAITING_ITEM_BYTES;
      this.#waitingBytes.take(bytes);
      part.waitingBytes = bytes;
    }
    this.#pending += 1;
    part.onSettled = this.#onSettled;
    this.#place(part as Part);
    return part.promise;
  }

  /** Sends one part of a rarer operation, by itself. */
  runAlone<Answer>(part: Part<Answer>): Promise<Answer> {
    if (this.#isClosed) return Promise.reject(closedError(`store ${this.location}`));
    this.#pending += 1;
    part.onSettled = this.#onSettled;
    this.#placeAlone(part as Part).catch((error: unknown) => part.reject(error));
    return part.promise;
  }

  /** Runs another script that begins with the frame. */
  async runScript(program: Program, keys: EncodedKeys, values: readonly Argument[]): Promise<Buffer> {
    if (this.#isClosed) throw closedError(`store ${this.location}`);
    this.#pending += 1;
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        this.#enter({
          send: (lane) => this.#session.run(lane, program, this.#registry.store, keys, values).then(resolve, reject),
          reject,
        });
      });
    } finally {
      this.#onSettled();
    }
  }

  /** Runs one operation on tasks themselves. @param isJoined whether it has no queues: then it may travel with others that wait. @throws QueueFSError `store-busy` */
  runTaskStep(keys: EncodedKeys, operation: Buffer, isJoined: boolean): Promise<ByteReader> {
    if (this.#isClosed) return Promise.reject(closedError(`store ${this.location}`));
    const bytes = operation[0] === KIND.makeTask ? operation.length + WAITING_ITEM_BYTES : 0;
    if (bytes > 0) this.#waitingBytes.take(bytes);
    this.#pending += 1;
    let batch = this.#joining;
    if (!isJoined || batch === undefined || batch.isFull) {
      batch = new TaskBatch((lane, body) => this.#session.run(lane, PROGRAMS.taskStep, this.#registry.store, keys, [body]));
      this.#enter(batch);
      if (isJoined) this.#joining = batch;
    }
    return batch.add(operation).finally(() => {
      this.#waitingBytes.give(bytes);
      this.#onSettled();
    });
  }

  /** Takes no more calls, and resolves when those taken are settled. */
  async end(): Promise<void> {
    this.#isClosed = true;
    if (this.#pending > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
  }

  readonly #onSettled = (part?: Part): void => {
    if (part !== undefined && part.waitingBytes > 0) this.#waitingBytes.give(part.waitingBytes);
    this.#pending -= 1;
    if (this.#pending === 0) this.#idle?.();
  };

  #place(part: Part): void {
    const life = this.#registry.known(part.name);
    if (life !== undefined && part.targets === undefined && !part.isNewerThan(life)) this.#gather(part, life);
    else this.#lookUp(part).catch((error: unknown) => part.reject(error));
  }

  async #lookUp(part: Part): Promise<void> {
    part.detach();
    const names = [part.name, ...(part.targets?.keys() ?? [])];
    let lives = names.map((name) => this.#registry.known(name));
    const isStale = part.attempts > 0 || lives.includes(undefined) || part.isNewerThan(lives[0] as QueueLife);
    if (isStale) lives = await this.#registry.look(names);
    for (const [index, name] of names.entries()) {
      const life = lives[index];
      if (life === undefined) throw queueNotFound(name);
      if (index > 0) part.targets?.set(name, life);
    }
    this.#gather(part, lives[0] as QueueLife);
  }

  async #placeAlone(part: Part): Promise<void> {
    const known = this.#registry.known(part.name);
    const life =
      known !== undefined && part.attempts === 0 && !part.isNewerThan(known) ? known : (await this.#registry.look([part.name]))[0];
    if (life === undefined) throw queueNotFound(part.name);
    const batch = new Batch(true);
    batch.add(part, life);
    this.#enter(this.#travel(batch));
  }

  #gather(part: Part, life: QueueLife): void {
    this.#joining = undefined;
    let batch = this.#gathering;
    if (batch !== undefined && (batch.isFullFor(part) || this.#isBetterAlone(batch, part, life))) {
      this.#waiting.push(this.#travel(batch));
      batch = undefined;
    }
    batch ??= this.#gathering = new Batch(false);
    batch.add(part, life);
    // One batch of all callers would leave this process idle while the server works, and the server idle while answers are read.
    if (batch.calls >= SHARE_CALLS && batch.calls * LANES >= LARGER_BY * this.#pending) {
      this.#waiting.push(this.#travel(batch));
      this.#gathering = undefined;
    }
    this.#schedule();
  }

  // Only while few wait: calls whose kinds change again and again need fewer round trips together.
  #isBetterAlone(batch: Batch, part: Part, life: QueueLife): boolean {
    return batch.calls >= PLAIN_CALLS && this.#waiting.length < LANES && batch.wouldMix(part, life);
  }

  // What was gathered before goes before.
  #enter(waiting: Waiting): void {
    this.#joining = undefined;
    if (this.#gathering !== undefined) {
      this.#waiting.push(this.#travel(this.#gathering));
      this.#gathering = undefined;
    }
    this.#waiting.push(waiting);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#free.length === 0) return;
    this.#isScheduled = true;
    // After this turn: so that all calls made in it are gathered.
    process.nextTick(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#free.length > 0) {
      let next = this.#waiting.shift();
      if (next === undefined) {
        if (this.#gathering === undefined) return;
        next = this.#travel(this.#gathering);
        this.#gathering = undefined;
      }
      const lane = this.#free.pop() as Lane;
      const sent = next;
      const landed = (): void => {
        this.#free.push(lane);
        if (this.#waiting.length > 0 || this.#gathering !== undefined) this.#schedule();
      };
      sent.send(lane).then(landed, (error: unknown) => {
        sent.reject(error);
        landed();
      });
    }
  }

  #travel(batch: Batch): Waiting {
    return {
      send: (lane) => {
        const plain = this.#plainKindOf(batch);
        return plain === undefined ? this.#sendGeneral(lane, batch) : this.#sendPlain(lane, batch, plain);
      },
      reject: (error) => {
        for (const { parts } of batch.operations) for (const part of parts) part.reject(error);
      },
    };
  }

  async #sendGeneral(lane: Lane, batch: Batch): Promise<void> {
    this.#distribute(
      batch,
      new ByteReader(await this.#session.run(lane, batch.program, this.#registry.store, batch.keys(), [batch.encode()])),
    );
  }

  async #sendPlain(lane: Lane, batch: Batch, kind: PlainKind): Promise<void> {
    const operation = batch.operations[0] as Operation;
    const { life } = operation;
    // The only plain script that takes several operations.
    const isList = kind === "enqueueOwned";
    const { reply, wasPlain, entries } = await this.#session.runPlain(
      lane,
      PLAIN_PROGRAMS[kind],
      life.store,
      life.plainKeys(kind),
      isList ? batch.encode() : operation.encode(),
      () => ({
        program: batch.program,
        store: this.#registry.store,
        keys: batch.keys(),
        values: [batch.encode()],
      }),
    );
    // Where a queue is out of the ordinary it often stays so for a while: then the detour is not made each time.
    life.notePlain(kind, wasPlain);
    operation.entries = entries;
    const reader = new ByteReader(reply);
    if (!wasPlain || isList) this.#distribute(batch, reader);
    else if (reader.u8() === ANSWER.done) this.#answer(operation, reader);
  }

  #plainKindOf(batch: Batch): PlainKind | undefined {
    const { operations } = batch;
    const [operation] = operations;
    if (operation === undefined) return undefined;
    let kind = PLAIN_KINDS[operation.kind];
    if (operations.length > 1) {
      // Messages of several tasks for one queue.
      const areOwned = operations.every(
        (one) => one.life === operation.life && (one.kind === KIND.enqueueOwned || one.kind === KIND.enqueue),
      );
      kind = areOwned ? "enqueueOwned" : undefined;
    } else if (operation.parts[0]?.isAlone) {
      return undefined;
    } else if (kind === "ack" && operation.parts.some((part) => part.hasTask)) {
      kind = "ackOwned";
    }
    return kind !== undefined && operation.life.mayBePlain(kind) ? kind : undefined;
  }

  #distribute(batch: Batch, reader: ByteReader): void {
    for (const operation of batch.operations) {
      const answer = reader.part(reader.u32());
      const status = answer.u8();
      if (status === ANSWER.done) this.#answer(operation, answer);
      else this.#refuse(operation, status, answer);
    }
    assert(reader.isAtEnd, "a script answers no more than it was asked");
  }

  #answer(operation: Operation, answer: ByteReader): void {
    if (isEnqueue(operation.kind)) operation.next = answer.u48();
    for (const part of operation.parts) {
      const result = part.read(answer, operation.life, operation);
      if (result === undefined) this.#again(operation, part);
      else part.resolve(result);
    }
  }

  #refuse(operation: Operation, status: number, answer: ByteReader): void {
    const { parts, life } = operation;
    if (status === ANSWER.again) {
      for (const part of parts) this.#again(operation, part);
      return;
    }
    if (status === ANSWER.gone) {
      for (const part of parts) {
        part.attempts += 1;
        if (part.attempts > MOST_ATTEMPTS) part.reject(queueNotFound(part.name));
        else this.#again(operation, part);
      }
      this.#registry.forget(life);
      return;
    }
    if (status === ANSWER.taskEnded) {
      const refusal = readRefusal(status, answer);
      for (const part of parts) part.reject(refusal);
      return;
    }
    const error = status === ANSWER.full ? new Error("OOM the memory of the server is full") : new Error(answer.rest());
    for (const part of parts) part.reject(translate(error, this.location));
  }

  #again(operation: Operation, part: Part): void {
    part.keep(operation.writer.view(part.start, part.end));
    if (operation.kind >= KIND.clear) this.#placeAlone(part).catch((error: unknown) => part.reject(error));
    else if (part.attempts > 0) this.#lookUp(part).catch((error: unknown) => part.reject(error));
    else this.#place(part);
  }
}
