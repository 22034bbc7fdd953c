/**
 * A store as the contract describes it, as plainly as it can be written: arrays that are searched from end to end, no index, no counter
 * that could be derived. It shares no code with any backend. Its answers use the names of {@link Correspondence} for what a store names itself.
 */

import type { Clock } from "../core/clock.ts";
import { QueueFSError } from "../core/errors.ts";
import { DEFAULT_MAX_DELIVERIES, DEFAULT_REMEMBER_MS } from "../core/limits.ts";
import { ANY } from "./correspondence.ts";
import type { ModelAckItem, ModelDequeue, ModelMark, ModelMessage, ModelNackItem, ModelNewMessage, ModelQueue } from "./model-shapes.ts";

/** The model of one store. Methods are named after the contract's and refuse with the same codes. */
export class ModelStore {
  readonly #clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly #rememberMs: number;
  #queues: ModelQueue[] = [];
  #made = 0;
  #places = 0;
  #groups = 0;

  /** @param clock the clock that the store under test has, too */
  constructor(clock: Pick<Clock, "monotonicMs" | "wallMs">, rememberMs: number = DEFAULT_REMEMBER_MS) {
    this.#clock = clock;
    this.#rememberMs = rememberMs;
  }

  /** A model in the same state that goes its own way from here on: for tests that follow several possible pasts at once. */
  copy(): ModelStore {
    const copy = new ModelStore(this.#clock, this.#rememberMs);
    copy.#made = this.#made;
    copy.#places = this.#places;
    copy.#groups = this.#groups;
    copy.#queues = this.#queues.map((queue) => ({
      ...queue,
      messages: queue.messages.map((message) => ({ ...message })),
      dead: queue.dead.map((letter) => ({ ...letter, message: { ...letter.message } })),
      chosenIds: [...queue.chosenIds],
      requests: [...queue.requests],
      counts: { ...queue.counts },
    }));
    return copy;
  }

  /** What the store holds, for JSON: models with the same answer alike from here on. */
  toJSON(): unknown {
    return this.#queues;
  }

  createQueue(name: string, maxDeliveries: number = DEFAULT_MAX_DELIVERIES): "created" | "exists" {
    if (this.#queues.some((queue) => queue.name === name)) return "exists";
    this.#made += 1;
    this.#queues.push({
      name,
      life: this.#made,
      createdAtMs: this.#clock.wallMs(),
      maxDeliveries,
      messages: [],
      dead: [],
      chosenIds: [],
      requests: [],
      clears: 0,
      redrivenAcrossClear: false,
      counts: { enqueued: 0, delivered: 0, acked: 0, returned: 0, deadLettered: 0, cleared: 0 },
    });
    return "created";
  }

  configureQueue(name: string, maxDeliveries: number): unknown {
    this.#find(name).maxDeliveries = maxDeliveries;
    return { maxDeliveries };
  }

  removeQueue(path: string, recursive: boolean): number {
    const under = this.#queues.filter((queue) => queue.name.startsWith(`${path}/`));
    const self = this.#queues.filter((queue) => queue.name === path);
    if (under.length + self.length === 0) throw notFound(path);
    if (under.length > 0 && !recursive) throw new QueueFSError("not-empty", path);
    this.#queues = this.#queues.filter((queue) => !under.includes(queue) && !self.includes(queue));
    return under.length + self.length;
  }

  listQueues(under: string): string[] {
    return this.#within(under).map((queue) => queue.name);
  }

  enqueue(name: string, messages: readonly ModelNewMessage[]): unknown[] {
    const queue = this.#find(name);
    return messages.map((message) => this.#store(queue, message));
  }

  dequeue(name: string, request: ModelDequeue): readonly unknown[] {
    const queue = this.#find(name);
    const now = this.#clock.monotonicMs();
    const asked = `${request.limit} ${request.leaseMs} ${request.owner}`;
    const known = queue.requests.find((one) => one.requestId === request.requestId && one.forgetAtMs > now);
    if (known !== undefined) {
      if (known.arguments !== asked) throw new QueueFSError("id-conflict", known.requestId);
      return known.answer;
    }
    this.#recoverQueue(queue);
    const answer = queue.messages
      .filter((message) => message.state === "pending" && message.notBeforeMs <= now)
      .slice(0, request.limit)
      .map((message) => {
        this.#made += 1;
        message.state = "processing";
        message.deliveryCount += 1;
        message.receipt = `?r${this.#made}`;
        message.leaseEndMs = now + request.leaseMs;
        queue.counts.delivered += 1;
        return { ...seen(message), receipt: message.receipt, leaseMs: request.leaseMs };
      });
    if (request.requestId !== undefined && answer.length > 0) {
      queue.requests.push({ requestId: request.requestId, arguments: asked, answer, forgetAtMs: now + this.#rememberMs });
    }
    return answer;
  }

  ack(name: string, items: readonly ModelAckItem[]): unknown[] {
    const queue = this.#find(name);
    for (const item of items) for (const forward of item.forward) this.#find(forward.queue);
    return items.map((item) => {
      const message = held(queue, item.receipt);
      if (message === undefined) return { outcome: "stale" };
      remove(queue, message);
      queue.counts.acked += 1;
      return { outcome: "acked", forwarded: item.forward.map((forward) => this.enqueue(forward.queue, forward.messages)) };
    });
  }

  ackById(name: string, ids: readonly string[]): string[] {
    const queue = this.#find(name);
    return ids.map((id) => {
      const message = queue.messages.find((one) => one.id === id && one.state === "processing");
      if (message === undefined) return "not-in-processing";
      remove(queue, message);
      queue.counts.acked += 1;
      return "acked";
    });
  }

  nack(name: string, items: readonly ModelNackItem[]): string[] {
    const queue = this.#find(name);
    return items.map((item) => {
      const message = held(queue, item.receipt);
      if (message === undefined) return "stale";
      if (item.reason !== "") message.lastReason = item.reason;
      if (item.giveUp || isUsedUp(queue, message)) {
        this.#groups += 1;
        this.#bury(queue, message);
        return "dead";
      }
      giveBack(queue, message, item.delayMs === 0 ? 0 : this.#clock.monotonicMs() + item.delayMs);
      return "pending";
    });
  }

  release(name: string, receipts: readonly string[]): string[] {
    const queue = this.#find(name);
    return receipts.map((receipt) => {
      const message = held(queue, receipt);
      if (message === undefined) return "stale";
      message.deliveryCount -= 1;
      giveBack(queue, message, 0);
      return "released";
    });
  }

  extend(name: string, items: readonly { readonly receipt: string; readonly leaseMs: number }[]): string[] {
    const queue = this.#find(name);
    return items.map((item) => {
      const message = held(queue, item.receipt);
      if (message === undefined) return "stale";
      message.leaseEndMs = this.#clock.monotonicMs() + item.leaseMs;
      return "extended";
    });
  }

  peek(name: string): unknown {
    const queue = this.#find(name);
    const now = this.#clock.monotonicMs();
    const head = queue.messages.find((message) =>
      message.state === "pending" ? message.notBeforeMs <= now : message.leaseEndMs <= now && !isUsedUp(queue, message),
    );
    return head === undefined ? undefined : seen(head);
  }

  nextDue(name: string): number | undefined {
    const now = this.#clock.monotonicMs();
    const waits = this.#find(name).messages.map(
      (message) => (message.state === "pending" ? message.notBeforeMs : message.leaseEndMs) - now,
    );
    return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits));
  }

  messages(name: string): unknown[] {
    return this.#find(name).messages.map((message) => ({ ...seen(message), state: message.state }));
  }

  clear(name: string): unknown {
    const queue = this.#find(name);
    const answer = status(queue);
    queue.counts.cleared += queue.messages.length;
    queue.messages = [];
    queue.clears += 1;
    return answer;
  }

  status(name: string): unknown {
    return status(this.#find(name));
  }

  statuses(selection: { readonly queues: readonly string[] } | { readonly under: string }): unknown[] {
    return this.#select(selection).map((queue) => ({ queue: queue.name, ...status(queue) }));
  }

  mark(selection: { readonly queues: readonly string[] } | { readonly under: string }): ModelMark {
    return {
      queues: this.#select(selection).map((queue) => ({ queue: queue.name, life: queue.life, place: this.#places, clears: queue.clears })),
    };
  }

  reached(mark: ModelMark): unknown {
    let reached: boolean | typeof ANY = true;
    const statuses = mark.queues.map((marked) => {
      const queue = this.#find(marked.queue);
      if (queue.life !== marked.life) throw notFound(marked.queue);
      if (queue.clears > marked.clears) {
        // Cleared counts as settled; whether a dead letter redriven after that still does, the contract leaves open.
        if (queue.redrivenAcrossClear && reached === true) reached = ANY;
      } else if (queue.messages.some((message) => message.place <= marked.place)) reached = false;
      return { queue: queue.name, ...status(queue) };
    });
    return { reached, statuses };
  }

  statistics(name: string): unknown {
    const queue = this.#find(name);
    const pending = queue.messages.filter((message) => message.state === "pending");
    const processing = queue.messages.filter((message) => message.state === "processing");
    const age = (messages: readonly ModelMessage[]): number =>
      Math.max(0, this.#clock.wallMs() - Math.min(...messages.map((one) => one.enqueuedAtMs)));
    return {
      ...status(queue),
      ...queue.counts,
      delayed: pending.filter((message) => message.notBeforeMs > this.#clock.monotonicMs()).length,
      dead: queue.dead.length,
      createdAtMs: queue.createdAtMs,
      settings: { maxDeliveries: queue.maxDeliveries },
      ...(pending.length > 0 ? { oldestPendingMs: age(pending) } : {}),
      ...(processing.length > 0 ? { oldestProcessingMs: age(processing) } : {}),
    };
  }

  recover(): unknown {
    const total = { recovered: 0, dead: 0, more: false };
    for (const queue of this.#queues) {
      const step = this.#recoverQueue(queue);
      total.recovered += step.recovered;
      total.dead += step.dead;
    }
    return total;
  }

  /** The dead letters in the order they came, in groups within which no order is promised. */
  deadLetters(name: string): unknown[][] {
    const groups = new Map<number, unknown[]>();
    for (const { message, group, reason, diedAtMs, deliveryCount } of this.#find(name).dead) {
      groups.set(group, [...(groups.get(group) ?? []), { ...seen(message), deliveryCount, reason, diedAtMs }]);
    }
    return [...groups.values()];
  }

  redrive(name: string, ids: readonly string[]): string[] {
    const queue = this.#find(name);
    return ids.map((id) => {
      const letter = queue.dead.find((one) => one.message.id === id);
      if (letter === undefined) return "not-found";
      queue.dead = queue.dead.filter((one) => one !== letter);
      if (queue.clears > 0) queue.redrivenAcrossClear = true;
      queue.messages.push({ ...letter.message, state: "pending", deliveryCount: 0, notBeforeMs: 0, lastReason: "" });
      queue.messages.sort((left, right) => left.place - right.place);
      return "redriven";
    });
  }

  drop(name: string, ids: readonly string[]): string[] {
    const queue = this.#find(name);
    return ids.map((id) => {
      const before = queue.dead.length;
      queue.dead = queue.dead.filter((letter) => letter.message.id !== id);
      return queue.dead.length < before ? "dropped" : "not-found";
    });
  }

  /** The receipts of all current deliveries of a queue, the oldest message's first; empty when there is no such queue. */
  receiptsOf(name: string): string[] {
    const queue = this.#queues.find((one) => one.name === name);
    return (queue?.messages ?? []).filter((message) => message.state === "processing").map((message) => message.receipt);
  }

  /** The ids of the messages of a queue that are in processing, or of its dead letters; empty when there is no such queue. */
  idsOf(name: string, where: "processing" | "dead"): string[] {
    const queue = this.#queues.find((one) => one.name === name);
    if (where === "dead") return (queue?.dead ?? []).map((letter) => letter.message.id);
    return (queue?.messages ?? []).filter((message) => message.state === "processing").map((message) => message.id);
  }

  /** Every queue there is. */
  get queueNames(): readonly string[] {
    return this.#queues.map((queue) => queue.name);
  }

  #find(name: string): ModelQueue {
    const queue = this.#queues.find((one) => one.name === name);
    if (queue === undefined) throw notFound(name);
    return queue;
  }

  #within(under: string): ModelQueue[] {
    return this.#queues
      .filter((queue) => under === "" || queue.name === under || queue.name.startsWith(`${under}/`))
      .sort((left, right) => Buffer.compare(Buffer.from(left.name), Buffer.from(right.name)));
  }

  #select(selection: { readonly queues: readonly string[] } | { readonly under: string }): ModelQueue[] {
    return "queues" in selection ? selection.queues.map((name) => this.#find(name)) : this.#within(selection.under);
  }

  #store(queue: ModelQueue, message: ModelNewMessage): unknown {
    const now = this.#clock.monotonicMs();
    if (message.id !== undefined) {
      const isThere = queue.messages.some((one) => one.id === message.id) || queue.dead.some((one) => one.message.id === message.id);
      const known = queue.chosenIds.findLast((one) => one.id === message.id);
      if (known !== undefined && (isThere || known.forgetAtMs > now)) {
        return { outcome: known.data === message.data ? "repeated" : "conflict", id: message.id };
      }
      queue.chosenIds.push({ id: message.id, data: message.data, forgetAtMs: now + this.#rememberMs });
    }
    this.#made += 1;
    this.#places += 1;
    const id = message.id ?? `?m${this.#made}`;
    queue.messages.push({
      id,
      data: message.data,
      place: this.#places,
      enqueuedAtMs: this.#clock.wallMs(),
      state: "pending",
      deliveryCount: 0,
      notBeforeMs: message.delayMs === undefined ? 0 : now + message.delayMs,
      receipt: "",
      leaseEndMs: 0,
      lastReason: "",
    });
    queue.counts.enqueued += 1;
    return { outcome: "enqueued", id };
  }

  #recoverQueue(queue: ModelQueue): { recovered: number; dead: number } {
    const now = this.#clock.monotonicMs();
    const ended = queue.messages.filter((message) => message.state === "processing" && message.leaseEndMs <= now);
    let dead = 0;
    this.#groups += 1;
    for (const message of ended) {
      if (isUsedUp(queue, message)) {
        this.#bury(queue, message);
        dead += 1;
      } else giveBack(queue, message, 0);
    }
    return { recovered: ended.length, dead };
  }

  #bury(queue: ModelQueue, message: ModelMessage): void {
    remove(queue, message);
    queue.counts.deadLettered += 1;
    queue.dead.push({
      message,
      deliveryCount: message.deliveryCount,
      reason: message.lastReason === "" ? ANY : message.lastReason,
      diedAtMs: this.#clock.wallMs(),
      group: this.#groups,
    });
  }
}

function notFound(name: string): QueueFSError {
  return new QueueFSError("queue-not-found", `the model has no queue ${name}`);
}

function seen(message: ModelMessage): { id: string; data: string; enqueuedAtMs: number; deliveryCount: number } {
  return { id: message.id, data: message.data, enqueuedAtMs: message.enqueuedAtMs, deliveryCount: message.deliveryCount };
}

function status(queue: ModelQueue): { pending: number; processing: number } {
  const pending = queue.messages.filter((message) => message.state === "pending").length;
  return { pending, processing: queue.messages.length - pending };
}

function held(queue: ModelQueue, receipt: string): ModelMessage | undefined {
  return queue.messages.find((message) => message.state === "processing" && message.receipt === receipt);
}

function remove(queue: ModelQueue, message: ModelMessage): void {
  queue.messages = queue.messages.filter((one) => one !== message);
}

function isUsedUp(queue: ModelQueue, message: ModelMessage): boolean {
  return queue.maxDeliveries > 0 && message.deliveryCount >= queue.maxDeliveries;
}

function giveBack(queue: ModelQueue, message: ModelMessage, notBeforeMs: number): void {
  message.state = "pending";
  message.receipt = "";
  message.leaseEndMs = 0;
  message.notBeforeMs = notBeforeMs;
  queue.counts.returned += 1;
}
