/** One lane of a client: does random operations one after the other, and remembers what it holds. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../../src/core/clock.ts";
import type { Mark } from "../../../src/core/message.ts";
import type { RecordedCalls } from "./calls.ts";
import type { Batch, ReceiptItem, SentMessage } from "./operation.ts";

/** What the lanes of one epoch do. */
export interface Plan {
  /** Queues that are only worked on, in the order in which messages are forwarded. */
  readonly work: readonly string[];
  /** A queue that is cleared now and then. */
  readonly cleared: string;
  /** A queue that is removed and made again now and then. */
  readonly removed: string;
  readonly shortestLeaseMs: number;
  readonly longestLeaseMs: number;
  /** How long work is added; twice as long it is only worked off, so that completion is reached again and again. */
  readonly turnMs: number;
  /** Longest timeout of a wait for completion. */
  readonly longestWaitMs: number;
  /** Longest pause between two operations. */
  readonly pauseMs: number;
}

interface Held extends ReceiptItem {
  readonly queue: string;
  readonly task: string | undefined;
}

interface Remembered {
  readonly queue: string;
  readonly message: SentMessage;
}

/** How often what is done, relative to the others. */
const WEIGHTS = {
  produce: 20,
  dequeue: 30,
  settle: 40,
  spent: 3,
  repeat: 2,
  status: 10,
  statuses: 12,
  peek: 4,
  mark: 3,
  reached: 5,
  wait: 4,
  submit: 4,
  addToTask: 5,
  task: 6,
  clear: 0.6,
  remove: 0.6,
} as const;

type Deed = keyof typeof WEIGHTS;

/** Holds at most so many deliveries. */
const MOST_HELD = 8;

/** One lane. */
export class Lane {
  readonly #calls: RecordedCalls;
  readonly #random: Random;
  readonly #plan: Plan;
  readonly #isOver: () => boolean;
  readonly #nowMs: () => number;
  readonly #held: Held[] = [];
  readonly #spent: Held[] = [];
  readonly #keyed: Remembered[] = [];
  readonly #marks: { readonly name: string; readonly mark: Mark; readonly queues: readonly string[] }[] = [];
  readonly #openTasks: string[] = [];
  readonly #tasks: string[] = [];
  #count: number;

  /** @param first numbers of values begin after it; a lane of the same name must never use one twice */
  constructor(calls: RecordedCalls, random: Random, plan: Plan, isOver: () => boolean, nowMs: () => number, first = 0) {
    this.#calls = calls;
    this.#random = random;
    this.#plan = plan;
    this.#isOver = isOver;
    this.#nowMs = nowMs;
    this.#count = first;
  }

  /** How many values it has used. */
  get count(): number {
    return this.#count;
  }

  #upTo(limit: number): number {
    return Math.floor(this.#random.fraction() * limit);
  }

  #chance(probability: number): boolean {
    return this.#random.fraction() < probability;
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#upTo(items.length)] as Item;
  }

  #leaseMs(): number {
    const { shortestLeaseMs, longestLeaseMs } = this.#plan;
    return shortestLeaseMs + this.#upTo(longestLeaseMs - shortestLeaseMs + 1);
  }

  #name(kind: string): string {
    this.#count += 1;
    return `${this.#calls.client}-${kind}${this.#count}`;
  }

  #newMessage(task?: string): SentMessage {
    const value = this.#name("v");
    return { value, ...(this.#chance(0.5) ? { id: `k-${value}` } : {}), ...(task === undefined ? {} : { task }) };
  }

  #newMessages(atMost: number, task?: string): SentMessage[] {
    return Array.from({ length: 1 + this.#upTo(atMost) }, () => this.#newMessage(task));
  }

  #anyQueue(): string {
    return this.#chance(0.8) ? this.#pick(this.#plan.work) : this.#pick([this.#plan.cleared, this.#plan.removed]);
  }

  /** Some queues in a random order. */
  #someQueues(): string[] {
    const { work } = this.#plan;
    return this.#chance(0.6) ? [...work] : work.filter(() => this.#chance(0.6));
  }

  /** Runs until the epoch is over; then seals its tasks. What it holds stays as it is. */
  async run(): Promise<void> {
    while (!this.#isOver()) {
      await this.#deeds[this.#choose()]();
      if (this.#chance(0.3)) await sleep(this.#upTo(this.#plan.pauseMs + 1));
    }
    for (const task of this.#openTasks.splice(0)) await this.#calls.seal(task);
  }

  #choose(): Deed {
    const isAdding = Math.floor(this.#nowMs() / this.#plan.turnMs) % 3 === 0;
    const isIdle = (deed: Deed): boolean =>
      ((deed === "produce" || deed === "submit") && !isAdding) ||
      (deed === "settle" && this.#held.length === 0) ||
      (deed === "dequeue" && this.#held.length >= MOST_HELD) ||
      (deed === "spent" && this.#spent.length === 0) ||
      (deed === "repeat" && this.#keyed.length === 0) ||
      (deed === "reached" && this.#marks.length === 0) ||
      (deed === "addToTask" && this.#openTasks.length === 0) ||
      (deed === "task" && this.#tasks.length === 0);
    const deeds = (Object.keys(WEIGHTS) as Deed[]).filter((deed) => !isIdle(deed));
    const weight = (deed: Deed): number => WEIGHTS[deed] * (!isAdding && (deed === "dequeue" || deed === "settle") ? 2 : 1);
    let at = this.#random.fraction() * deeds.reduce((sum, deed) => sum + weight(deed), 0);
    for (const deed of deeds) {
      at -= weight(deed);
      if (at < 0) return deed;
    }
    return "status";
  }

  readonly #deeds: Readonly<Record<Deed, () => Promise<unknown>>> = {
    produce: () => this.#produce(this.#anyQueue(), this.#newMessages(this.#chance(0.6) ? 1 : 4)),
    dequeue: () => this.#dequeue(),
    settle: () => this.#settle(),
    spent: () => this.#useSpent(),
    repeat: async () => {
      const { queue, message } = this.#pick(this.#keyed);
      await this.#calls.enqueue(queue, [message]);
    },
    status: () => this.#calls.status([this.#anyQueue()]),
    statuses: async () => {
      const queues = this.#someQueues();
      if (queues.length > 1) await this.#calls.status(queues);
    },
    peek: () => this.#calls.peek(this.#anyQueue()),
    mark: () => this.#mark(),
    reached: async () => {
      const { name, mark } = this.#pick(this.#marks);
      await this.#calls.reached(name, mark);
    },
    wait: async () => {
      const queues = this.#someQueues();
      const timeoutMs = this.#pick([0, 300, this.#plan.longestWaitMs]);
      if (queues.length > 0) await this.#calls.wait(queues, timeoutMs, this.#chance(0.3));
    },
    submit: () => this.#submit(),
    addToTask: () => this.#addToTask(),
    task: () => this.#calls.task(this.#pick(this.#tasks)),
    clear: () => this.#calls.clear(this.#plan.cleared),
    remove: async () => {
      await this.#calls.remove(this.#plan.removed);
      await this.#calls.create(this.#plan.removed);
    },
  };

  async #produce(queue: string, messages: readonly SentMessage[]): Promise<void> {
    const { outcome } = await this.#calls.enqueue(queue, messages);
    // In the queue that is removed an id may be forgotten with it, so a repeat may rightly store anew.
    if (queue === this.#plan.removed) return;
    const keyed = messages.filter(({ id }) => id !== undefined);
    for (const message of keyed) this.#keep(this.#keyed, { queue, message }, 12);
    if (outcome !== "ok" && keyed.length > 0 && this.#chance(0.8)) await this.#calls.enqueue(queue, keyed);
  }

  #keep<Item>(list: Item[], item: Item, atMost: number): void {
    list.push(item);
    if (list.length > atMost) list.shift();
  }

  async #dequeue(): Promise<void> {
    const queue = this.#anyQueue();
    const limit = this.#pick([1, 1, 2, 5]);
    const leaseMs = this.#leaseMs();
    const requestId = this.#chance(0.7) ? this.#name("r") : undefined;
    let result = await this.#calls.dequeue(queue, limit, leaseMs, requestId);
    const repeats = requestId === undefined || result.outcome === "fail" ? 0 : result.outcome === "info" ? 2 : this.#chance(0.05) ? 1 : 0;
    for (let repeat = 0; repeat < repeats && !(repeat > 0 && result.outcome === "ok"); repeat += 1)
      result = await this.#calls.dequeue(queue, limit, leaseMs, requestId);
    if (result.outcome !== "ok") return;
    for (const { receipt, task } of result.answer) {
      this.#held.push({ queue, receipt, task });
      if (task !== undefined && !this.#tasks.includes(task)) this.#keep(this.#tasks, task, 6);
    }
  }

  /** Takes up to so many held deliveries of one queue out of the hand. */
  #takeHeld(atMost: number): Held[] {
    const { queue } = this.#pick(this.#held);
    const taken = this.#held.filter((held) => held.queue === queue).slice(0, 1 + this.#upTo(atMost));
    for (const held of taken) this.#held.splice(this.#held.indexOf(held), 1);
    return taken;
  }

  #forward(queue: string, task: string | undefined): readonly Batch[] | undefined {
    const { work } = this.#plan;
    const place = work.indexOf(queue);
    const next = work[place + 1];
    if (place < 0 || next === undefined || this.#chance(0.5)) return undefined;
    const batches: Batch[] = [{ queue: next, messages: this.#newMessages(2, task) }];
    if (this.#chance(0.2)) batches.push({ queue: this.#pick(work.slice(place + 1)), messages: [this.#newMessage(task)] });
    return batches;
  }

  #withForward({ queue, receipt, task }: Held): ReceiptItem {
    const forward = this.#forward(queue, task);
    return forward === undefined ? { receipt } : { receipt, forward };
  }

  async #settle(): Promise<void> {
    const way = this.#upTo(30);
    // Some are left to the end of their lease, and settled too late.
    if (way === 0) return void (await sleep(this.#upTo(this.#plan.longestLeaseMs + 300)));
    if (way === 1) return this.#forget();
    const taken = this.#takeHeld(3);
    const [first] = taken;
    if (first === undefined) return;
    const { queue } = first;
    if (way <= 3) {
      const { outcome } = await this.#calls.extend(
        queue,
        taken.map(({ receipt }) => ({ receipt, leaseMs: this.#leaseMs() })),
      );
      if (outcome !== "fail") this.#held.push(...taken);
      return;
    }
    for (const held of taken) this.#keep(this.#spent, held, 10);
    if (way <= 5) {
      const delay = (): { delayMs?: number } => (this.#chance(0.3) ? { delayMs: this.#upTo(500) } : {});
      await this.#calls.nack(
        queue,
        taken.map(({ receipt }) => ({ receipt, ...delay() })),
      );
    } else if (way === 6)
      await this.#calls.release(
        queue,
        taken.map(({ receipt }) => ({ receipt })),
      );
    else {
      const items = taken.map((held) => this.#withForward(held));
      const { outcome } = await this.#calls.ack(queue, items);
      if (outcome !== "ok" && this.#chance(0.7)) await this.#calls.ack(queue, items);
    }
  }

  /** Leaves a delivery to its lease, though its receipt may be tried later. */
  #forget(): void {
    for (const held of this.#takeHeld(1)) this.#keep(this.#spent, held, 10);
  }

  async #useSpent(): Promise<void> {
    const { queue, receipt, task } = this.#pick(this.#spent);
    const way = this.#upTo(4);
    if (way === 0) await this.#calls.nack(queue, [{ receipt }]);
    else if (way === 1) await this.#calls.extend(queue, [{ receipt, leaseMs: this.#leaseMs() }]);
    else if (way === 2) await this.#calls.release(queue, [{ receipt }]);
    else await this.#calls.ack(queue, [this.#withForward({ queue, receipt, task: undefined })]);
    if (task !== undefined) await this.#calls.task(task);
  }

  async #mark(): Promise<void> {
    const queues = this.#someQueues();
    if (queues.length === 0) return;
    const name = this.#name("m");
    const result = await this.#calls.mark(name, queues);
    if (result.outcome === "ok") this.#keep(this.#marks, { name, mark: result.answer, queues }, 3);
  }

  async #submit(): Promise<void> {
    const task = this.#name("t");
    const sealed = this.#chance(0.5);
    const queues = this.#plan.work.filter(() => this.#chance(0.6));
    if (sealed && queues.length === 0) return;
    const batches = queues.map((queue) => ({ queue, messages: this.#newMessages(3) }));
    const result = await this.#calls.submit(task, sealed, batches);
    if (result.outcome === "fail") return;
    this.#keep(this.#tasks, task, 6);
    if (!sealed) this.#openTasks.push(task);
  }

  async #addToTask(): Promise<void> {
    const task = this.#pick(this.#openTasks);
    if (this.#chance(0.5)) return void (await this.#produce(this.#pick(this.#plan.work), this.#newMessages(2, task)));
    this.#openTasks.splice(this.#openTasks.indexOf(task), 1);
    const { outcome } = await this.#calls.seal(task);
    if (outcome !== "ok") this.#openTasks.push(task);
  }
}
