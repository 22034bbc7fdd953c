/** The contract over one SQLite file: each method checks what it was asked and hands it to the step that does it. */

import { closedError, isQueueFSError, type QueueFSError } from "../../core/errors.ts";
import type * as shapes from "../../core/message.ts";
import { type MessageId, parseQueueName, type QueueName, type Receipt, type TaskId } from "../../core/names.ts";
import { type StopPeriodic, startPeriodic } from "../../core/periodic.ts";
import {
  checkAcks,
  checkChangedSettings,
  checkDequeue,
  checkExtensions,
  checkMessages,
  checkNacks,
  checkNewSettings,
  checkPage,
  checkSelection,
  checkTexts,
  storableReason,
} from "../../core/request.ts";
import type * as tasks from "../../core/task.ts";
import { checkNewTask, checkRenewals, checkSeal, checkTaskChange, checkTaskList } from "../../core/task-request.ts";
import { nextTurn, TurnCounter } from "../../core/turn.ts";
import type { Backend, BackendDescription, ChangeListener, Reopening } from "../contract.ts";
import type { AGAIN } from "./answer.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { Database } from "./connection.ts";
import { deadLettersPage, dropOne, redriveOne } from "./dead-letters.ts";
import { dequeueFrom } from "./dequeue.ts";
import { admitTasks, copyMessages, enqueueInto, payloadBytes } from "./enqueue.ts";
import { identifyThisProcess } from "./host.ts";
import { inspectStore } from "./inspect.ts";
import type { SqliteSettings } from "./options.ts";
import { clearQueue, configureQueue, createQueue, removeQueue } from "./queues.ts";
import {
  findRow,
  readMark,
  readMessages,
  readNextDue,
  readPeek,
  readReached,
  readStatistics,
  readStatus,
  readStatuses,
} from "./reading.ts";
import { findGoneSessions, isRecoveryDue, recoverStep, type Search } from "./recovery.ts";
import { ackIdOne, ackItems, extendOne, nackOne, releaseOne } from "./settle.ts";
import { Space } from "./space.ts";
import { isBusy, isCorrupt, translate } from "./sqlite-error.ts";
import type { Step, StoreContext } from "./step.ts";
import { readFailures, readTask, readTasks } from "./task-reading.ts";
import { cancelTask, checkBatches, createTask, redriveTask, removeTask, renewProducer, sealTask, updateTask } from "./tasks.ts";
import { isTidyDue, tidyStep } from "./tidy.ts";
import { WakeUp } from "./wake-up.ts";
import { type CallTraits, ITEM_BYTES, Writer } from "./writer.ts";

/** How often a read that met a busy file is tried before it fails. */
const READ_ATTEMPTS = 200;
/** How long opening waits for the write lock before it leaves recovery to the sweep, in milliseconds. */
const OPEN_PATIENCE_MS = 200;

/** Commits between two sweeps up to which a store counts as idle: a sweep makes one or two itself. */
const IDLE_COMMITS = 20;
/** The kind of an enqueue. */
const ENQUEUE = { is: "enqueue" } as const;
/** The session of deliveries that belong to whoever knows the receipt. */
const NOBODY = (): null => null;

/** One open SQLite store. */
export class SqliteBackend implements Backend {
  readonly description: BackendDescription;
  readonly reopening: Reopening;
  readonly #database: Database;
  readonly #context: StoreContext;
  readonly #settings: SqliteSettings;
  readonly #space: Space;
  readonly #wakeUp: WakeUp;
  readonly #checkpoints: Checkpoints;
  readonly #writer: Writer;
  readonly #stopSweep: StopPeriodic;
  readonly #turns = new TurnCounter(64);
  #sessionNumber: number | undefined;
  #search: Search | undefined;
  /** Commits since the last sweep. */
  #commits = 0;
  #closing: Promise<void> | undefined;

  constructor(database: Database, context: StoreContext, settings: SqliteSettings, reopening: Reopening) {
    this.#database = database;
    this.#context = context;
    this.#settings = settings;
    this.reopening = reopening;
    this.description = {
      kind: "sqlite",
      location: settings.path,
      durable: true,
      sharedBy: "host",
      storeId: context.storeId,
      maxMessageBytes: settings.maxMessageBytes,
    };
    this.#space = new Space(database, settings.path, settings.minFreeBytes, context.clock);
    this.#wakeUp = new WakeUp(database, settings.path, context.clock, settings.sweepIntervalMs, settings.onError);
    this.#checkpoints = new Checkpoints(database, { path: settings.path, durability: settings.durability }, settings.onError);
    this.#writer = new Writer(database, context, settings, {
      onCommit: (stored) => {
        this.#commits += 1;
        this.#checkpoints.afterCommit(stored);
      },
      onChange: (queues) => this.#wakeUp.notify(queues),
      makeRoom: () => this.#space.makeRoom(),
    });
    this.#stopSweep = startPeriodic(context.clock, settings.sweepIntervalMs, () => this.#sweep(), settings.onError);
  }

  /** Refuses to store more when the disk is full, or nearly. @throws QueueFSError `store-full` */
  #admit(bytes: number): void {
    this.#space.admit(bytes);
    try {
      this.#checkpoints.admit();
    } catch (error) {
      throw translate(error, this.#settings.path);
    }
  }

  async #sweep(): Promise<boolean> {
    // First, since what follows may fail: where this process may not write, or others do for long.
    this.#wakeUp.sweep();
    try {
      const { more } = await this.recover();
      const untidy = (await this.#read(isTidyDue)) && (await this.#writer.run(tidyStep));
      const commits = this.#commits;
      this.#commits = 0;
      return this.#space.shrink(commits > 0, commits > IDLE_COMMITS) || more || untidy;
    } catch (error) {
      const translated = translate(error, this.#settings.path);
      // Whoever may write will sweep.
      if (isQueueFSError(translated, "store-read-only")) return false;
      throw translated;
    }
  }

  // Written in the transaction of a delivery that it holds; looked up once per transaction, since an earlier one may have been undone.
  readonly #session = (step: Step): number => {
    if (step.session === undefined) {
      if (this.#sessionNumber === undefined || step.sql.sessionExists.get(this.#sessionNumber) === undefined) {
        const { processId, started, namespace } = identifyThisProcess();
        this.#sessionNumber = Number(step.sql.insertSession.run(processId, started, namespace).lastInsertRowid);
      }
      step.session = this.#sessionNumber;
    }
    return step.session;
  };

  #write<Result>(check: () => (step: Step) => Result | typeof AGAIN, traits?: CallTraits): Promise<Result> {
    try {
      return this.#writer.run(check(), traits);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #read<Result>(read: (context: StoreContext) => Result, options?: { readonly evenDamaged: true }): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#closing !== undefined) throw closedError(`store ${this.#settings.path}`);
      if (this.#writer.failure !== undefined && options === undefined) throw this.#writer.failure;
      if (this.#turns.isTurnDue()) await nextTurn();
      try {
        return read(this.#context);
      } catch (error) {
        const translated = translate(error, this.#settings.path);
        if (isCorrupt(error)) this.#writer.fail(translated as QueueFSError);
        if (!isBusy(error) || attempt === READ_ATTEMPTS) throw translated;
        await new Promise<void>((resolve) => setTimeout(resolve, 1 + this.#context.random.fraction() * 10));
      }
    }
  }

  #snapshot<Result>(read: (context: StoreContext) => Result): Promise<Result> {
    return this.#read((context) => this.#database.transaction(() => read(context))());
  }

  createQueue(queue: QueueName, settings?: Partial<shapes.QueueSettings>): Promise<"created" | "exists"> {
    return this.#write(() => {
      const name = parseQueueName(queue);
      const complete = checkNewSettings(settings);
      return (step) => createQueue(step, name, complete);
    });
  }

  configureQueue(queue: QueueName, settings: Partial<shapes.QueueSettings>): Promise<shapes.QueueSettings> {
    return this.#write(() => {
      const changed = checkChangedSettings(settings);
      return (step) => configureQueue(step, queue, changed);
    });
  }

  removeQueue(path: QueueName, options?: { readonly recursive?: boolean }): Promise<number> {
    return this.#write(() => (step) => removeQueue(step, path, options?.recursive === true));
  }

  listQueues(options?: shapes.PageOptions & { readonly under?: QueueName | "" }): Promise<shapes.Page<QueueName>> {
    return this.#read(({ sql }) => {
      const { after = "", limit, under } = checkPage(options);
      const rows = under === "" ? sql.names.all(after, limit + 1) : sql.namesWithin.all(under, after, under, after, under, limit + 1);
      const names = (rows as [QueueName][]).map(([name]) => name);
      return names.length > limit ? { items: names.slice(0, limit), next: names[limit - 1] as string } : { items: names };
    });
  }

  enqueue(queue: QueueName, messages: readonly shapes.NewMessage[]): Promise<shapes.EnqueueAnswer[]> {
    try {
      checkMessages(messages, this.#settings.maxMessageBytes);
      const copies = copyMessages(messages);
      const bytes = payloadBytes(copies);
      this.#admit(bytes);
      return this.#writer.run(
        (step) => {
          const row = step.queue(queue);
          admitTasks(step, row, copies);
          return enqueueInto(step, row, copies);
        },
        { bytes: bytes + copies.length * ITEM_BYTES, grows: true, kind: ENQUEUE },
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  dequeue(queue: QueueName, options?: shapes.DequeueOptions): Promise<shapes.DeliveredMessage[]> {
    try {
      const request = checkDequeue(options);
      const session = request.owner === "process" ? this.#session : NOBODY;
      const kind = request.requestId === undefined ? ({ is: "dequeue", queue, request, session } as const) : undefined;
      return this.#writer.run((step) => dequeueFrom(step, step.queue(queue), request, () => session(step)), { kind });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  ack(queue: QueueName, items: readonly shapes.AckItem[]): Promise<shapes.AckAnswer[]> {
    try {
      checkAcks(items);
      let bytes = 0;
      let forwarded = 0;
      const copies = items.map((item) => {
        if (item.forward === undefined) return item;
        const forward = item.forward.map((one) => ({
          queue: one.queue,
          messages: copyMessages(checkMessages(one.messages, this.#settings.maxMessageBytes)),
        }));
        for (const one of forward) {
          bytes += payloadBytes(one.messages);
          forwarded += one.messages.length;
        }
        return { receipt: item.receipt, forward };
      });
      if (forwarded > 0) this.#admit(bytes);
      return this.#writer.run((step) => ackItems(step, step.queue(queue), copies), {
        bytes: bytes + (items.length + forwarded) * ITEM_BYTES,
        grows: forwarded > 0,
        kind: items.every((item) => item.forward === undefined) ? { is: "ack", queue, items: copies } : undefined,
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  ackById(queue: QueueName, ids: readonly MessageId[]): Promise<("acked" | "not-in-processing")[]> {
    return this.#each("ack", queue, ids, ackIdOne);
  }

  nack(queue: QueueName, items: readonly shapes.NackItem[]): Promise<shapes.NackAnswer[]> {
    return this.#each("nack", queue, items, nackOne, () => checkNacks(items));
  }

  release(queue: QueueName, receipts: readonly Receipt[]): Promise<shapes.ReleaseAnswer[]> {
    return this.#each("release", queue, receipts, releaseOne);
  }

  extend(queue: QueueName, items: readonly shapes.ExtendItem[]): Promise<("extended" | "stale")[]> {
    return this.#each("extend", queue, items, extendOne, () => checkExtensions(items));
  }

  redrive(queue: QueueName, ids: readonly MessageId[]): Promise<("redriven" | "not-found")[]> {
    return this.#each("redrive", queue, ids, redriveOne);
  }

  drop(queue: QueueName, ids: readonly MessageId[]): Promise<("dropped" | "not-found")[]> {
    return this.#each("drop", queue, ids, dropOne);
  }

  #each<Item, Answer>(
    what: string,
    queue: QueueName,
    items: readonly Item[],
    one: (step: Step, row: ReturnType<Step["queue"]>, item: Item) => Answer,
    check?: () => unknown,
  ): Promise<Answer[]> {
    return this.#write(
      () => {
        if (check === undefined) checkTexts(what, items as readonly string[]);
        else check();
        const copies = [...items];
        return (step) => {
          const row = step.queue(queue);
          return copies.map((item) => one(step, row, item));
        };
      },
      { bytes: Array.isArray(items) ? items.length * ITEM_BYTES : 0 },
    );
  }

  nextDue(queue: QueueName): Promise<number | undefined> {
    return this.#snapshot((context) => readNextDue(context, queue));
  }

  peek(queue: QueueName): Promise<shapes.Message | undefined> {
    return this.#snapshot((context) => readPeek(context, queue));
  }

  messages(queue: QueueName, options?: shapes.PageOptions): Promise<shapes.Page<shapes.ListedMessage>> {
    return this.#snapshot((context) => readMessages(context, queue, options));
  }

  clear(queue: QueueName): Promise<shapes.Cleared> {
    return this.#write(() => (step) => clearQueue(step, queue));
  }

  status(queue: QueueName): Promise<shapes.Status> {
    return this.#read((context) => readStatus(context, queue));
  }

  statuses(selection: shapes.QueueSelection): Promise<shapes.QueueStatus[]> {
    return this.#snapshot((context) => readStatuses(context, checkSelection(selection)));
  }

  mark(selection: shapes.QueueSelection): Promise<shapes.Mark> {
    return this.#snapshot((context) => readMark(context, checkSelection(selection)));
  }

  reached(mark: shapes.Mark): Promise<shapes.MarkAnswer> {
    return this.#snapshot((context) => readReached(context, mark));
  }

  statistics(queue: QueueName): Promise<shapes.Statistics> {
    return this.#snapshot((context) => readStatistics(context, queue));
  }

  recover(): Promise<shapes.Recovered> {
    return this.#recover(this.#settings.busyTimeoutMs);
  }

  async #recover(patienceMs: number): Promise<shapes.Recovered> {
    // Asking the system about processes is no work for a transaction; session numbers are never used again, so the answer keeps.
    const { gone, isDue } = await this.#read((context) => {
      const sessions = findGoneSessions(context);
      return { gone: sessions, isDue: isRecoveryDue(context, sessions) };
    });
    if (!isDue) return { recovered: 0, dead: 0, more: false };
    const from = this.#search;
    const { search, ...recovered } = await this.#writer.run((step) => recoverStep(step, gone, from), { patienceMs });
    this.#search = search;
    return recovered;
  }

  /**
   * Recovery at open. A file that cannot be written now, or never, can be read all the same: then the sweep recovers later, or whoever may
   * write does.
   */
  async recoverAtOpen(): Promise<void> {
    try {
      await this.#recover(Math.min(this.#settings.busyTimeoutMs, OPEN_PATIENCE_MS));
    } catch (error) {
      if (!isQueueFSError(error, "store-busy") && !isQueueFSError(error, "store-read-only") && !isQueueFSError(error, "store-full"))
        throw error;
    }
  }

  deadLetters(queue: QueueName, options?: shapes.PageOptions): Promise<shapes.Page<shapes.DeadLetter>> {
    return this.#snapshot((context) => deadLettersPage(context.sql, findRow(context, queue).life, options));
  }

  createTask(task: tasks.NewTask, batches: readonly shapes.Forward[] = []): Promise<tasks.CreatedTask> {
    try {
      const request = checkNewTask(task);
      const { copies, bytes, messages } = checkBatches(batches, this.#settings.maxMessageBytes);
      this.#admit(bytes);
      return this.#writer.run((step) => createTask(step, request, copies, () => this.#session(step)), {
        bytes: bytes + (messages + 1) * ITEM_BYTES,
        grows: true,
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  task(id: TaskId): Promise<tasks.Task> {
    return this.#snapshot((context) => readTask(context, id));
  }

  tasks(options?: tasks.TaskListOptions): Promise<shapes.Page<tasks.Task>> {
    return this.#snapshot((context) => readTasks(context, checkTaskList(options)));
  }

  updateTask(id: TaskId, change: tasks.TaskChange): Promise<tasks.Task> {
    return this.#write(() => {
      const request = checkTaskChange(change);
      return (step) => updateTask(step, id, request);
    });
  }

  sealTask(id: TaskId, options?: tasks.SealOptions): Promise<tasks.SealedTask> {
    return this.#write(() => {
      const request = checkSeal(options);
      return (step) => sealTask(step, id, request);
    });
  }

  renewProducers(items: readonly tasks.ProducerRenewal[]): Promise<("renewed" | "stale")[]> {
    return this.#write(() => {
      const copies = [...checkRenewals(items)];
      return (step) => copies.map((item) => renewProducer(step, item));
    });
  }

  cancelTask(id: TaskId, options?: { readonly reason?: string }): Promise<tasks.CancelledTask> {
    return this.#write(() => {
      const reason = storableReason(options?.reason);
      return (step) => cancelTask(step, id, reason);
    });
  }

  redriveTask(from: TaskId, into: TaskId): Promise<tasks.RedrivenTask> {
    return this.#write(() => (step) => redriveTask(step, from, into));
  }

  removeTask(id: TaskId): Promise<void> {
    return this.#write(() => (step) => removeTask(step, id));
  }

  taskFailures(id: TaskId, options?: shapes.PageOptions): Promise<shapes.Page<tasks.TaskFailure>> {
    return this.#snapshot(({ sql }) => readFailures(sql, id, options));
  }

  subscribe(listener: ChangeListener): () => void {
    if (this.#closing !== undefined) throw closedError(`store ${this.#settings.path}`);
    return this.#wakeUp.subscribe(listener);
  }

  inspect(): Promise<shapes.Finding[]> {
    return this.#read((context) => inspectStore(this.#database, context, this.#settings.path), { evenDamaged: true });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#wakeUp.close();
    // First, so that a sweep which is refused from now on tells nobody.
    const swept = this.#stopSweep();
    await this.#writer.close();
    await swept;
    // Before this connection: the last one to close takes the log in and removes it.
    await this.#checkpoints.close();
    this.#database.close();
    this.#space.afterClose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
