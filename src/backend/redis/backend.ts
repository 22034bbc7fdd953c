/** The contract over one namespace of a Redis or Valkey server: each method checks what it was asked and sends it as a part of a script call. */

import type { Timer } from "../../core/clock.ts";
import { assert, closedError, QueueFSError, queueNotFound } from "../../core/errors.ts";
import type * as shapes from "../../core/message.ts";
import { type MessageId, parseQueueName, parseTaskId, type QueueName, type Receipt, type TaskId } from "../../core/names.ts";
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
import type { Backend, BackendDescription, ChangeListener, Reopening } from "../contract.ts";
import { ByteReader } from "./bytes.ts";
import { ClearPart, ConfigurePart } from "./care-parts.ts";
import type { Changes } from "./changes.ts";
import type { Connection } from "./connection.ts";
import { DequeuePart } from "./dequeue-part.ts";
import { EnqueuePart } from "./enqueue-part.ts";
import { isOvertaken, overtaken } from "./failure.ts";
import { inspectNamespace } from "./inspect.ts";
import { type Keys, queueKey } from "./keys.ts";
import { openNamespace } from "./namespace.ts";
import type { RedisSettings } from "./options.ts";
import { KIND } from "./part.ts";
import { PROGRAMS } from "./programs.ts";
import { Reading } from "./reading.ts";
import { AckPart, ExtendPart, ForwardPart, IdPart, NackPart, ReleasePart } from "./receipt-parts.ts";
import type { Registry } from "./registry.ts";
import { encodeKeys, joinKeys, type ScriptRunner } from "./script-call.ts";
import type { Session } from "./session.ts";
import type { Steps } from "./steps.ts";
import { Sweep } from "./sweep.ts";
import { TaskReading } from "./task-reading.ts";
import { TaskSteps } from "./task-steps.ts";

/** How often a change of the registry begins anew because another came first. */
const MOST_ATTEMPTS = 100;

/** What an open store consists of. */
export interface RedisParts {
  readonly settings: RedisSettings;
  readonly connection: Connection;
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  readonly registry: Registry;
  readonly session: Session;
  readonly steps: Steps;
  readonly changes: Changes;
}

/** One open namespace. */
export class RedisBackend implements Backend {
  readonly description: BackendDescription;
  readonly reopening?: Reopening;
  readonly #parts: RedisParts;
  readonly #steps: Steps;
  readonly #maxMessageBytes: number;
  readonly #reading: Reading;
  readonly #taskReading: TaskReading;
  readonly #taskSteps: TaskSteps;
  readonly #sweep: Sweep;
  readonly #stopSweep: StopPeriodic;
  #closing: Promise<void> | undefined;

  constructor(parts: RedisParts, reopening?: Reopening) {
    const { settings, connection, runner, keys, registry, steps } = parts;
    this.#parts = parts;
    if (reopening !== undefined) this.reopening = reopening;
    this.#steps = steps;
    this.#maxMessageBytes = settings.maxMessageBytes;
    this.description = {
      kind: "redis",
      location: connection.location,
      durable: true,
      sharedBy: "hosts",
      storeId: registry.store,
      maxMessageBytes: settings.maxMessageBytes,
    };
    this.#reading = new Reading(runner, registry, settings.namespace, keys);
    this.#taskReading = new TaskReading(runner, registry, settings.namespace, keys);
    this.#taskSteps = new TaskSteps(steps, registry, this.#taskReading, keys, () => openNamespace(runner, keys, settings));
    this.#sweep = new Sweep(runner, steps, registry, this.#taskSteps, settings.namespace, keys);
    this.#stopSweep = startPeriodic(settings.clock, settings.sweepIntervalMs, () => this.#sweepOnce(), settings.onError);
  }

  async #sweepOnce(): Promise<boolean> {
    const { settings, changes } = this.#parts;
    changes.check(settings.clock.monotonicMs(), settings.commandTimeoutMs);
    return this.#sweep.run();
  }

  // What is asked is checked before the store is: the checks throw, the answer is a promise.
  #call<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    if (this.#closing !== undefined) return Promise.reject(closedError(`store ${this.description.location}`));
    try {
      return call();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  createQueue(queue: QueueName, settings?: Partial<shapes.QueueSettings>): Promise<"created" | "exists"> {
    return this.#call(() => this.#create(parseQueueName(queue), checkNewSettings(settings)));
  }

  async #create(name: QueueName, { maxDeliveries }: shapes.QueueSettings): Promise<"created" | "exists"> {
    const { registry, runner, keys, settings } = this.#parts;
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      if ((await registry.look([name]))[0] !== undefined) return "exists";
      const life = Number(await runner.command("hincrby", keys.meta, "life", "1"));
      assert(Number.isSafeInteger(life) && life > 0, "a life is a number");
      const own = encodeKeys([keys.meta, keys.queues, keys.names, queueKey(settings.namespace, life, "queue")]);
      try {
        const reader = new ByteReader(await this.#steps.runScript(PROGRAMS.create, own, [name, String(life), String(maxDeliveries)]));
        const outcome = reader.u8() === 1 ? "created" : "exists";
        registry.add(name, reader.u48());
        return outcome;
      } catch (error) {
        if (!isOvertaken(error)) throw error;
        // The server was emptied: the namespace is made anew.
        await openNamespace(runner, keys, settings);
      }
    }
    throw overtaken(MOST_ATTEMPTS);
  }

  configureQueue(queue: QueueName, settings: Partial<shapes.QueueSettings>): Promise<shapes.QueueSettings> {
    return this.#call(() => this.#steps.runAlone(new ConfigurePart(queue, checkChangedSettings(settings))));
  }

  removeQueue(path: QueueName, options?: { readonly recursive?: boolean }): Promise<number> {
    return this.#call(() => this.#remove(path, options?.recursive === true));
  }

  async #remove(path: QueueName, recursive: boolean): Promise<number> {
    const { registry, keys } = this.#parts;
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      registry.expire(path);
      const { queues, change } = await registry.subtree(path);
      if (queues.length === 0) throw queueNotFound(path);
      const below = queues.filter(({ name }) => name !== path);
      if (below.length > 0 && !recursive) {
        throw new QueueFSError(
          "not-empty",
          `${below.length} queues lie under "${path}", such as "${below[0]?.name}"; remove it recursively, or those first`,
        );
      }
      const own = joinKeys([encodeKeys([keys.meta, keys.queues, keys.names, keys.trash]), ...queues.map((life) => life.some("queue"))]);
      try {
        const values = [change, ...queues.flatMap(({ name, life }) => [name, String(life)])];
        const reply = await this.#steps.runScript(PROGRAMS.remove, own, values);
        for (const life of queues) registry.forget(life);
        await this.#purge(queues.length);
        return new ByteReader(reply).u48();
      } catch (error) {
        if (!isOvertaken(error)) throw error;
      }
    }
    throw overtaken(MOST_ATTEMPTS);
  }

  // The queues are gone already; freeing their memory may also be left to the sweep of any open store.
  async #purge(count: number): Promise<void> {
    try {
      for (let left = count; left > 0 && (await this.#sweep.purge()); left -= 50);
    } catch (error) {
      this.#parts.settings.onError(error);
    }
  }

  listQueues(options?: shapes.PageOptions & { readonly under?: QueueName | "" }): Promise<shapes.Page<QueueName>> {
    return this.#call(async () => {
      const { after = "", limit, under } = checkPage(options);
      const { queues } = await this.#parts.registry.list(under as QueueName | "", after, limit + 1);
      const names = queues.map(({ name }) => name);
      return names.length > limit ? { items: names.slice(0, limit), next: names[limit - 1] as string } : { items: names };
    });
  }

  enqueue(queue: QueueName, messages: readonly shapes.NewMessage[]): Promise<shapes.EnqueueAnswer[]> {
    return this.#call(() => this.#steps.run(new EnqueuePart(queue, checkMessages(messages, this.#maxMessageBytes))));
  }

  dequeue(queue: QueueName, options?: shapes.DequeueOptions): Promise<shapes.DeliveredMessage[]> {
    // A token of zeros stands for "in nobody's hands".
    return this.#call(() => this.#steps.run(new DequeuePart(queue, checkDequeue(options), this.#parts.settings.random.token() || 1)));
  }

  ack(queue: QueueName, items: readonly shapes.AckItem[]): Promise<shapes.AckAnswer[]> {
    return this.#call(() => {
      checkAcks(items);
      let forwards = false;
      for (const { forward } of items) {
        if (forward === undefined) continue;
        forwards = true;
        for (const { messages } of forward) checkMessages(messages, this.#maxMessageBytes);
      }
      return this.#steps.run<shapes.AckAnswer[]>(forwards ? new ForwardPart(queue, items) : new AckPart(queue, items));
    });
  }

  ackById(queue: QueueName, ids: readonly MessageId[]): Promise<("acked" | "not-in-processing")[]> {
    return this.#call(() => this.#steps.run(new IdPart(KIND.ackById, queue, checkTexts("ack", ids), ["not-in-processing", "acked"])));
  }

  nack(queue: QueueName, items: readonly shapes.NackItem[]): Promise<shapes.NackAnswer[]> {
    return this.#call(() => this.#steps.run(new NackPart(queue, checkNacks(items))));
  }

  release(queue: QueueName, receipts: readonly Receipt[]): Promise<shapes.ReleaseAnswer[]> {
    return this.#call(() => this.#steps.run(new ReleasePart(queue, checkTexts("release", receipts))));
  }

  extend(queue: QueueName, items: readonly shapes.ExtendItem[]): Promise<("extended" | "stale")[]> {
    return this.#call(() => this.#steps.run(new ExtendPart(queue, checkExtensions(items))));
  }

  redrive(queue: QueueName, ids: readonly MessageId[]): Promise<("redriven" | "not-found")[]> {
    return this.#call(() => this.#steps.runAlone(new IdPart(KIND.redrive, queue, checkTexts("redrive", ids), ["not-found", "redriven"])));
  }

  drop(queue: QueueName, ids: readonly MessageId[]): Promise<("dropped" | "not-found")[]> {
    return this.#call(() => this.#steps.runAlone(new IdPart(KIND.drop, queue, checkTexts("drop", ids), ["not-found", "dropped"])));
  }

  nextDue(queue: QueueName): Promise<number | undefined> {
    return this.#call(() => this.#reading.nextDue(queue));
  }

  peek(queue: QueueName): Promise<shapes.Message | undefined> {
    return this.#call(() => this.#reading.peek(queue));
  }

  messages(queue: QueueName, options?: shapes.PageOptions): Promise<shapes.Page<shapes.ListedMessage>> {
    return this.#call(() => this.#reading.messages(queue, options));
  }

  clear(queue: QueueName): Promise<shapes.Cleared> {
    return this.#call(() => this.#steps.runAlone(new ClearPart(queue)));
  }

  status(queue: QueueName): Promise<shapes.Status> {
    return this.#call(async () => {
      const [status] = await this.#reading.statuses({ queues: [queue] });
      assert(status !== undefined, "the status of one queue is one");
      return { pending: status.pending, processing: status.processing };
    });
  }

  statuses(selection: shapes.QueueSelection): Promise<shapes.QueueStatus[]> {
    return this.#call(() => this.#reading.statuses(checkSelection(selection)));
  }

  mark(selection: shapes.QueueSelection): Promise<shapes.Mark> {
    return this.#call(() => this.#reading.mark(checkSelection(selection)));
  }

  reached(mark: shapes.Mark): Promise<shapes.MarkAnswer> {
    return this.#call(() => this.#reading.reached(mark));
  }

  statistics(queue: QueueName): Promise<shapes.Statistics> {
    return this.#call(() => this.#reading.statistics(queue));
  }

  recover(): Promise<shapes.Recovered> {
    return this.#call(() => this.#sweep.recover());
  }

  deadLetters(queue: QueueName, options?: shapes.PageOptions): Promise<shapes.Page<shapes.DeadLetter>> {
    return this.#call(() => this.#reading.deadLetters(queue, options));
  }

  createTask(task: tasks.NewTask, batches: readonly shapes.Forward[] = []): Promise<tasks.CreatedTask> {
    // A token of zeros stands for "no producer".
    return this.#call(() =>
      this.#taskSteps.create(checkNewTask(task), batches, this.#parts.settings.random.token() || 1, this.#maxMessageBytes),
    );
  }

  task(id: TaskId): Promise<tasks.Task> {
    return this.#call(() => this.#taskReading.get(parseTaskId(id)));
  }

  tasks(options?: tasks.TaskListOptions): Promise<shapes.Page<tasks.Task>> {
    return this.#call(() => this.#taskReading.list(checkTaskList(options)));
  }

  updateTask(id: TaskId, change: tasks.TaskChange): Promise<tasks.Task> {
    return this.#call(() => this.#taskSteps.update(parseTaskId(id), checkTaskChange(change)));
  }

  sealTask(id: TaskId, options?: tasks.SealOptions): Promise<tasks.SealedTask> {
    return this.#call(() => this.#taskSteps.seal(parseTaskId(id), checkSeal(options)));
  }

  renewProducers(items: readonly tasks.ProducerRenewal[]): Promise<("renewed" | "stale")[]> {
    return this.#call(() => this.#taskSteps.renew(checkRenewals(items)));
  }

  cancelTask(id: TaskId, options?: { readonly reason?: string }): Promise<tasks.CancelledTask> {
    return this.#call(() => this.#taskSteps.cancel(parseTaskId(id), storableReason(options?.reason), true));
  }

  redriveTask(from: TaskId, into: TaskId): Promise<tasks.RedrivenTask> {
    return this.#call(() => this.#taskSteps.redrive(parseTaskId(from), parseTaskId(into)));
  }

  removeTask(id: TaskId): Promise<void> {
    return this.#call(() => this.#taskSteps.remove(parseTaskId(id)));
  }

  taskFailures(id: TaskId, options?: shapes.PageOptions): Promise<shapes.Page<tasks.TaskFailure>> {
    return this.#call(() => this.#taskReading.failures(parseTaskId(id), options));
  }

  subscribe(listener: ChangeListener): () => void {
    if (this.#closing !== undefined) throw closedError(`store ${this.description.location}`);
    return this.#parts.changes.subscribe(listener);
  }

  inspect(): Promise<shapes.Finding[]> {
    const { runner, registry, settings, keys } = this.#parts;
    return this.#call(() => inspectNamespace(runner, registry, settings.namespace, keys));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { settings, connection, session, changes } = this.#parts;
    changes.close();
    const done = Promise.all([this.#stopSweep(), this.#steps.end(), connection.whenIdle()]);
    const isDone = await within(done, settings, Math.min(settings.commandTimeoutMs, settings.outageMs));
    // Where the server answers, what it keeps for this session is let go of; else it goes by itself.
    if (isDone)
      await within(
        session.end().catch(() => {}),
        settings,
        1000,
      );
    connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Waits for work, but not longer than so many milliseconds. Answers whether it was done. */
async function within(work: Promise<unknown>, settings: RedisSettings, atMostMs: number): Promise<boolean> {
  let timer: Timer | undefined;
  const late = new Promise<false>((resolve) => {
    timer = settings.clock.setTimer(() => resolve(false), atMostMs);
  });
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      late,
    ]);
  } finally {
    timer?.cancel();
  }
}
