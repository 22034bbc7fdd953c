/**
 * Group commit: the calls made in one turn of the event loop share one immediate transaction, so one wait for the disk, and each still
 * gets its own answer. No other process's write can come between, and no await happens inside.
 */

import { backoffMs } from "../../core/backoff.ts";
import { closedError, isQueueFSError, QueueFSError, tooManyWaiting } from "../../core/errors.ts";
import type { QueueName } from "../../core/names.ts";
import { TurnCounter } from "../../core/turn.ts";
import { WAITING_ITEM_BYTES } from "../../core/waiting-bytes.ts";
import { AGAIN, type Answer } from "./answer.ts";
import type { Database } from "./connection.ts";
import { type DequeueCall, dequeueTogether } from "./dequeue.ts";
import type { SqliteSettings } from "./options.ts";
import { type AckCall, ackTogether } from "./settle.ts";
import { isBusy, isCorrupt, isFull, translate } from "./sqlite-error.ts";
import { Step, type StoreContext } from "./step.ts";

/** Calls of one transaction at most: bounds how long the write lock is held. */
const MAX_CALLS = 1_000;
/** Payload bytes of one transaction at most, unless a single call has more. */
const MAX_BYTES = 8 * 1024 * 1024;

/** What an item of a call counts beside its payload, in bytes: some 30,000 items take as long as that many bytes. */
export const ITEM_BYTES: number = WAITING_ITEM_BYTES;

/**
 * A call of a kind of which several are better done together. The calls of one transaction are made at once, so their order is free: between
 * two that have no such kind, all that stores comes first, then all that acks, then all that hands out.
 */
export type Kind = { readonly is: "enqueue" } | ({ readonly is: "ack" } & AckCall) | ({ readonly is: "dequeue" } & DequeueCall);

/** What the writer should know of a call. */
export interface CallTraits {
  /** Payload of the call and {@link ITEM_BYTES} for each item, to bound the transaction. Default 0. */
  readonly bytes?: number;
  /** Whether it stores messages; such a call gets none of the room that is kept for acks on a full disk. Default false. */
  readonly grows?: boolean;
  /** How long it waits while others hold the write lock, in milliseconds. Default: the store's option. */
  readonly patienceMs?: number;
  /** What it is, if others of its kind can be done together with it. */
  readonly kind?: Kind | undefined;
}

interface Call extends Required<Omit<CallTraits, "kind">> {
  readonly kind: Kind | undefined;
  readonly operation: (step: Step) => unknown;
  /** When it first found the lock taken, by the monotonic clock in milliseconds. */
  busySinceMs: number | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What the writer asks of the store around it. */
export interface WriterHooks {
  /** Called after each commit, with the payload bytes of its calls as {@link CallTraits} has them. */
  readonly onCommit: (bytes: number) => void;
  /** Called after each commit that changed something, with the queues that changed; a task may have without any. */
  readonly onChange: (queues: ReadonlySet<QueueName>) => void;
  /** Called when the disk was full for an ack or the like; answers whether it made room, so that one more try makes sense. */
  readonly makeRoom: () => boolean;
}

/** Runs operations in shared transactions. */
export class Writer {
  readonly #database: Database;
  readonly #context: StoreContext;
  readonly #settings: SqliteSettings;
  readonly #hooks: WriterHooks;
  readonly #begin;
  readonly #commit;
  readonly #rollback;
  #waiting: Call[] = [];
  #waitingBytes = 0;
  #scheduled = false;
  #busyAttempts = 0;
  #closed = false;
  #failure: QueueFSError | undefined;
  #whenIdle: (() => void)[] = [];
  readonly #turns = new TurnCounter(16);

  constructor(database: Database, context: StoreContext, settings: SqliteSettings, hooks: WriterHooks) {
    this.#database = database;
    this.#context = context;
    this.#settings = settings;
    this.#hooks = hooks;
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#commit = database.prepare("COMMIT");
    this.#rollback = database.prepare("ROLLBACK");
  }

  /**
   * Runs `operation` in the next transaction and resolves with its result after the commit. What it throws as a QueueFSError before its
   * first write rejects this call alone.
   */
  run<Result>(operation: (step: Step) => Result | typeof AGAIN, traits?: CallTraits): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const refusal = this.#closed ? closedError(`store ${this.#settings.path}`) : this.#failure;
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      const { bytes = 0, grows = false, patienceMs = this.#settings.busyTimeoutMs, kind } = traits ?? {};
      // What makes room is always taken.
      if (grows && this.#waitingBytes > this.#settings.maxWaitingBytes) {
        reject(tooManyWaiting(this.#settings.path, this.#waitingBytes));
        return;
      }
      this.#waitingBytes += bytes;
      this.#waiting.push({
        operation,
        bytes,
        grows,
        patienceMs,
        kind,
        busySinceMs: undefined,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      // After the microtasks of this turn: all callers that one answer woke have made their next call by then.
      if (this.#scheduled) return;
      this.#scheduled = true;
      if (this.#turns.isTurnDue()) setImmediate(() => this.#flush());
      else process.nextTick(() => this.#flush());
    });
  }

  /** The error after which nothing that the file says can be trusted, if there was one. */
  get failure(): QueueFSError | undefined {
    return this.#failure;
  }

  /** Says that the file was found damaged: from now on every call is refused with this error, since no answer could be trusted. */
  fail(failure: QueueFSError): void {
    this.#failure ??= failure;
  }

  /** Refuses new calls, and resolves when those in the air have their answers. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#scheduled) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #flush(): void {
    const calls = this.#take();
    try {
      this.#transaction(calls);
      this.#busyAttempts = 0;
    } catch (error) {
      if (isBusy(error)) {
        this.#waiting = [...calls, ...this.#waiting];
        for (const { bytes } of calls) this.#waitingBytes += bytes;
        this.#retryLater(error);
        return;
      }
      this.#separately(calls, error);
    }
    if (this.#waiting.length > 0) {
      // Let the event loop turn, and other processes have the lock, before the next transaction.
      setImmediate(() => this.#flush());
      return;
    }
    this.#becomeIdle();
  }

  #waitAgain(call: Call): void {
    this.#waiting.push(call);
    this.#waitingBytes += call.bytes;
  }

  #take(): Call[] {
    const waiting = this.#waiting;
    let count = 0;
    let bytes = 0;
    while (count < waiting.length && count < MAX_CALLS && (count === 0 || bytes + (waiting[count] as Call).bytes <= MAX_BYTES)) {
      bytes += (waiting[count] as Call).bytes;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    if (count === waiting.length) {
      this.#waiting = [];
      return waiting;
    }
    this.#waiting = waiting.slice(count);
    return waiting.slice(0, count);
  }

  /** Runs all calls in one transaction; gives the answers after the commit. Throws, with nothing changed, when the transaction failed. */
  #transaction(calls: readonly Call[]): void {
    // Where the last rollback failed this one is the next attempt.
    this.#rollBack();
    this.#begin.run();
    const answers = new Array<Answer>(calls.length);
    const step = new Step(this.#context);
    try {
      for (let index = 0; index < calls.length; ) {
        let end = index;
        while (end < calls.length && calls[end]?.kind !== undefined) end += 1;
        if (end - index > 1) {
          this.#performTogether(step, calls, answers, index, end);
          index = end;
        } else {
          answers[index] = this.#perform(step, calls[index] as Call);
          index += 1;
        }
      }
      step.finish();
      this.#finishTransaction();
    } catch (error) {
      this.#rollBack();
      step.undo();
      throw error;
    }
    for (const [index, call] of calls.entries()) {
      const answer = answers[index] as Answer;
      if ("error" in answer) call.reject(answer.error);
      else if (answer.value === AGAIN) this.#waitAgain(call);
      else call.resolve(answer.value);
    }
    this.#afterCommit(step, calls);
  }

  /** What fails here must not be taken for a failure of the transaction: calls that were answered would be done again. */
  #afterCommit(step: Step, calls: readonly Call[]): void {
    try {
      if (step.changed) this.#hooks.onChange(step.changedQueues);
      let stored = 0;
      for (const { bytes, grows } of calls) if (grows) stored += bytes;
      this.#hooks.onCommit(stored);
    } catch (error) {
      this.#settings.onError(error);
    }
  }

  #perform(step: Step, call: Call): Answer {
    // Only what stores does not look at what was stored before.
    if (call.kind?.is !== "enqueue") step.flush();
    try {
      return { value: call.operation(step) };
    } catch (error) {
      if (!isQueueFSError(error) || error.code === "internal" || !this.#database.inTransaction) throw error;
      return { error };
    }
  }

  #performTogether(step: Step, calls: readonly Call[], answers: Answer[], start: number, end: number): void {
    const acks: AckCall[] = [];
    const ackIndexes: number[] = [];
    const dequeues: DequeueCall[] = [];
    const dequeueIndexes: number[] = [];
    for (let index = start; index < end; index += 1) {
      const call = calls[index] as Call;
      if (call.kind?.is === "ack") {
        acks.push(call.kind);
        ackIndexes.push(index);
      } else if (call.kind?.is === "dequeue") {
        dequeues.push(call.kind);
        dequeueIndexes.push(index);
      } else answers[index] = this.#perform(step, call);
    }
    step.flush();
    for (const [position, answer] of ackTogether(step, acks).entries()) answers[ackIndexes[position] as number] = answer;
    for (const [position, answer] of dequeueTogether(step, dequeues).entries()) answers[dequeueIndexes[position] as number] = answer;
  }

  /** Ends a transaction that is open. A failure of that must not take the place of what led to it. */
  #rollBack(): void {
    try {
      if (this.#database.inTransaction) this.#rollback.run();
    } catch (error) {
      this.#settings.onError(error);
    }
  }

  #finishTransaction(): void {
    try {
      this.#commit.run();
    } catch (error) {
      this.#rollBack();
      if (isBusy(error) || isFull(error)) throw error;
      // The commit record may be in the log although its write or sync failed.
      throw new QueueFSError(
        "outcome-unknown",
        `${this.#settings.path}: the commit failed, so the step may or may not have happened (${String(error)}); look at the queue before repeating it`,
        { cause: error },
      );
    }
  }

  /** After a failed transaction: each call by itself, so that only the one at fault fails. */
  #separately(calls: readonly Call[], error: unknown): void {
    if (isCorrupt(error)) this.fail(translate(error, this.#settings.path) as QueueFSError);
    const unknown = isQueueFSError(error, "outcome-unknown") || this.#failure !== undefined;
    for (const call of calls) {
      if (unknown || (calls.length === 1 && !isFull(error))) call.reject(this.#translated(error));
      else this.#alone(call);
    }
  }

  #alone(call: Call): void {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#transaction([call]);
        return;
      } catch (error) {
        if (isBusy(error)) {
          this.#waitAgain(call);
          return;
        }
        if (attempt === 1 && !call.grows && isFull(error) && this.#hooks.makeRoom()) continue;
        call.reject(this.#translated(error));
        return;
      }
    }
  }

  #translated(error: unknown): unknown {
    return translate(error, this.#settings.path);
  }

  /** Each call waits its own time; those whose time is over are rejected, the others try again together. */
  #retryLater(error: unknown): void {
    const nowMs = this.#context.clock.monotonicMs();
    const impatient: Call[] = [];
    this.#waiting = this.#waiting.filter((call) => {
      call.busySinceMs ??= nowMs;
      if (nowMs - call.busySinceMs < call.patienceMs) return true;
      impatient.push(call);
      this.#waitingBytes -= call.bytes;
      return false;
    });
    for (const call of impatient) call.reject(this.#translated(error));
    if (this.#waiting.length === 0) {
      this.#busyAttempts = 0;
      this.#becomeIdle();
      return;
    }
    this.#busyAttempts += 1;
    setTimeout(() => this.#flush(), backoffMs({ firstMs: 1, maximumMs: 8 }, this.#busyAttempts, this.#context.random));
  }

  #becomeIdle(): void {
    this.#scheduled = false;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
