/** Random histories of tasks, judged step by step against a model that knows nothing of stores. */

import assert from "node:assert/strict";
import type { Backend } from "../../src/backend/contract.ts";
import { type ErrorCode, isQueueFSError } from "../../src/core/errors.ts";
import type { MessageId, QueueName, Receipt, TaskId } from "../../src/core/names.ts";
import { isTerminal, type TaskStatus } from "../../src/core/task.ts";
import { assertSound, type ConformanceHarness } from "../../src/testing/index.ts";
import { TASK_QUEUES, type TaskStep } from "./task-steps.ts";

/** In the last one a message is dead after its second failed delivery. */
const QUEUES = TASK_QUEUES;
const MAX_DELIVERIES = [0, 0, 2] as const;
const SHORT_MS = 1_000;
const LONG_MS = 3_600_000;

interface ModelTask {
  readonly id: TaskId;
  done: number;
  failed: number;
  cancelled: number;
  unacked: number;
  isSealed: boolean;
  isStarted: boolean;
  isCancelling: boolean;
  isFailed: boolean;
  isRemoved: boolean;
  ended: TaskStatus | undefined;
}

interface ModelMessage {
  id: MessageId;
  readonly queue: number;
  task: ModelTask | undefined;
  state: "pending" | "processing" | "dead" | "gone";
  receipt?: Receipt;
  deliveries: number;
  isShort: boolean;
}

function statusOf(task: ModelTask): TaskStatus {
  if (task.ended !== undefined) return task.ended;
  if (task.isCancelling) return "cancelling";
  return task.isStarted && task.unacked > 0 ? "running" : "pending";
}

function isOpen(task: ModelTask): boolean {
  return task.ended === undefined && !task.isCancelling && !task.isRemoved;
}

/** Plays a history and the model side by side. */
class TaskHistory {
  readonly #backend: Backend;
  readonly #passTime: (ms: number) => Promise<void>;
  readonly #tasks: ModelTask[] = [];
  #messages: ModelMessage[] = [];

  constructor(backend: Backend, passTime: (ms: number) => Promise<void>) {
    this.#backend = backend;
    this.#passTime = passTime;
  }

  async play(steps: readonly TaskStep[]): Promise<void> {
    for (const [index, queue] of QUEUES.entries())
      await this.#backend.createQueue(queue, { maxDeliveries: MAX_DELIVERIES[index] as number });
    for (const step of steps) {
      await this.#step(step);
      this.#judge();
      await this.#compare();
    }
    await this.#compareListings();
    await assertSound(this.#backend);
  }

  #pick<Item>(items: readonly Item[], number: number): Item | undefined {
    return items[items.length - 1 - number];
  }

  #in(state: ModelMessage["state"]): ModelMessage[] {
    return this.#messages.filter((message) => message.state === state);
  }

  async #refusal(work: () => Promise<unknown>): Promise<ErrorCode | undefined> {
    try {
      await work();
      return undefined;
    } catch (error) {
      if (!isQueueFSError(error)) throw error;
      return error.code;
    }
  }

  #refusalOf(task: ModelTask | undefined): ErrorCode | undefined {
    if (task === undefined || isOpen(task)) return undefined;
    return task.isRemoved ? "task-not-found" : "task-ended";
  }

  #add(id: MessageId, queue: number, task: ModelTask | undefined): void {
    this.#messages.push({ id, queue, task, state: "pending", deliveries: 0, isShort: false });
    if (task !== undefined) task.unacked += 1;
  }

  /** The end of a message in the hands of its task. */
  #end(message: ModelMessage, how: "done" | "failed" | "cancelled"): void {
    message.state = "gone";
    if (message.task === undefined) return;
    message.task.unacked -= 1;
    message.task[how] += 1;
  }

  #bury(message: ModelMessage): void {
    this.#end(message, "failed");
    message.state = "dead";
  }

  #giveBack(message: ModelMessage): "pending" | "dead" | "cancelled" {
    if (message.task?.isCancelling === true) {
      this.#end(message, "cancelled");
      return "cancelled";
    }
    const most = MAX_DELIVERIES[message.queue] as number;
    if (most > 0 && message.deliveries >= most) {
      this.#bury(message);
      return "dead";
    }
    message.state = "pending";
    return "pending";
  }

  #revive(message: ModelMessage, task: ModelTask | undefined): void {
    message.state = "pending";
    message.deliveries = 0;
    if (task !== undefined && task === message.task) task.failed -= 1;
    message.task = task;
    if (task !== undefined) task.unacked += 1;
  }

  /** What is sealed and has nothing unacked has ended. */
  #judge(): void {
    for (const task of this.#tasks) {
      if (task.ended !== undefined || !task.isSealed || task.unacked > 0) continue;
      if (task.isCancelling) task.ended = "cancelled";
      else task.ended = task.failed > 0 || task.isFailed ? "failed" : "completed";
    }
  }

  async #step(step: TaskStep): Promise<void> {
    switch (step.do) {
      case "create":
        return this.#create(step);
      case "enqueue":
        return this.#enqueue(step);
      case "dequeue":
        return this.#dequeue(step);
      case "ack":
        return this.#ack(step);
      case "nack":
      case "release":
        return this.#return(step);
      case "redrive":
      case "drop":
        return this.#dead(step);
      case "clear":
      case "remake":
        return this.#clear(step);
      case "cancel":
      case "removeTask":
      case "seal":
        return this.#task(step);
      case "redriveTask":
        return this.#redriveTask(step);
      case "pass":
        return this.#pass();
    }
  }

  async #create({ counts, isOpen: isUnsealed }: TaskStep & { do: "create" }): Promise<void> {
    const created = await this.#backend.createTask(
      { type: "model", ...(isUnsealed ? { producer: { leaseMs: 7 * 24 * LONG_MS, owner: "receipt" } } : {}) },
      counts.map((count, queue) => ({
        queue: QUEUES[queue] as QueueName,
        messages: Array.from({ length: count }, () => ({ data: new Uint8Array([1]) })),
      })),
    );
    assert.ok(created.outcome === "created");
    const task: ModelTask = {
      id: created.task.id,
      done: 0,
      failed: 0,
      cancelled: 0,
      unacked: 0,
      isSealed: !isUnsealed,
      isStarted: false,
      isCancelling: false,
      isFailed: false,
      isRemoved: false,
      ended: undefined,
    };
    this.#tasks.push(task);
    for (const [queue, answers] of created.enqueued.entries()) for (const { id } of answers) this.#add(id, queue, task);
  }

  async #enqueue({ queue, count, task: number, isDelayed }: TaskStep & { do: "enqueue" }): Promise<void> {
    const task = number === undefined ? undefined : this.#pick(this.#tasks, number);
    const message = {
      data: new Uint8Array([2]),
      ...(task === undefined ? {} : { task: task.id }),
      ...(isDelayed ? { delayMs: SHORT_MS } : {}),
    };
    let ids: MessageId[] = [];
    const refusal = await this.#refusal(async () => {
      const answers = await this.#backend.enqueue(QUEUES[queue] as QueueName, Array(count).fill(message));
      ids = answers.map(({ id }) => id);
    });
    assert.equal(refusal, this.#refusalOf(task), "enqueue");
    for (const id of ids) this.#add(id, queue, task);
  }

  async #dequeue({ queue, limit, isShort }: TaskStep & { do: "dequeue" }): Promise<void> {
    const delivered = await this.#backend.dequeue(QUEUES[queue] as QueueName, {
      limit,
      leaseMs: isShort ? SHORT_MS : LONG_MS,
      owner: "receipt",
    });
    for (const { id, receipt, task, deliveryCount } of delivered) {
      const message = this.#messages.find((one) => one.id === id && one.queue === queue && one.state === "pending");
      assert.ok(message, "only a pending message is handed out");
      assert.notEqual(message.task?.isCancelling, true, "nothing of a cancelling task is handed out");
      message.state = "processing";
      message.receipt = receipt;
      message.isShort = isShort;
      message.deliveries += 1;
      assert.equal(deliveryCount, message.deliveries);
      assert.equal(task, message.task?.id);
      if (message.task !== undefined) message.task.isStarted = true;
    }
  }

  async #ack(step: TaskStep & { do: "ack" }): Promise<void> {
    const message = this.#pick(this.#in("processing"), step.held);
    if (message === undefined) return;
    const queue = QUEUES[message.queue] as QueueName;
    if (step.byId) {
      assert.deepEqual(await this.#backend.ackById(queue, [message.id]), ["acked"]);
      this.#end(message, "done");
      return;
    }
    const target = step.forward === "own" ? message.task : step.forward === "other" ? this.#pick(this.#tasks, step.held) : undefined;
    const forwarded = { data: new Uint8Array([3]), ...(target === undefined ? {} : { task: target.id }) };
    const forward = step.forward === "none" ? [] : [{ queue: QUEUES[step.queue] as QueueName, messages: [forwarded] }];
    let ids: MessageId[] = [];
    const refusal = await this.#refusal(async () => {
      const [answer] = await this.#backend.ack(queue, [{ receipt: message.receipt as Receipt, forward }]);
      assert.ok(answer?.outcome === "acked");
      ids = answer.forwarded.flat().map(({ id }) => id);
    });
    assert.equal(refusal, this.#refusalOf(target), "ack");
    if (refusal !== undefined) return;
    for (const id of ids) this.#add(id, step.queue, target);
    this.#end(message, "done");
  }

  async #return(step: TaskStep & { do: "nack" | "release" }): Promise<void> {
    const message = this.#pick(this.#in("processing"), step.held);
    if (message === undefined) return;
    const queue = QUEUES[message.queue] as QueueName;
    const receipt = message.receipt as Receipt;
    if (step.do === "release") {
      const expected = message.task?.isCancelling === true ? "cancelled" : "released";
      assert.deepEqual(await this.#backend.release(queue, [receipt]), [expected]);
      message.deliveries -= 1;
      if (expected === "cancelled") this.#end(message, "cancelled");
      else message.state = "pending";
      return;
    }
    const [answer] = await this.#backend.nack(queue, [{ receipt, giveUp: step.giveUp }]);
    if (!step.giveUp) {
      assert.equal(answer, this.#giveBack(message));
      return;
    }
    this.#bury(message);
    assert.equal(answer, "dead");
  }

  async #dead(step: TaskStep & { do: "redrive" | "drop" }): Promise<void> {
    const message = this.#pick(this.#in("dead"), step.dead);
    if (message === undefined) return;
    const queue = QUEUES[message.queue] as QueueName;
    if (step.do === "drop") {
      assert.deepEqual(await this.#backend.drop(queue, [message.id]), ["dropped"]);
      message.state = "gone";
      return;
    }
    assert.deepEqual(await this.#backend.redrive(queue, [message.id]), ["redriven"]);
    const { task } = message;
    this.#revive(message, task !== undefined && isOpen(task) ? task : undefined);
  }

  async #clear(step: TaskStep & { do: "clear" | "remake" }): Promise<void> {
    const queue = QUEUES[step.queue] as QueueName;
    if (step.do === "clear") await this.#backend.clear(queue);
    else {
      await this.#backend.removeQueue(queue, { recursive: false }).catch(async (error: unknown) => {
        if (!isQueueFSError(error, "not-empty")) throw error;
        await this.#backend.clear(queue);
        const dead = this.#in("dead").filter((message) => message.queue === step.queue);
        await this.#backend.drop(
          queue,
          dead.map(({ id }) => id),
        );
      });
      await this.#backend.createQueue(queue, { maxDeliveries: MAX_DELIVERIES[step.queue] as number });
    }
    for (const message of this.#messages) {
      if (message.queue !== step.queue || message.state === "gone") continue;
      if (message.state !== "dead") this.#end(message, "failed");
      else if (step.do === "remake") message.state = "gone";
    }
  }

  async #task(step: TaskStep & { do: "cancel" | "removeTask" | "seal" }): Promise<void> {
    const task = this.#pick(this.#tasks, step.task);
    if (task === undefined) return;
    if (step.do === "removeTask") {
      const refusal = await this.#refusal(() => this.#backend.removeTask(task.id));
      assert.equal(refusal, task.isRemoved ? "task-not-found" : task.ended === undefined ? "task-active" : undefined, "removeTask");
      if (refusal !== undefined) return;
      task.isRemoved = true;
      return;
    }
    if (step.do === "seal") {
      let outcome = "";
      const refusal = await this.#refusal(async () => {
        ({ outcome } = await this.#backend.sealTask(task.id, step.isFailed ? { error: "on purpose" } : {}));
      });
      assert.equal(refusal, task.isRemoved ? "task-not-found" : undefined, "sealTask");
      if (refusal !== undefined) return;
      assert.equal(outcome, task.isSealed ? "stale" : "sealed");
      if (!task.isSealed && step.isFailed) task.isFailed = true;
      task.isSealed = true;
      return;
    }
    let removed = 0;
    const refusal = await this.#refusal(async () => {
      for (;;) {
        const cancelled = await this.#backend.cancelTask(task.id);
        removed += cancelled.removed;
        if (!cancelled.more) return;
      }
    });
    assert.equal(refusal, task.isRemoved ? "task-not-found" : undefined, "cancelTask");
    if (refusal !== undefined || task.ended !== undefined) return;
    task.isCancelling = true;
    task.isSealed = true;
    const pending = this.#in("pending").filter((message) => message.task === task);
    assert.equal(removed, pending.length, "cancelling removes all that is pending");
    for (const message of pending) this.#end(message, "cancelled");
  }

  async #redriveTask({ from: fromNumber, into: intoNumber }: TaskStep & { do: "redriveTask" }): Promise<void> {
    const from = this.#pick(this.#tasks, fromNumber);
    const into = this.#pick(this.#tasks, intoNumber);
    if (from === undefined || into === undefined) return;
    let redriven = 0;
    const refusal = await this.#refusal(async () => {
      for (;;) {
        const step = await this.#backend.redriveTask(from.id, into.id);
        redriven += step.redriven;
        if (!step.more) return;
      }
    });
    const expected: readonly (ErrorCode | undefined)[] = [
      ...(from.isRemoved || into.isRemoved ? (["task-not-found"] as const) : []),
      ...(isOpen(into) || into.isRemoved ? [] : (["task-ended"] as const)),
      ...(from !== into && from.ended === undefined ? (["task-active"] as const) : []),
    ];
    assert.ok(expected.length === 0 ? refusal === undefined : expected.includes(refusal), `redriveTask: ${refusal}, not ${expected}`);
    if (refusal !== undefined) return;
    const dead = this.#in("dead").filter((message) => message.task === from);
    assert.equal(redriven, dead.length);
    for (const message of dead) this.#revive(message, into);
  }

  async #pass(): Promise<void> {
    await this.#passTime(SHORT_MS + 1);
    while ((await this.#backend.recover()).more);
    for (const message of this.#in("processing")) if (message.isShort) this.#giveBack(message);
  }

  async #compare(): Promise<void> {
    for (const task of this.#tasks) {
      if (task.isRemoved) {
        assert.equal(await this.#refusal(() => this.#backend.task(task.id)), "task-not-found");
        continue;
      }
      const { status, progress, sealed, error, finishedAtMs } = await this.#backend.task(task.id);
      const { done, failed, cancelled, unacked } = task;
      assert.deepEqual(
        { status, progress, sealed },
        {
          status: statusOf(task),
          progress: { total: done + failed + cancelled + unacked, done, failed, cancelled, unacked },
          sealed: task.isSealed,
        },
        `task ${task.id}`,
      );
      assert.equal(finishedAtMs !== undefined, isTerminal(status));
      assert.equal(error !== undefined, failed > 0 || task.isFailed, "a task tells an error when, and only when, something of it failed");
    }
    for (const [index, queue] of QUEUES.entries()) {
      const of = (state: string): number => this.#messages.filter((message) => message.queue === index && message.state === state).length;
      assert.deepEqual(await this.#backend.status(queue), { pending: of("pending"), processing: of("processing") }, `status of ${queue}`);
    }
    this.#messages = this.#messages.filter((message) => message.state !== "gone");
  }

  async #compareListings(): Promise<void> {
    const owner = (task: ModelTask | undefined): TaskId | undefined => (task?.isRemoved === true ? undefined : task?.id);
    for (const task of this.#tasks.filter((one) => !one.isRemoved)) {
      const { items } = await this.#backend.taskFailures(task.id, { limit: 1_000 });
      const dead = this.#in("dead").filter((message) => message.task === task);
      assert.deepEqual(
        items.map((item) => `${item.queue} ${item.id}`).toSorted(),
        dead.map((message) => `${QUEUES[message.queue]} ${message.id}`).toSorted(),
      );
    }
    for (const [index, queue] of QUEUES.entries()) {
      const { items } = await this.#backend.messages(queue, { limit: 1_000 });
      const known = new Map(
        this.#messages.filter((message) => message.queue === index).map((message) => [message.id, owner(message.task)]),
      );
      for (const item of items) assert.equal(item.task, known.get(item.id), `task of ${item.id}`);
      const dead = await this.#backend.deadLetters(queue, { limit: 1_000 });
      for (const item of dead.items) assert.equal(item.task, known.get(item.id), `task of the dead letter ${item.id}`);
    }
  }
}

/** Plays a history on a store of its own. @throws AssertionError where the store answers other than the model */
export async function runTaskHistory(steps: readonly TaskStep[], harness: ConformanceHarness): Promise<void> {
  const store = await harness.createStore();
  const backend = await store.open({});
  try {
    await new TaskHistory(backend, (ms) => store.passTime(ms)).play(steps);
  } finally {
    await backend.close();
    await store.destroy();
  }
}
