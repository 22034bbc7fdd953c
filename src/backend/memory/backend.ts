/** The memory backend: each method is one step in one turn of the event loop, and answers with a promise that is settled already. */

import { closedError, QueueFSError, queueNotFound, quote } from "../../core/errors.ts";
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
} from "../../core/message.ts";
import { type MessageId, parseQueueName, parseTaskId, type QueueName, type Receipt, type TaskId } from "../../core/names.ts";
import { type StopPeriodic, startPeriodic } from "../../core/periodic.ts";
import {
  checkAcks,
  checkChangedSettings,
  checkExtensions,
  checkMessages,
  checkNacks,
  checkNewSettings,
  checkPage,
  checkSelection,
  checkTexts,
  type DequeueRequest,
  storableReason,
} from "../../core/request.ts";
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
} from "../../core/task.ts";
import { checkNewTask, checkRenewals, checkSeal, checkTaskChange, checkTaskList } from "../../core/task-request.ts";
import { TurnGate } from "../../core/turn.ts";
import type { Backend, BackendDescription, ChangeListener } from "../contract.ts";
import { acknowledgeAll, acknowledgeAndForward } from "./acknowledge.ts";
import { Admission, type Step } from "./admission.ts";
import { acknowledge, applyTime, deliver, drop, extend, findNext, nack, redrive, release, timeToNext } from "./deliveries.ts";
import { readDequeue } from "./dequeue-request.ts";
import { inspectStore } from "./inspect.ts";
import {
  isSettled,
  markPlace,
  pageOfDeadLetters,
  pageOfFailures,
  pageOfMessages,
  pageOfTasks,
  statisticsOf,
  toMessage,
} from "./listing.ts";
import type { MemoryConfiguration } from "./options.ts";
import type { QueueState } from "./queue-state.ts";
import { deliverOnce } from "./repeat.ts";
import type { MemoryStore, Subscription } from "./store.ts";
import type { TaskState } from "./task-state.ts";
import { cancelTask, createTask, redriveTask, removePending, removeTask, renewProducer, sealTask, updateTask } from "./task-steps.ts";
import { checkRoom } from "./totals.ts";

/** Calls and messages after which the event loop turns: a quarter of a millisecond of plain work, so that turning costs a few percent. */
const STEPS_PER_TURN = 1_000;

/** One client of a memory store. */
export class MemoryBackend implements Backend {
  readonly description: BackendDescription;
  readonly #configuration: MemoryConfiguration;
  readonly #store: MemoryStore;
  readonly #subscriptions = new Set<Subscription>();
  readonly #stopSweep: StopPeriodic;
  readonly #wallMs: () => number;
  readonly #turns = new TurnGate(STEPS_PER_TURN);
  #isClosed = false;

  constructor(configuration: MemoryConfiguration) {
    const { bounds, clock, sweepIntervalMs, onError } = configuration;
    this.description = {
      kind: "memory",
      location: "memory:",
      durable: false,
      sharedBy: "process",
      storeId: configuration.store.resources.id,
      maxMessageBytes: bounds.maxMessageBytes,
    };
    this.#configuration = configuration;
    this.#store = configuration.store;
    this.#wallMs = () => Math.floor(clock.wallMs());
    // A blocked event loop delays the sweep, no more: it compares times, it does not count its runs.
    this.#stopSweep = startPeriodic(clock, sweepIntervalMs, async () => this.#recover().more, onError);
  }

  async createQueue(queue: QueueName, settings?: Partial<QueueSettings>): Promise<"created" | "exists"> {
    parseQueueName(queue);
    const checked = checkNewSettings(settings);
    const store = this.#open();
    if (store.queues.has(queue)) return "exists";
    store.create(queue, checked, this.#wallMs(), this.#configuration.bounds.maxQueues);
    return "created";
  }

  async configureQueue(queue: QueueName, settings: Partial<QueueSettings>): Promise<QueueSettings> {
    const changed = checkChangedSettings(settings);
    const state = this.#queue(queue);
    state.settings = { ...state.settings, ...changed };
    this.#store.changed(queue);
    return state.settings;
  }

  async removeQueue(path: QueueName, options?: { readonly recursive?: boolean }): Promise<number> {
    const removed = this.#open().remove(path, options?.recursive === true);
    this.#settleTasks();
    return removed;
  }

  async listQueues(options?: PageOptions & { readonly under?: QueueName | "" }): Promise<Page<QueueName>> {
    const { after, limit, under } = checkPage(options);
    const names = this.#open().names.within(under, after, limit + 1);
    if (names.length <= limit) return { items: names };
    const items = names.slice(0, limit);
    return { items, next: items[limit - 1] as string };
  }

  async enqueue(queue: QueueName, messages: readonly NewMessage[]): Promise<EnqueueAnswer[]> {
    return this.#answer(this.#enqueue(queue, messages), messages.length);
  }

  #enqueue(queue: QueueName, messages: readonly NewMessage[]): EnqueueAnswer[] {
    checkMessages(messages, this.#configuration.bounds.maxMessageBytes);
    const state = this.#queue(queue);
    let bytes = 0;
    let isPlain = true;
    for (const message of messages) {
      bytes += message.data.length;
      isPlain &&= message.id === undefined && message.delayMs === undefined;
    }
    const answers = isPlain ? this.#append(state, messages, bytes) : this.#admit(state, messages);
    this.#store.changed(queue);
    return answers;
  }

  /** Messages without id and delay need no plan, and no monotonic clock. */
  #append(queue: QueueState, messages: readonly NewMessage[], bytes: number): EnqueueAnswer[] {
    const { totals, tasks } = queue.resources;
    checkRoom(totals, this.#configuration.bounds, messages.length, bytes, 0);
    const wallMs = this.#wallMs();
    const [only] = messages;
    if (messages.length === 1 && only !== undefined) {
      const owner = only.task === undefined ? undefined : tasks.open(only.task);
      const id = queue.append(only.data, undefined, 0, wallMs, 0, owner);
      if (owner !== undefined) tasks.settle(wallMs);
      return [{ outcome: "enqueued", id }];
    }
    // All tasks must take more work before anything is stored.
    const owners = messages.map(({ task }) => (task === undefined ? undefined : tasks.open(task)));
    const answers = messages.map(
      ({ data }, index): EnqueueAnswer => ({ outcome: "enqueued", id: queue.append(data, undefined, 0, wallMs, 0, owners[index]) }),
    );
    tasks.settle(wallMs);
    return answers;
  }

  #admit(queue: QueueState, messages: readonly NewMessage[]): EnqueueAnswer[] {
    const admission = new Admission(queue.resources, this.#step());
    const plan = admission.plan(queue, messages);
    admission.check();
    const answers = admission.store(plan);
    this.#settleTasks();
    return answers;
  }

  async dequeue(queue: QueueName, options?: DequeueOptions): Promise<DeliveredMessage[]> {
    const deliveries = this.#dequeue(queue, readDequeue(options));
    return this.#answer(deliveries, deliveries.length);
  }

  #dequeue(queue: QueueName, request: DequeueRequest): DeliveredMessage[] {
    const state = this.#queue(queue);
    const { clock, random } = this.#configuration;
    const nowMs = clock.monotonicMs();
    if (applyTime(state, request.limit, nowMs, this.#wallMs)) this.#store.changed(queue);
    const delivered =
      request.requestId === undefined ? deliver(state, request, nowMs, random) : deliverOnce(state, request, nowMs, this.#configuration);
    if (delivered.length > 0) this.#store.changed(queue);
    this.#settleTasks();
    return delivered;
  }

  async ack(queue: QueueName, items: readonly AckItem[]): Promise<AckAnswer[]> {
    return this.#answer(this.#ack(queue, items), items.length);
  }

  #ack(queue: QueueName, items: readonly AckItem[]): AckAnswer[] {
    checkAcks(items);
    const state = this.#queue(queue);
    const answers = items.some((item) => item.forward !== undefined && item.forward.length > 0)
      ? acknowledgeAndForward(this.#store, state, items, this.#step())
      : acknowledgeAll(state, items);
    this.#store.changed(queue);
    this.#settleTasks();
    return answers;
  }

  async ackById(queue: QueueName, ids: readonly MessageId[]): Promise<("acked" | "not-in-processing")[]> {
    checkTexts("ack", ids);
    const state = this.#queue(queue);
    return this.#each(state, ids, (id) => {
      const entry = state.findProcessing(id);
      if (entry === undefined) return "not-in-processing";
      acknowledge(state, entry);
      return "acked";
    });
  }

  async nack(queue: QueueName, items: readonly NackItem[]): Promise<NackAnswer[]> {
    checkNacks(items);
    const state = this.#queue(queue);
    const nowMs = this.#configuration.clock.monotonicMs();
    return this.#each(state, items, (item) => nack(state, item, nowMs, this.#wallMs));
  }

  async release(queue: QueueName, receipts: readonly Receipt[]): Promise<ReleaseAnswer[]> {
    checkTexts("release", receipts);
    const state = this.#queue(queue);
    const nowMs = this.#configuration.clock.monotonicMs();
    return this.#each(state, receipts, (receipt) => release(state, receipt, nowMs));
  }

  async extend(queue: QueueName, items: readonly ExtendItem[]): Promise<("extended" | "stale")[]> {
    checkExtensions(items);
    const state = this.#queue(queue);
    const nowMs = this.#configuration.clock.monotonicMs();
    const answers = items.map((item) => extend(state, item, nowMs));
    return this.#answer(answers, answers.length);
  }

  async nextDue(queue: QueueName): Promise<number | undefined> {
    return timeToNext(this.#queue(queue), this.#configuration.clock.monotonicMs());
  }

  async peek(queue: QueueName): Promise<Message | undefined> {
    const state = this.#queue(queue);
    const entry = findNext(state, this.#configuration.clock.monotonicMs());
    return entry === undefined ? undefined : toMessage(state, entry);
  }

  async messages(queue: QueueName, options?: PageOptions): Promise<Page<ListedMessage>> {
    return pageOfMessages(this.#queue(queue), options);
  }

  async clear(queue: QueueName): Promise<Cleared> {
    const cleared = this.#queue(queue).clear();
    this.#store.changed(queue);
    this.#settleTasks();
    return cleared;
  }

  async status(queue: QueueName): Promise<Status> {
    return this.#answer(this.#queue(queue).status, 1);
  }

  async statuses(selection: QueueSelection): Promise<QueueStatus[]> {
    const statuses = this.#open().select(checkSelection(selection)).map(statusOf);
    return this.#answer(statuses, statuses.length);
  }

  async mark(selection: QueueSelection): Promise<Mark> {
    const queues = this.#open().select(checkSelection(selection));
    return { queues: queues.map((queue) => ({ queue: queue.name, place: markPlace(queue) })) };
  }

  async reached(mark: Mark): Promise<MarkAnswer> {
    this.#open();
    let reached = true;
    const statuses = mark.queues.map(({ queue: name, place }) => {
      const queue = this.#queue(name);
      const settled = isSettled(queue, place);
      if (settled === undefined) throw queueNotFound(name);
      reached &&= settled;
      return statusOf(queue);
    });
    return { reached, statuses };
  }

  async statistics(queue: QueueName): Promise<Statistics> {
    return statisticsOf(this.#queue(queue), this.#configuration.clock.monotonicMs(), this.#wallMs());
  }

  async recover(): Promise<Recovered> {
    this.#open();
    return this.#recover();
  }

  async deadLetters(queue: QueueName, options?: PageOptions): Promise<Page<DeadLetter>> {
    return pageOfDeadLetters(this.#queue(queue), options);
  }

  async redrive(queue: QueueName, ids: readonly MessageId[]): Promise<("redriven" | "not-found")[]> {
    checkTexts("redrive", ids);
    const state = this.#queue(queue);
    this.#store.changed(queue);
    const answers = redrive(state, ids);
    this.#settleTasks();
    return answers;
  }

  async drop(queue: QueueName, ids: readonly MessageId[]): Promise<("dropped" | "not-found")[]> {
    checkTexts("drop", ids);
    const state = this.#queue(queue);
    this.#store.changed(queue);
    return drop(state, ids);
  }

  async createTask(task: NewTask, batches: readonly Forward[] = []): Promise<CreatedTask> {
    const request = checkNewTask(task);
    const created = createTask(this.#open(), request, batches, this.#step(), this.#configuration.random);
    this.#settleTasks();
    const shown = created.task.show();
    if (created.enqueued === undefined) return { outcome: "exists", task: shown };
    const { producer } = created.task;
    return { outcome: "created", task: shown, ...(producer === undefined ? {} : { producer: producer.token }), enqueued: created.enqueued };
  }

  async task(id: TaskId): Promise<Task> {
    return this.#task(id).show();
  }

  async tasks(options?: TaskListOptions): Promise<Page<Task>> {
    return pageOfTasks(this.#open().resources.tasks, checkTaskList(options));
  }

  async updateTask(id: TaskId, change: TaskChange): Promise<Task> {
    const checked = checkTaskChange(change);
    const task = this.#task(id);
    updateTask(this.#store, task, checked);
    this.#settleTasks();
    return task.show();
  }

  async sealTask(id: TaskId, options?: SealOptions): Promise<SealedTask> {
    const checked = checkSeal(options);
    const task = this.#task(id);
    const isSealed = sealTask(this.#store, task, checked);
    this.#settleTasks();
    return { outcome: isSealed ? "sealed" : "stale", task: task.show() };
  }

  async renewProducers(items: readonly ProducerRenewal[]): Promise<("renewed" | "stale")[]> {
    checkRenewals(items);
    const store = this.#open();
    const nowMs = this.#configuration.clock.monotonicMs();
    return items.map((item) => renewProducer(store, item, nowMs));
  }

  async cancelTask(id: TaskId, options?: { readonly reason?: string }): Promise<CancelledTask> {
    const task = this.#task(id);
    cancelTask(this.#store, task, storableReason(options?.reason) || undefined);
    const { removed, more } = task.ended === undefined ? removePending(this.#store, task) : { removed: 0, more: false };
    this.#settleTasks();
    return { task: task.show(), removed, more };
  }

  async redriveTask(from: TaskId, into: TaskId): Promise<RedrivenTask> {
    const redriven = redriveTask(this.#open(), parseTaskId(from), parseTaskId(into));
    this.#settleTasks();
    return redriven;
  }

  async removeTask(id: TaskId): Promise<void> {
    removeTask(this.#store, this.#task(id));
    this.#store.changed();
  }

  async taskFailures(id: TaskId, options?: PageOptions): Promise<Page<TaskFailure>> {
    return pageOfFailures(this.#task(id), options);
  }

  subscribe(listener: ChangeListener): () => void {
    if (typeof listener !== "function") throw new QueueFSError("invalid-argument", `subscribe takes a function, got ${quote(listener)}`);
    const subscription: Subscription = { listener, onError: this.#configuration.onError };
    this.#open().subscriptions.add(subscription);
    this.#subscriptions.add(subscription);
    return () => {
      this.#store.subscriptions.delete(subscription);
      this.#subscriptions.delete(subscription);
    };
  }

  async inspect(): Promise<Finding[]> {
    return inspectStore(this.#open(), this.#configuration.bounds);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const subscription of this.#subscriptions) this.#store.subscriptions.delete(subscription);
    this.#subscriptions.clear();
    await this.#stopSweep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #open(): MemoryStore {
    if (this.#isClosed) throw closedError("the memory store");
    return this.#store;
  }

  #queue(name: QueueName): QueueState {
    return this.#open().queue(name);
  }

  #task(id: TaskId): TaskState {
    return this.#open().resources.tasks.get(parseTaskId(id));
  }

  /** The last thing of each step that may have changed a task. */
  #settleTasks(): void {
    const { tasks } = this.#store.resources;
    if (!tasks.isTouched) return;
    tasks.settle(this.#wallMs());
    this.#store.changed();
  }

  #step(): Step {
    const { clock, rememberMs, bounds } = this.#configuration;
    return { nowMs: clock.monotonicMs(), wallMs: this.#wallMs(), rememberMs, bounds };
  }

  #recover(): Recovered {
    const { clock, rememberMs } = this.#configuration;
    const recovered = this.#store.recover(clock.monotonicMs(), this.#wallMs, rememberMs);
    this.#settleTasks();
    return recovered;
  }

  /** Answers item for item in one step, and tells listeners. */
  #each<Item, Answer>(queue: QueueState, items: readonly Item[], change: (item: Item) => Answer): Answer[] | Promise<Answer[]> {
    const answers = items.map(change);
    this.#store.changed(queue.name);
    this.#settleTasks();
    return this.#answer(answers, answers.length);
  }

  /** The answer of a step that was made, late where the event loop has to turn first. */
  #answer<Answer>(answer: Answer, items: number): Answer | Promise<Answer> {
    const turn = this.#turns.pass(items + 1);
    return turn === undefined ? answer : turn.then(() => answer);
  }
}

function statusOf(queue: QueueState): QueueStatus {
  return { queue: queue.name, ...queue.status };
}
