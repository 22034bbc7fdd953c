/**
 * What a store must offer to keep queues. The contract speaks queue, not store; each method is one atomic step, and all
 * backends pass the one conformance suite in queuefs/testing.
 *
 * Names, ids and receipts arrive parsed (branded types), and `createQueue` parses once more, so that no unparsed name gets in; numbers are checked by the backend with the functions of
 * `request.ts`. Any method may reject with `closed`, `store-busy`, `store-unreachable`, `outcome-unknown` (network backends: the
 * step may have happened), `store-read-only`, `store-corrupt` or `store-failed`; all that name a queue with `queue-not-found`.
 */

import type {
  AckAnswer,
  AckItem,
  Cleared,
  DeadLetter,
  DeliveredMessage,
  DequeueOptions,
  EnqueueAnswer,
  ExtendItem,
  Finding,
  Forward,
  ListedMessage,
  Mark,
  MarkAnswer,
  Message,
  NackAnswer,
  NackItem,
  NewMessage,
  Page,
  PageOptions,
  QueueSelection,
  QueueSettings,
  QueueStatus,
  Recovered,
  ReleaseAnswer,
  Statistics,
  Status,
} from "../core/message.ts";
import type { MessageId, QueueName, Receipt, TaskId } from "../core/names.ts";
import type {
  CancelledTask,
  CreatedTask,
  NewTask,
  ProducerRenewal,
  RedrivenTask,
  SealedTask,
  SealOptions,
  Task,
  TaskChange,
  TaskFailure,
  TaskListOptions,
} from "../core/task.ts";

/** What a backend says of itself. */
export interface BackendDescription {
  /** `memory`, `sqlite`, `redis`, … */
  readonly kind: string;
  /** Where the state is, fit for a message to people: no secrets. */
  readonly location: string;
  /** Whether what `enqueue` resolved outlives the process. */
  readonly durable: boolean;
  /** Who can share the store: this process only, the processes of this host, or many hosts. */
  readonly sharedBy: "process" | "host" | "hosts";
  /** Differs between stores, and is the same for all who have this one open. */
  readonly storeId: string;
  /** Bytes that one message, and all messages of one call together, may have. */
  readonly maxMessageBytes: number;
}

/**
 * How another thread of this process opens the same store: `exportName` of the module at the URL `module`, called with `options`, which can be
 * cloned to a thread. It may hold secrets: never log it.
 */
export interface Reopening {
  readonly module: string;
  readonly exportName: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * Called when something may have changed in these queues (`undefined` for any), or in some task (then the set may be empty). May be called
 * without need; calls may be merged.
 */
export type ChangeListener = (queues: ReadonlySet<QueueName> | undefined) => void;

/** One open store. Opened by its backend's `open…` function, which resolves when it works. */
export interface Backend extends AsyncDisposable {
  readonly description: BackendDescription;
  /** How another thread opens the same store, so that leases are renewed while this thread is busy; absent when no other thread can. */
  readonly reopening?: Reopening;

  /** Makes a queue. `exists` changes nothing, its settings neither. */
  createQueue(queue: QueueName, settings?: Partial<QueueSettings>): Promise<"created" | "exists">;
  /** Changes settings of a queue, those given; answers with all. */
  configureQueue(queue: QueueName, settings: Partial<QueueSettings>): Promise<QueueSettings>;
  /**
   * Removes the queue `path`, and with `recursive` all queues under it as well (then `path` may be a plain directory), with their messages
   * and dead letters, in one step, and answers how many queues. Neighbours are untouched; receipts of what was removed are stale.
   *
   * @throws `queue-not-found` when there is none to remove, `not-empty` without `recursive` when queues lie under it
   */
  removeQueue(path: QueueName, options?: { readonly recursive?: boolean }): Promise<number>;
  /** Names of the queues at and under a path (`""`, the default, for all), in the order of {@link compareNames}. `after` may be any text. */
  listQueues(options?: PageOptions & { readonly under?: QueueName | "" }): Promise<Page<QueueName>>;

  /** Stores messages, all in one step, in the order given. Each gets its own answer; conflicts do not hinder the others. */
  enqueue(queue: QueueName, messages: readonly NewMessage[]): Promise<EnqueueAnswer[]>;
  /**
   * Hands out the oldest available messages in one step: pending -> processing with owner, lease and receipt. Ended leases of the queue are
   * recovered in the same step, before it looks: up to 500 of them, and more while nothing is available. An empty array means that nothing is available now.
   */
  dequeue(queue: QueueName, options?: DequeueOptions): Promise<DeliveredMessage[]>;
  /** Removes messages by receipt, and stores what they forward, all in one step. A missing forward queue fails the whole call, changing nothing. */
  ack(queue: QueueName, items: readonly AckItem[]): Promise<AckAnswer[]>;
  /** Removes messages in processing by id; a pending message is never removed. */
  ackById(queue: QueueName, ids: readonly MessageId[]): Promise<("acked" | "not-in-processing")[]>;
  /** Gives messages back after a failure, with their old places; or to the dead letters when given up or their deliveries are used up. */
  nack(queue: QueueName, items: readonly NackItem[]): Promise<NackAnswer[]>;
  /** Gives messages back, at their old places, as if they had not been delivered: the delivery does not count. */
  release(queue: QueueName, receipts: readonly Receipt[]): Promise<ReleaseAnswer[]>;
  /**
   * How long until a dequeue could find something merely because time passed, in milliseconds: 0 when a message is available now, else the
   * time to the earliest end of a lease or of a delay, else `undefined`. For consumers that sleep; new messages are told by `subscribe`.
   */
  nextDue(queue: QueueName): Promise<number | undefined>;
  /** Renews leases, counted from this step. A lease that has ended but was not recovered yet is still current and is renewed. */
  extend(queue: QueueName, items: readonly ExtendItem[]): Promise<("extended" | "stale")[]>;

  /** The message that a dequeue would take now, or `undefined`. Changes nothing. */
  peek(queue: QueueName): Promise<Message | undefined>;
  /** Unacked messages in queue order. Changes nothing. Each page is one snapshot. */
  messages(queue: QueueName, options?: PageOptions): Promise<Page<ListedMessage>>;
  /** Removes all unacked messages in one step; later acks of those are stale. Dead letters stay. */
  clear(queue: QueueName): Promise<Cleared>;

  /** Both numbers of one queue, read together. The cost does not depend on how many messages there are. */
  status(queue: QueueName): Promise<Status>;
  /** The status of several queues, all in one snapshot, in the order asked for (named) or of listing (subtree; may be empty). */
  statuses(selection: QueueSelection): Promise<QueueStatus[]>;
  /** This moment, to be waited for: all that was enqueued into these queues before. */
  mark(selection: QueueSelection): Promise<Mark>;
  /**
   * Whether every message enqueued before the mark is settled, judged in one snapshot. Redelivery does not move a message across the mark.
   * A queue cleared since counts as settled; a queue that was removed rejects with `queue-not-found`, also when a new one has its name.
   */
  reached(mark: Mark): Promise<MarkAnswer>;
  /** Counts, ages and settings of a queue; its pending and processing are one snapshot. */
  statistics(queue: QueueName): Promise<Statistics>;

  /**
   * One bounded step of recovery in all queues and tasks: ended leases, owners and producers that are gone, what is left of cancelled tasks,
   * records of tasks that were kept long enough. Open stores run it by themselves; calling it more often is harmless.
   */
  recover(): Promise<Recovered>;
  /** Dead letters of a queue in the order they came. */
  deadLetters(queue: QueueName, options?: PageOptions): Promise<Page<DeadLetter>>;
  /** Makes dead letters pending again, with their ids, at their old places, and with a delivery count of 0. */
  redrive(queue: QueueName, ids: readonly MessageId[]): Promise<("redriven" | "not-found")[]>;
  /** Removes dead letters for good. */
  drop(queue: QueueName, ids: readonly MessageId[]): Promise<("dropped" | "not-found")[]>;

  // Tasks. A task's counts change in the very step that changes its messages, and it ends in the step that settles its last unacked message
  // once it is sealed: as `cancelled` when it was cancelling, as `failed` when a message of it ended in failure or its producer failed, else
  // as `completed`. From then on it never changes, and its record is removed when `keepMs` of that status has passed.
  //
  // `enqueue`, `ack` with forwards and `createTask` reject with `task-not-found` or `task-ended`, changing nothing, when a message that would be
  // stored names a task that takes no more work; a repeat, known by its id, gets its first answer all the same. A nack, release or recovery of a message whose task is cancelling removes it, and a dequeue never hands one out. What
  // is cleared or removed with its queue counts as failed. A redrive returns a dead letter to its task while that goes on; after the end of
  // its task a redriven message belongs to none.

  /** Makes a task and stores its first messages, all in one step. A missing queue fails the whole call, changing nothing. */
  createTask(task: NewTask, batches?: readonly Forward[]): Promise<CreatedTask>;
  /** One task, of one moment. @throws `task-not-found` */
  task(id: TaskId): Promise<Task>;
  /** Tasks, newest first. A page looks through 1,000 tasks at most: it may be short, even empty, and still have a next one. */
  tasks(options?: TaskListOptions): Promise<Page<Task>>;
  /** Changes what is said of a task. @throws `task-not-found`, `task-ended` once it has ended; a cancelling one may still be changed */
  updateTask(id: TaskId, change: TaskChange): Promise<Task>;
  /** Says that nobody adds to a task any more but its own handlers. It ends in this step when none of its messages is unacked. @throws `task-not-found` */
  sealTask(id: TaskId, options?: SealOptions): Promise<SealedTask>;
  /**
   * Renews the leases of producers. One that ends before its producer sealed the task seals it with a failure, in the recovery of whatever
   * process; a process that is gone (same host, SQLite) ends it too.
   */
  renewProducers(items: readonly ProducerRenewal[]): Promise<("renewed" | "stale")[]>;
  /**
   * Cancels a task: it is sealed and takes no more work from this step on, its pending messages are removed, and it ends once those in
   * processing are settled. One step removes a bounded number; call again while there is `more` (recovery does so too). Repeats are harmless,
   * and a task that has ended stays as it is. @throws `task-not-found`
   */
  cancelTask(id: TaskId, options?: { readonly reason?: string }): Promise<CancelledTask>;
  /**
   * Makes dead letters of the task `from` pending again, as messages of the task `into`, as {@link redrive} does: a bounded number of them,
   * the oldest first. Both may be the same while it goes on. @throws `task-not-found`; `task-ended` when `into` takes no more work
   */
  redriveTask(from: TaskId, into: TaskId): Promise<RedrivenTask>;
  /** Removes the record of a task that has ended; dead letters stay with their queues. @throws `task-not-found`, `task-active` */
  removeTask(id: TaskId): Promise<void>;
  /** Messages of a task that are dead letters now, in the order they came, over all queues. @throws `task-not-found` */
  taskFailures(id: TaskId, options?: PageOptions): Promise<Page<TaskFailure>>;

  /**
   * Calls `listener` soon after anything changed in the store, by whatever process; the caller then looks again. It is a hint: callers keep
   * a slow poll as a safety net. Does not keep the process alive.
   *
   * @returns a function that ends it
   */
  subscribe(listener: ChangeListener): () => void;

  /** Looks over the whole store: integrity, counters against records, orphans, versions, settings. May take long. */
  inspect(): Promise<Finding[]>;

  /**
   * Waits for calls in the air, then lets go of the store. Later calls reject with `closed`; closing twice is harmless. Deliveries in
   * hand stay in processing until their lease ends or, when the process ends, its death is seen.
   */
  close(): Promise<void>;
}
