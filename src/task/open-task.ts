/** A task that its producer still adds to. */

import type { Backend } from "../backend/contract.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { isQueueFSError, producerLost, type QueueFSError } from "../core/errors.ts";
import type { MessageId, TaskId } from "../core/names.ts";
import type { Task, TaskChange } from "../core/task.ts";
import { cancellationsOf, type EnqueueOptions, enqueueOptionsFor, errorText, type NamedQueue, runInTask } from "../queue/index.ts";

/** A producer renews its lease when a third of it has passed, so that two renewals may fail before it ends. */
const RENEWALS_PER_LEASE = 3;

/** What an open task needs. */
export interface OpenTaskContext {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  readonly leaseMs: number;
}

/**
 * The producer's hold of a task: as long as it is there, the task does not end for lack of messages. Its lease is renewed until it seals;
 * when the process dies before, or the lease is lost, the task fails with that reason. `await using` seals at the end of its block, also when
 * the block throws: where a failure of the producer shall fail the task, use `tasks.run`, or call {@link OpenTask.fail}.
 */
export class OpenTask implements AsyncDisposable {
  /** The id of the task. */
  readonly id: TaskId;
  readonly #context: OpenTaskContext;
  readonly #producer: string;
  readonly #lost = new AbortController();
  readonly #unwatch: () => void;
  #timer: Timer | undefined;
  #sealing: Promise<Task> | undefined;
  #isFailing = false;

  /** Made by `tasks.open`. @internal */
  constructor(context: OpenTaskContext, id: TaskId, producer: string) {
    this.id = id;
    this.#context = context;
    this.#producer = producer;
    this.#unwatch = cancellationsOf(context.backend, context.clock).add(id, (reason) => this.#lost.abort(reason));
    this.#arm();
  }

  /** Aborted when the task takes no more work: it was cancelled, or this producer was taken for gone. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Stores a value for the task. @throws QueueFSError `task-ended` */
  enqueue<Value>(queue: NamedQueue<Value>, value: Value, options?: EnqueueOptions): Promise<MessageId> {
    return queue.enqueue(value, enqueueOptionsFor(this.id, options));
  }

  /** Stores values for the task, in one step. @throws QueueFSError `task-ended` */
  enqueueMany<Value>(
    queue: NamedQueue<Value>,
    values: readonly Value[],
    options: (value: Value, index: number) => EnqueueOptions = () => ({}),
  ): Promise<MessageId[]> {
    return queue.enqueueMany(values, (value, index) => enqueueOptionsFor(this.id, options(value, index)));
  }

  /** Calls `work`; what it enqueues into named queues of this store belongs to the task. */
  run<Result>(work: () => Result): Result {
    return runInTask({ backend: this.#context.backend, task: this.id }, work);
  }

  /** Changes what is said of the task. @throws QueueFSError `task-ended`, `invalid-argument`, `message-too-large` */
  update(change: TaskChange): Promise<Task> {
    return this.#context.backend.updateTask(this.id, change);
  }

  /**
   * Nothing more will be added; the task ends once its messages are settled, at once when they are. A second call answers the same.
   *
   * @throws QueueFSError `task-ended` when this producer had been taken for gone, or the task was cancelled
   */
  seal(): Promise<Task> {
    this.#sealing ??= this.#seal(undefined);
    return this.#sealing;
  }

  /**
   * Nothing more will be added, because the producer failed: the task ends as `failed` once its messages are settled. A second call answers the
   * same.
   *
   * @throws QueueFSError `task-ended` when it was sealed before, as without a failure
   */
  async fail(error: unknown): Promise<Task> {
    if (this.#sealing !== undefined && !this.#isFailing) {
      await this.#sealing;
      throw producerLost(this.id, "it was sealed before it failed");
    }
    this.#isFailing = true;
    this.#sealing ??= this.#seal(errorText(error));
    return this.#sealing;
  }

  async #seal(error: string | undefined): Promise<Task> {
    const options = { producer: this.#producer, ...(error === undefined ? {} : { error }) };
    try {
      const { outcome, task } = await this.#context.backend.sealTask(this.id, options);
      this.#end();
      if (outcome === "stale" && error === undefined) throw producerLost(this.id, lossOf(task));
      return task;
    } catch (failure) {
      // The lease is renewed on, so that a seal that did not reach the store can be tried again.
      if (!this.#lost.signal.aborted && isQueueFSError(failure) && failure.code !== "task-ended") this.#sealing = undefined;
      throw failure;
    }
  }

  #end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#unwatch();
  }

  #arm(): void {
    const { clock, leaseMs } = this.#context;
    this.#timer = clock.setTimer(() => void this.#renew(), leaseMs / RENEWALS_PER_LEASE);
  }

  async #renew(): Promise<void> {
    const { backend, leaseMs, onError } = this.#context;
    try {
      const [answer] = await backend.renewProducers([{ task: this.id, producer: this.#producer, leaseMs }]);
      if (answer === "stale" && this.#sealing === undefined) {
        this.#end();
        this.#lost.abort(await this.#lostReason());
        return;
      }
    } catch (error) {
      // The next renewal may reach the store; one that was closed renews nothing more.
      if (isQueueFSError(error, "closed")) return;
      onError(error);
    }
    if (this.#timer !== undefined) this.#arm();
  }

  async #lostReason(): Promise<QueueFSError> {
    try {
      return producerLost(this.id, lossOf(await this.#context.backend.task(this.id)));
    } catch {
      return producerLost(this.id, "it is gone");
    }
  }

  /** Seals, for `await using`. A task that was cancelled or given up meanwhile is left as it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.seal();
    } catch (error) {
      if (!isQueueFSError(error, "task-ended") && !isQueueFSError(error, "task-not-found")) throw error;
    }
  }
}

/** Why a task takes nothing more from its producer. */
function lossOf({ status, error }: Task): string {
  if (status === "cancelling" || status === "cancelled") return "it was cancelled";
  return error?.reason ?? `somebody else sealed it, and it is ${status}`;
}
