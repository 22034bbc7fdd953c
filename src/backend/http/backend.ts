/** The contract over a QueueFS server: each method checks what it was asked, in the words of all backends, and sends it as one request. */

import { closedError, QueueFSError, quote } from "../../core/errors.ts";
import { MAX_BATCH_ITEMS } from "../../core/limits.ts";
import type * as shapes from "../../core/message.ts";
import { type MessageId, parseQueueName, parseTaskId, type QueueName, type Receipt, type TaskId } from "../../core/names.ts";
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
import type { TaskJson } from "../../core/task-json.ts";
import { checkNewTask, checkRenewals, checkSeal, checkTaskChange, checkTaskList } from "../../core/task-request.ts";
import * as wire from "../../core/wire.ts";
import { BytesBeside, type BytesReader } from "../../core/wire-bytes.ts";
import type { Backend, BackendDescription, ChangeListener, Reopening } from "../contract.ts";
import { answersOf, Calls, queryOf, queuePath, taskPath } from "./calls.ts";
import type { Connection } from "./connection.ts";
import type { Events } from "./events.ts";

interface Answers<Answer> {
  readonly answers: readonly Answer[];
}

interface WirePage {
  readonly items: readonly wire.WireMessage[];
  readonly next?: string;
}

/** What an open store consists of. */
export interface HttpParts {
  readonly connection: Connection;
  readonly events: Events;
  readonly description: BackendDescription;
  readonly reopening: Reopening;
}

/** One open store of a server. */
export class HttpBackend implements Backend {
  readonly description: BackendDescription;
  readonly reopening: Reopening;
  readonly #connection: Connection;
  readonly #events: Events;
  readonly #calls: Calls;
  readonly #maxMessageBytes: number;
  #closing: Promise<void> | undefined;

  constructor({ connection, events, description, reopening }: HttpParts) {
    this.description = description;
    this.reopening = reopening;
    this.#connection = connection;
    this.#events = events;
    this.#calls = new Calls(connection, () => events.ownChange());
    this.#maxMessageBytes = description.maxMessageBytes;
  }

  // What is asked is checked before the server is: the checks throw, the answer is a promise.
  #call<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    if (this.#closing !== undefined) return Promise.reject(closedError(`store ${this.description.location}`));
    try {
      return call();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Sends items, each of which gets its answer. */
  async #items<Answer>(path: string, kind: "repeatable" | "once", key: string, items: readonly unknown[]): Promise<Answer[]> {
    // The array is the caller's again once this has been called.
    const { length } = items;
    const { json } = await this.#calls.change<Answers<Answer>>("POST", path, kind, { [key]: items });
    return answersOf(json, length);
  }

  async #page<Item>(
    path: string,
    options: shapes.PageOptions | undefined,
    fromWire: (json: wire.WireMessage, beside?: BytesReader) => Item,
  ): Promise<shapes.Page<Item>> {
    const { after, limit } = checkPage(options);
    const { json, beside } = await this.#calls.get<WirePage>(`${path}${queryOf({ after, limit })}`, true);
    return { ...json, items: json.items.map((item) => fromWire(item, beside)) };
  }

  createQueue(queue: QueueName, settings?: Partial<shapes.QueueSettings>): Promise<"created" | "exists"> {
    return this.#call(async () => {
      const asked = checkNewSettings(settings);
      const path = queuePath(parseQueueName(queue));
      const { json } = await this.#calls.change<{ readonly outcome: "created" | "exists" }>("PUT", path, "repeatable", asked);
      return json.outcome;
    });
  }

  configureQueue(queue: QueueName, settings: Partial<shapes.QueueSettings>): Promise<shapes.QueueSettings> {
    return this.#call(async () => {
      const asked = checkChangedSettings(settings);
      return (await this.#calls.change<shapes.QueueSettings>("PATCH", queuePath(queue), "repeatable", asked)).json;
    });
  }

  removeQueue(path: QueueName, options?: { readonly recursive?: boolean }): Promise<number> {
    return this.#call(async () => {
      const query = queryOf({ recursive: options?.recursive === true ? true : undefined });
      return (await this.#calls.change<{ readonly removed: number }>("DELETE", queuePath(path, query), "once")).json.removed;
    });
  }

  listQueues(options?: shapes.PageOptions & { readonly under?: QueueName | "" }): Promise<shapes.Page<QueueName>> {
    return this.#call(async () => {
      const { after, limit, under } = checkPage(options);
      const query = queryOf({ under: under === "" ? undefined : under, after, limit });
      return (await this.#calls.get<shapes.Page<QueueName>>(`/queues${query}`)).json;
    });
  }

  enqueue(queue: QueueName, messages: readonly shapes.NewMessage[]): Promise<shapes.EnqueueAnswer[]> {
    return this.#call(async () => {
      checkMessages(messages, this.#maxMessageBytes);
      const beside = new BytesBeside();
      const items = messages.map((message) => wire.newMessageToWire(message, beside));
      const kind = messages.every(({ id }) => id !== undefined) ? "repeatable" : "once";
      const path = queuePath(queue, "/messages");
      const { json } = await this.#calls.change<Answers<shapes.EnqueueAnswer>>("POST", path, kind, { messages: items }, beside);
      return answersOf(json, items.length);
    });
  }

  dequeue(queue: QueueName, options?: shapes.DequeueOptions): Promise<shapes.DeliveredMessage[]> {
    return this.#call(async () => {
      // The server's process says nothing of this one: whoever has the receipt holds the delivery.
      const { owner: _owner, ...asked } = checkDequeue(options);
      const path = queuePath(queue, "/dequeue");
      type Json = { readonly messages: readonly wire.WireMessage[] };
      // Where two lives of the server both took something, the lease of what the first took gives it back.
      const { json, beside } = await this.#calls.change<Json>("POST", path, "repeatable", asked, undefined, true);
      return json.messages.map((message) => wire.deliveredFromWire(message, beside));
    });
  }

  ack(queue: QueueName, items: readonly shapes.AckItem[]): Promise<shapes.AckAnswer[]> {
    return this.#call(async () => {
      for (const { forward } of checkAcks(items)) {
        for (const { messages } of forward ?? []) checkMessages(messages, this.#maxMessageBytes);
      }
      const beside = new BytesBeside();
      const acks = wire.acksToWire(items, beside);
      const path = queuePath(queue, "/ack");
      const { json } = await this.#calls.change<Answers<shapes.AckAnswer>>("POST", path, "once", { items: acks }, beside);
      return answersOf(json, acks.length);
    });
  }

  ackById(queue: QueueName, ids: readonly MessageId[]): Promise<("acked" | "not-in-processing")[]> {
    return this.#call(() => this.#items(queuePath(queue, "/ack-by-id"), "once", "ids", checkTexts("ack", ids)));
  }

  nack(queue: QueueName, items: readonly shapes.NackItem[]): Promise<shapes.NackAnswer[]> {
    return this.#call(() => {
      // Whatever a program calls a reason is one, and JSON could not carry all of that.
      const asked = checkNacks(items).map((item) => (item.reason === undefined ? item : { ...item, reason: storableReason(item.reason) }));
      return this.#items(queuePath(queue, "/nack"), "once", "items", asked);
    });
  }

  release(queue: QueueName, receipts: readonly Receipt[]): Promise<shapes.ReleaseAnswer[]> {
    return this.#call(() => this.#items(queuePath(queue, "/release"), "once", "receipts", checkTexts("release", receipts)));
  }

  extend(queue: QueueName, items: readonly shapes.ExtendItem[]): Promise<("extended" | "stale")[]> {
    return this.#call(() => this.#items(queuePath(queue, "/extend"), "repeatable", "items", checkExtensions(items)));
  }

  nextDue(queue: QueueName): Promise<number | undefined> {
    return this.#call(async () => {
      const { json } = await this.#calls.get<{ readonly dueMs: number | null }>(queuePath(queue, "/next-due"));
      return json.dueMs ?? undefined;
    });
  }

  peek(queue: QueueName): Promise<shapes.Message | undefined> {
    return this.#call(async () => {
      type Json = { readonly message: wire.WireMessage | null };
      const { json, beside } = await this.#calls.get<Json>(queuePath(queue, "/peek"), true);
      return json.message === null ? undefined : wire.messageFromWire(json.message, beside);
    });
  }

  messages(queue: QueueName, options?: shapes.PageOptions): Promise<shapes.Page<shapes.ListedMessage>> {
    return this.#call(() => this.#page(queuePath(queue, "/messages"), options, wire.listedFromWire));
  }

  clear(queue: QueueName): Promise<shapes.Cleared> {
    return this.#call(async () => (await this.#calls.change<shapes.Cleared>("POST", queuePath(queue, "/clear"), "once")).json);
  }

  status(queue: QueueName): Promise<shapes.Status> {
    return this.#call(async () => (await this.#calls.get<shapes.Status>(queuePath(queue, "/status"))).json);
  }

  statuses(selection: shapes.QueueSelection): Promise<shapes.QueueStatus[]> {
    return this.#call(async () => {
      type Json = { readonly statuses: shapes.QueueStatus[] };
      return (await this.#calls.ask<Json>("/statuses", checkSelection(selection))).statuses;
    });
  }

  mark(selection: shapes.QueueSelection): Promise<shapes.Mark> {
    return this.#call(() => this.#calls.ask<shapes.Mark>("/marks", checkSelection(selection)));
  }

  reached(mark: shapes.Mark): Promise<shapes.MarkAnswer> {
    return this.#call(() => this.#calls.ask<shapes.MarkAnswer>("/marks/reached", mark));
  }

  statistics(queue: QueueName): Promise<shapes.Statistics> {
    return this.#call(async () => (await this.#calls.get<shapes.Statistics>(queuePath(queue, "/statistics"))).json);
  }

  recover(): Promise<shapes.Recovered> {
    return this.#call(async () => (await this.#calls.change<shapes.Recovered>("POST", "/recover", "repeatable")).json);
  }

  deadLetters(queue: QueueName, options?: shapes.PageOptions): Promise<shapes.Page<shapes.DeadLetter>> {
    return this.#call(() => this.#page(queuePath(queue, "/dead-letters"), options, wire.deadLetterFromWire));
  }

  redrive(queue: QueueName, ids: readonly MessageId[]): Promise<("redriven" | "not-found")[]> {
    return this.#call(() => this.#items(queuePath(queue, "/redrive"), "once", "ids", checkTexts("redrive", ids)));
  }

  drop(queue: QueueName, ids: readonly MessageId[]): Promise<("dropped" | "not-found")[]> {
    return this.#call(() => this.#items(queuePath(queue, "/drop"), "once", "ids", checkTexts("drop", ids)));
  }

  createTask(task: tasks.NewTask, batches: readonly shapes.Forward[] = []): Promise<tasks.CreatedTask> {
    return this.#call(async () => {
      checkNewTask(task);
      if (!Array.isArray(batches) || batches.length > MAX_BATCH_ITEMS)
        throw new QueueFSError(
          "invalid-argument",
          `createTask takes an array of at most ${MAX_BATCH_ITEMS} batches, got ${quote(batches)}`,
        );
      for (const { messages } of batches as readonly shapes.Forward[]) checkMessages(messages, this.#maxMessageBytes);
      const beside = new BytesBeside();
      // As of a delivery, the server's process says nothing of this one.
      const asked = task.producer === undefined ? task : { ...task, producer: { ...task.producer, owner: "receipt" } };
      const json = { task: asked, batches: wire.forwardsToWire(batches, beside) };
      const answer = await this.#calls.change<wire.CreatedTaskJson>("POST", "/tasks", "once", json, beside);
      return wire.createdTaskFromWire(answer.json);
    });
  }

  task(id: TaskId): Promise<tasks.Task> {
    return this.#call(async () => wire.taskFromWire((await this.#calls.get<TaskJson>(taskPath(parseTaskId(id)))).json));
  }

  tasks(options?: tasks.TaskListOptions): Promise<shapes.Page<tasks.Task>> {
    return this.#call(async () => {
      const { json } = await this.#calls.get<shapes.Page<TaskJson>>(`/tasks${queryOf({ ...checkTaskList(options) })}`);
      return { ...json, items: json.items.map(wire.taskFromWire) };
    });
  }

  updateTask(id: TaskId, change: tasks.TaskChange): Promise<tasks.Task> {
    return this.#call(async () => {
      checkTaskChange(change);
      return wire.taskFromWire((await this.#calls.change<TaskJson>("PATCH", taskPath(parseTaskId(id)), "repeatable", change)).json);
    });
  }

  sealTask(id: TaskId, options?: tasks.SealOptions): Promise<tasks.SealedTask> {
    return this.#call(async () => {
      const path = taskPath(parseTaskId(id), "/seal");
      type Json = Pick<tasks.SealedTask, "outcome"> & { readonly task: TaskJson };
      const { json } = await this.#calls.change<Json>("POST", path, "once", checkSeal(options));
      return { ...json, task: wire.taskFromWire(json.task) };
    });
  }

  renewProducers(items: readonly tasks.ProducerRenewal[]): Promise<("renewed" | "stale")[]> {
    return this.#call(() => this.#items("/producers/renew", "repeatable", "items", checkRenewals(items)));
  }

  cancelTask(id: TaskId, options?: { readonly reason?: string }): Promise<tasks.CancelledTask> {
    return this.#call(async () => {
      const path = taskPath(parseTaskId(id), "/cancel");
      const reason = storableReason(options?.reason);
      type Json = Omit<tasks.CancelledTask, "task"> & { readonly task: TaskJson };
      const { json } = await this.#calls.change<Json>("POST", path, "repeatable", reason === "" ? {} : { reason });
      return { ...json, task: wire.taskFromWire(json.task) };
    });
  }

  redriveTask(from: TaskId, into: TaskId): Promise<tasks.RedrivenTask> {
    return this.#call(async () => {
      const path = taskPath(parseTaskId(from), "/redrive");
      return (await this.#calls.change<tasks.RedrivenTask>("POST", path, "once", { into: parseTaskId(into) })).json;
    });
  }

  removeTask(id: TaskId): Promise<void> {
    return this.#call(async () => void (await this.#calls.change("DELETE", taskPath(parseTaskId(id)), "once")));
  }

  taskFailures(id: TaskId, options?: shapes.PageOptions): Promise<shapes.Page<tasks.TaskFailure>> {
    return this.#call(() => this.#page(taskPath(parseTaskId(id), "/failures"), options, wire.taskFailureFromWire));
  }

  subscribe(listener: ChangeListener): () => void {
    if (this.#closing !== undefined) throw closedError(`store ${this.description.location}`);
    return this.#events.subscribe(listener);
  }

  inspect(): Promise<shapes.Finding[]> {
    return this.#call(async () => (await this.#calls.getLong<{ readonly findings: shapes.Finding[] }>("/inspect")).json.findings);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#events.close();
    await this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
