/** Histories: steps as plain data, run on a store and on the model at once, with every answer compared. */

import assert from "node:assert/strict";
import type { Backend } from "../backend/contract.ts";
import { isQueueFSError } from "../core/errors.ts";
import type { Mark, NewMessage, QueueSelection } from "../core/message.ts";
import type { MessageId, QueueName, Receipt } from "../core/names.ts";
import type { CaseOptions, ConformanceHarness } from "./conformance/case.ts";
import { assertSound } from "./conformance/run.ts";
import { everyDeadLetter, everyListed, everyMessage, turn } from "./conformance/steps.ts";
import { Correspondence } from "./correspondence.ts";
import { ManualClock } from "./manual-clock.ts";
import { ModelStore } from "./model.ts";
import type { ModelMark, ModelNewMessage } from "./model-shapes.ts";

/** The queues of all histories: one under another, neighbours by a pattern character, one apart. */
export const HISTORY_QUEUES = ["a", "a/b", "a_b", "b"] as const;
/** The name of a queue of a history. */
export type HistoryQueue = (typeof HISTORY_QUEUES)[number];

/** Names a receipt or message among some: the newest is 0, the one before it 1, and so on, round and round. */
export interface Reference {
  readonly back: number;
  /**
   * Among which. `right`, the default: those for which the step does something, as long as there is one. `own`: all that the history has
   * shown of the step's queue, most of them stale. `any`: those of all queues.
   */
  readonly among?: "right" | "own" | "any";
}

/** Which queues a step concerns. */
export type HistorySelection = { readonly queues: readonly HistoryQueue[] } | { readonly under: HistoryQueue | "" };

/** One step of a history. `client` tells which of the two clients of the store makes it. */
export type HistoryStep = { readonly client: 0 | 1 } & (
  | { readonly do: "createQueue"; readonly queue: HistoryQueue; readonly maxDeliveries?: number }
  | { readonly do: "configureQueue"; readonly queue: HistoryQueue; readonly maxDeliveries: number }
  | { readonly do: "removeQueue"; readonly queue: HistoryQueue; readonly recursive: boolean }
  | { readonly do: "listQueues"; readonly under: HistoryQueue | ""; readonly limit: number }
  | { readonly do: "enqueue"; readonly queue: HistoryQueue; readonly messages: readonly ModelNewMessage[] }
  | {
      readonly do: "dequeue";
      readonly queue: HistoryQueue;
      readonly limit: number;
      readonly leaseMs: number;
      readonly owner: "process" | "receipt";
      readonly requestId?: string;
    }
  | {
      readonly do: "ack";
      readonly queue: HistoryQueue;
      readonly items: readonly (Reference & {
        readonly forward?: readonly { readonly queue: HistoryQueue; readonly messages: readonly ModelNewMessage[] }[];
      })[];
    }
  | { readonly do: "ackById"; readonly queue: HistoryQueue; readonly items: readonly Reference[] }
  | {
      readonly do: "nack";
      readonly queue: HistoryQueue;
      readonly items: readonly (Reference & { readonly delayMs: number; readonly giveUp: boolean; readonly reason: string })[];
    }
  | { readonly do: "release"; readonly queue: HistoryQueue; readonly items: readonly Reference[] }
  | { readonly do: "extend"; readonly queue: HistoryQueue; readonly items: readonly (Reference & { readonly leaseMs: number })[] }
  | { readonly do: "peek"; readonly queue: HistoryQueue }
  | { readonly do: "nextDue"; readonly queue: HistoryQueue }
  | { readonly do: "messages"; readonly queue: HistoryQueue; readonly limit: number }
  | { readonly do: "clear"; readonly queue: HistoryQueue }
  | { readonly do: "status"; readonly queue: HistoryQueue }
  | { readonly do: "statuses"; readonly selection: HistorySelection }
  | { readonly do: "mark"; readonly selection: HistorySelection }
  | { readonly do: "reached"; readonly back: number }
  | { readonly do: "statistics"; readonly queue: HistoryQueue }
  | { readonly do: "recover" }
  | { readonly do: "deadLetters"; readonly queue: HistoryQueue; readonly limit: number }
  | { readonly do: "redrive"; readonly queue: HistoryQueue; readonly items: readonly Reference[] }
  | { readonly do: "drop"; readonly queue: HistoryQueue; readonly items: readonly Reference[] }
  | { readonly do: "passTime"; readonly ms: number }
  /** The client is closed and opened again; what it held in hand stays as it is. */
  | { readonly do: "reopen" }
);

type Step<Do extends HistoryStep["do"]> = Extract<HistoryStep, { readonly do: Do }>;

/** A step that asks something of the store. */
type StoreStep = Exclude<HistoryStep, Step<"passTime"> | Step<"reopen">>;

/** How a history is run. */
export interface HistoryOptions {
  /** Options of the clients. `rememberMs` is known to the model, too. */
  readonly options?: CaseOptions;
}

/** One step on both sides: what the model answers, what the store does, and, where more than equality is asked for, how they are compared. */
interface Sides {
  model(): unknown;
  store(): Promise<unknown>;
  compare?(expected: unknown, actual: unknown, where: string): void;
}

class History {
  readonly model: ModelStore;
  readonly #names: Correspondence;
  readonly #clients: readonly Backend[];
  readonly #receipts: { readonly queue: string; readonly receipt: string }[] = [];
  readonly #ids: { readonly queue: string; readonly id: string }[] = [];
  readonly #marks: { readonly model: ModelMark; readonly store: Mark }[] = [];

  constructor(model: ModelStore, names: Correspondence, clients: readonly Backend[]) {
    this.model = model;
    this.#names = names;
    this.#clients = clients;
  }

  /** Makes one step on both sides and compares. */
  async step(step: StoreStep, where: string): Promise<void> {
    // A repeated request need not look at the queue, so whether it recovers ended leases is left open: recover before it.
    if (step.do === "dequeue" && step.requestId !== undefined) await this.step({ client: step.client, do: "recover" }, where);
    const { model, store, compare = (expected, actual, at) => this.#names.match(expected, actual, at) } = this.#sides(step);
    const expected = await outcome(async () => model());
    const actual = await outcome(store);
    const said = ` ${JSON.stringify({ expected, actual: readable(actual) })}`;
    assert.equal(actual.refusal, expected.refusal, `${where}: refused alike;${said}`);
    if (expected.refusal === undefined) compare(expected.value, readable(actual.value), where);
    this.#names.match(this.model.statuses({ under: "" }), await this.#client(step).statuses({ under: "" }), `${where}, statuses after it`);
  }

  /** Compares everything that can be seen of every queue. */
  async compareAll(where: string): Promise<void> {
    for (const queue of this.model.queueNames as readonly HistoryQueue[]) {
      await this.step({ client: 0, do: "statistics", queue }, `${where}: statistics of ${queue}`);
      await this.step({ client: 1, do: "messages", queue, limit: 1000 }, `${where}: messages of ${queue}`);
      await this.step({ client: 0, do: "deadLetters", queue, limit: 1000 }, `${where}: dead letters of ${queue}`);
      await this.step({ client: 1, do: "peek", queue }, `${where}: head of ${queue}`);
      await this.step({ client: 0, do: "nextDue", queue }, `${where}: next due of ${queue}`);
    }
  }

  #client(step: { readonly client: 0 | 1 }): Backend {
    return this.#clients[step.client] as Backend;
  }

  #sides(step: StoreStep): Sides {
    const client = this.#client(step);
    const { model } = this;
    switch (step.do) {
      case "createQueue": {
        const { queue, maxDeliveries } = step;
        return {
          model: () => model.createQueue(queue, maxDeliveries),
          store: () => client.createQueue(queue as QueueName, maxDeliveries === undefined ? {} : { maxDeliveries }),
        };
      }
      case "configureQueue":
        return {
          model: () => model.configureQueue(step.queue, step.maxDeliveries),
          store: () => client.configureQueue(step.queue as QueueName, { maxDeliveries: step.maxDeliveries }),
        };
      case "removeQueue":
        return {
          model: () => model.removeQueue(step.queue, step.recursive),
          store: () => client.removeQueue(step.queue as QueueName, { recursive: step.recursive }),
        };
      case "listQueues": {
        const page = { under: step.under as QueueName | "", limit: step.limit };
        return {
          model: () => model.listQueues(step.under),
          store: () => everyListed((after) => client.listQueues(after === undefined ? page : { ...page, after })),
        };
      }
      case "clear":
      case "status":
      case "statistics":
      case "peek":
        return { model: () => model[step.do](step.queue), store: () => client[step.do](step.queue as QueueName) };
      case "nextDue":
        return {
          model: () => model.nextDue(step.queue),
          store: () => client.nextDue(step.queue as QueueName),
          compare: (expected, actual, where) => this.#names.matchSpan(expected as number | undefined, actual, where),
        };
      case "messages":
        return { model: () => model.messages(step.queue), store: () => everyMessage(client, step.queue as QueueName, step.limit) };
      case "deadLetters":
        return {
          model: () => model.deadLetters(step.queue),
          store: () => everyDeadLetter(client, step.queue as QueueName, step.limit),
          compare: (expected, actual, where) => this.#compareDeadLetters(expected as unknown[][], actual as unknown[], where),
        };
      case "statuses":
        return { model: () => model.statuses(step.selection), store: () => client.statuses(step.selection as QueueSelection) };
      case "recover":
        return { model: () => model.recover(), store: () => client.recover() };
      case "mark":
      case "reached":
        return this.#markSides(step, client);
      case "enqueue":
      case "dequeue":
        return this.#entrySides(step, client);
      default:
        return this.#settlingSides(step, client);
    }
  }

  #markSides(step: Step<"mark"> | Step<"reached">, client: Backend): Sides {
    if (step.do === "mark") {
      return {
        model: () => this.model.mark(step.selection),
        store: () => client.mark(step.selection as QueueSelection),
        compare: (expected, actual, where) => {
          const [model, store] = [expected as ModelMark, actual as Mark];
          assert.deepEqual(
            store.queues.map((one) => one.queue as string),
            model.queues.map((one) => one.queue),
            where,
          );
          this.#marks.push({ model, store });
        },
      };
    }
    const mark = pick(this.#marks, step.back) ?? { model: { queues: [] }, store: { queues: [] } };
    return { model: () => this.model.reached(mark.model), store: () => client.reached(mark.store) };
  }

  #entrySides(step: Step<"enqueue"> | Step<"dequeue">, client: Backend): Sides {
    const queue = step.queue as QueueName;
    if (step.do === "enqueue") {
      return {
        model: () => this.#enqueued(queue, this.model.enqueue(queue, step.messages)),
        store: () => client.enqueue(queue, step.messages.map(toMessage)),
      };
    }
    const { limit, leaseMs, owner, requestId } = step;
    const request = { limit, leaseMs, owner, ...(requestId === undefined ? {} : { requestId }) };
    return {
      model: () => {
        const answer = this.model.dequeue(queue, request) as readonly { readonly receipt: string }[];
        for (const { receipt } of answer) {
          if (!this.#receipts.some((one) => one.receipt === receipt)) this.#receipts.push({ queue, receipt });
        }
        return answer;
      },
      store: () => client.dequeue(queue, request),
    };
  }

  #settlingSides(step: Step<"ack" | "ackById" | "nack" | "release" | "extend" | "redrive" | "drop">, client: Backend): Sides {
    const { model } = this;
    const queue = step.queue as QueueName;
    if (step.do === "ackById" || step.do === "redrive" || step.do === "drop") {
      const right = model.idsOf(queue, step.do === "ackById" ? "processing" : "dead");
      const ids = step.items.map((item) => this.#id(queue, item, right));
      return {
        model: () => model[step.do](queue, ids),
        store: () =>
          client[step.do](
            queue,
            ids.map((id) => this.#names.real(id) as MessageId),
          ),
      };
    }
    if (step.do === "release") {
      const receipts = step.items.map((item) => this.#receipt(queue, item));
      return {
        model: () => model.release(queue, receipts),
        store: () =>
          client.release(
            queue,
            receipts.map((one) => this.#real(one)),
          ),
      };
    }
    if (step.do === "extend") {
      const items = step.items.map((item) => ({ receipt: this.#receipt(queue, item), leaseMs: item.leaseMs }));
      return {
        model: () => model.extend(queue, items),
        store: () =>
          client.extend(
            queue,
            items.map((item) => ({ ...item, receipt: this.#real(item.receipt) })),
          ),
      };
    }
    if (step.do === "nack") {
      const items = step.items.map(({ delayMs, giveUp, reason, ...reference }) => ({
        receipt: this.#receipt(queue, reference),
        delayMs,
        giveUp,
        reason,
      }));
      return {
        model: () => model.nack(queue, items),
        store: () =>
          client.nack(
            queue,
            items.map(({ receipt, reason, ...rest }) => ({ ...rest, receipt: this.#real(receipt), ...(reason === "" ? {} : { reason }) })),
          ),
      };
    }
    const items = step.items.map(({ forward = [], ...reference }) => ({ receipt: this.#receipt(queue, reference), forward }));
    return {
      model: () => {
        const answers = model.ack(queue, items) as { readonly forwarded?: readonly (readonly unknown[])[] }[];
        for (const [index, { forwarded = [] }] of answers.entries()) {
          for (const [turn, answer] of forwarded.entries()) this.#enqueued(items[index]?.forward[turn]?.queue ?? queue, answer);
        }
        return answers;
      },
      store: () =>
        client.ack(
          queue,
          items.map(({ receipt, forward }) => ({
            receipt: this.#real(receipt),
            forward: forward.map((one) => ({ queue: one.queue as QueueName, messages: one.messages.map(toMessage) })),
          })),
        ),
    };
  }

  #enqueued(queue: string, answers: readonly unknown[]): readonly unknown[] {
    for (const { id } of answers as readonly { readonly id: string }[]) {
      if (!this.#ids.some((one) => one.id === id && one.queue === queue)) this.#ids.push({ queue, id });
    }
    return answers;
  }

  #receipt(queue: string, { back, among = "right" }: Reference): string {
    const right = among === "right" ? this.model.receiptsOf(queue) : [];
    const shown = this.#receipts.filter((one) => among === "any" || one.queue === queue).map((one) => one.receipt);
    return pick(right.length > 0 ? right : shown, back) ?? "r-1-1-1";
  }

  #id(queue: string, { back, among = "right" }: Reference, right: readonly string[]): string {
    const shown = this.#ids.filter((one) => among === "any" || one.queue === queue).map((one) => one.id);
    return pick(among === "right" && right.length > 0 ? right : shown, back) ?? "unknown";
  }

  #real(receipt: string): Receipt {
    return this.#names.real(receipt) as Receipt;
  }

  /** The order of groups is promised, that within a group is not. */
  #compareDeadLetters(groups: readonly (readonly unknown[])[], actual: readonly unknown[], where: string): void {
    assert.equal(actual.length, groups.flat().length, `${where}: as many`);
    const byId = (one: unknown): string => this.#names.real((one as { id: string }).id);
    let start = 0;
    for (const group of groups) {
      const part = actual.slice(start, start + group.length);
      start += group.length;
      const sort = (items: readonly unknown[]): unknown[] => items.toSorted((left, right) => (byId(left) < byId(right) ? -1 : 1));
      this.#names.match(sort(group), sort(part), where);
    }
  }
}

/**
 * Runs a history on a new store of the harness and on the model, and fails at the first answer that differs. At the end, all that can be seen of
 * both is compared, and the store must be sound. On a harness without a manual clock time stands still for the model: such histories
 * must have no step that passes time, and no lease or delay that ends meanwhile.
 */
export async function runHistory(
  steps: readonly HistoryStep[],
  harness: ConformanceHarness,
  { options = {} }: HistoryOptions = {},
): Promise<void> {
  const exactTimes = harness.capabilities.includes("manual-clock");
  const clock = new ManualClock();
  const store = await harness.createStore();
  const clients: Backend[] = [];
  try {
    for (let client = 0; client < 2; client += 1) clients.push(await store.open(options));
    const history = new History(new ModelStore(clock, options.rememberMs), new Correspondence(exactTimes), clients);
    for (const [index, step] of steps.entries()) {
      const where = `step ${index}, ${step.do}`;
      if (step.do === "passTime") {
        clock.advance(step.ms);
        await store.passTime(step.ms);
      } else if (step.do === "reopen") {
        // Opening recovers by itself, at once or soon; done before it, nothing is left to differ.
        await history.step({ client: step.client, do: "recover" }, where);
        await clients[step.client]?.close();
        clients[step.client] = await store.open(options);
        await history.compareAll(where);
      } else {
        await history.step(step, where);
      }
      if (index % 16 === 15) await turn();
    }
    await history.compareAll("at the end");
    await assertSound(clients[0] as Backend);
  } finally {
    for (const client of clients) await client.close();
    await store.destroy();
  }
}

function pick<Item>(items: readonly Item[], back: number): Item | undefined {
  return items.length === 0 ? undefined : items[items.length - 1 - (back % items.length)];
}

function toMessage({ data, id, delayMs }: ModelNewMessage): NewMessage {
  return {
    data: Buffer.from(data, "hex"),
    ...(id === undefined ? {} : { id: id as MessageId }),
    ...(delayMs === undefined ? {} : { delayMs }),
  };
}

async function outcome(call: () => Promise<unknown>): Promise<{ readonly value?: unknown; readonly refusal?: string }> {
  try {
    return { value: await call() };
  } catch (error) {
    if (isQueueFSError(error)) return { refusal: error.code };
    throw error;
  }
}

/** The same value with bytes as hexadecimal text. */
function readable(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, readable(one)]));
}
