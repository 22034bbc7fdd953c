/** What simulated clients do: chosen by the seed, said once for the store and once for the model. */

import type { Backend } from "../../src/backend/contract.ts";
import type { Random } from "../../src/core/clock.ts";
import type { Mark, NewMessage } from "../../src/core/message.ts";
import { type MessageId, parseQueueName, type QueueName, type Receipt } from "../../src/core/names.ts";
import type { ModelMark, ModelNewMessage } from "../../src/testing/index.ts";
import type { Outcome, World } from "./world.ts";

/** The queues of a run: one under another, and one apart. */
export const QUEUES = ["a", "a/b", "c"].map(parseQueueName);

/** One call of a client. */
export interface Operation {
  readonly index: number;
  readonly text: string;
  /** What the model answers; throws a QueueFSError where it refuses. */
  model(world: World): unknown;
  /** Recovers what may be recovered before a remembered answer is given; absent where there is no such choice. */
  readonly mayRecoverBefore?: (world: World) => unknown;
  /** Of what it answered, that which is still held now: what a store may answer that had to send the call again. Absent: all of it. */
  readonly stillHeld?: (world: World, said: Outcome) => Outcome;
  store(backend: Backend): Promise<unknown>;
  /** Whether the order of the two can matter to anybody. */
  dependsOn(other: Operation): boolean;
  /** @internal */
  readonly touches: readonly string[];
  /** @internal */
  readonly isRead: boolean;
}

/** What clients have been shown so far, to name in later calls; whoever was shown it, any client may use it. */
export class Knowledge {
  readonly receipts: { readonly queue: QueueName; readonly receipt: string }[] = [];
  readonly ids: { readonly queue: QueueName; readonly id: string }[] = [];
  readonly marks: { readonly index: number; readonly mark: Mark }[] = [];

  /** Learns from an answer. */
  learn(queue: QueueName | undefined, index: number, value: unknown): void {
    if (isMark(value)) this.marks.push({ index, mark: value });
    else if (Array.isArray(value)) for (const item of value) this.learn(queue, index, item);
    else if (typeof value === "object" && value !== null && queue !== undefined) {
      const { id, receipt } = value as { readonly id?: unknown; readonly receipt?: unknown };
      if (typeof receipt === "string") this.receipts.push({ queue, receipt });
      if (typeof id === "string") this.ids.push({ queue, id });
    }
  }
}

function isMark(value: unknown): value is Mark {
  return (
    typeof value === "object" && value !== null && Array.isArray((value as { queues?: unknown }).queues) && Object.keys(value).length === 1
  );
}

/** What the time of a run allows. */
export interface Span {
  /** Leases, of which some are to end during the run, in milliseconds. */
  readonly leasesMs: readonly number[];
  /** Delays, in milliseconds. */
  readonly delaysMs: readonly number[];
  /** Whether the time to the next due moment is exact. */
  readonly isExact: boolean;
  /** Whether the store sends a call again by itself whose answer was lost: a dequeue then answers with what is still held of it. */
  readonly sendsAgain: boolean;
}

/** Makes operations. */
export class Operations {
  readonly #random: Random;
  readonly #knowledge: Knowledge;
  readonly #span: Span;
  #made = 0;

  constructor(random: Random, knowledge: Knowledge, span: Span) {
    this.#random = random;
    this.#knowledge = knowledge;
    this.#span = span;
  }

  /** The next operation that the seed chooses. */
  next(): Operation {
    const makers: readonly (readonly [number, () => Operation])[] = [
      [22, () => this.#enqueue()],
      [22, () => this.dequeue(this.#queue())],
      [18, () => this.#ack()],
      [7, () => this.#nack()],
      [3, () => this.#release()],
      [4, () => this.#extend()],
      [2, () => this.#ackById()],
      [8, () => this.#read()],
      [6, () => this.statuses()],
      [3, () => this.#mark()],
      [4, () => this.recover()],
      [2, () => this.#redrive()],
      [1, () => this.#clear()],
      [1, () => this.#remove()],
    ];
    let left = this.#random.fraction() * makers.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of makers) {
      left -= weight;
      if (left < 0) return make();
    }
    return this.statuses();
  }

  /** Makes a queue. */
  createQueue(queue: QueueName, maxDeliveries: number): Operation {
    return this.#operation(
      `createQueue ${queue}`,
      [queue],
      false,
      ({ model }) => model.createQueue(queue, maxDeliveries),
      (backend) => backend.createQueue(queue, { maxDeliveries }),
    );
  }

  /** Takes messages. */
  dequeue(queue: QueueName, limit: number = this.#number(1, 3)): Operation {
    const leaseMs = this.#one(this.#span.leasesMs);
    const requestId = this.#random.fraction() < 0.35 ? this.#one(["q1", "q2", "q3"]) : undefined;
    // The same id with other arguments is a conflict, so they go with the id.
    const request = {
      limit: requestId === undefined ? limit : Number(requestId[1]),
      leaseMs: requestId === undefined ? leaseMs : (this.#span.leasesMs[0] as number),
      owner: "receipt" as const,
      ...(requestId === undefined ? {} : { requestId }),
    };
    const operation = this.#operation(
      `dequeue ${queue} ${JSON.stringify(request)}`,
      [queue],
      false,
      ({ model }) => model.dequeue(queue, request),
      (backend) => backend.dequeue(queue, request),
    );
    if (requestId === undefined) {
      if (!this.#span.sendsAgain) return operation;
      const stillHeld = (world: World, said: Outcome): Outcome => {
        const held = world.model.receiptsOf(queue);
        return "refusal" in said ? said : { value: (said.value as { receipt: string }[]).filter(({ receipt }) => held.includes(receipt)) };
      };
      return { ...operation, stillHeld };
    }
    // A limit of 0 takes nothing, and recovers.
    return {
      ...operation,
      mayRecoverBefore: ({ model }) =>
        model.queueNames.includes(queue) && void model.dequeue(queue, { ...request, limit: 0, requestId: undefined as never }),
    };
  }

  /** Acks one delivery. */
  ack(
    queue: QueueName,
    receipts: readonly string[],
    forward: readonly { queue: QueueName; messages: readonly ModelNewMessage[] }[] = [],
  ): Operation {
    return this.#operation(
      `ack ${queue} ${receipts.join(" ")}${forward.length > 0 ? ` forward ${JSON.stringify(forward)}` : ""}`,
      [queue, ...forward.map((one) => one.queue)],
      false,
      (world) =>
        world.model.ack(
          queue,
          receipts.map((one) => ({ receipt: world.modelName(one), forward })),
        ),
      (backend) => {
        const stored = forward.map((one) => ({ queue: one.queue, messages: one.messages.map(toMessage) }));
        return backend.ack(
          queue,
          receipts.map((one) => ({ receipt: one as Receipt, forward: stored })),
        );
      },
    );
  }

  /** One snapshot of all queues. */
  statuses(): Operation {
    return this.#operation(
      "statuses",
      QUEUES,
      true,
      ({ model }) => model.statuses({ under: "" }),
      (backend) => backend.statuses({ under: "" }),
    );
  }

  /** One step of recovery in all queues. */
  recover(): Operation {
    return this.#operation(
      "recover",
      QUEUES,
      false,
      ({ model }) => model.recover(),
      (backend) => backend.recover(),
    );
  }

  #enqueue(): Operation {
    const queue = this.#queue();
    const messages = this.#messages(this.#number(1, 3));
    return this.#operation(
      `enqueue ${queue} ${JSON.stringify(messages)}`,
      [queue],
      false,
      ({ model }) => model.enqueue(queue, messages),
      (backend) => backend.enqueue(queue, messages.map(toMessage)),
    );
  }

  #ack(): Operation {
    const { queue, receipt } = this.#receipt();
    if (this.#random.fraction() < 0.4)
      return this.ack(queue, [receipt], [{ queue: this.#queue(), messages: this.#messages(this.#number(0, 2)) }]);
    return this.ack(queue, this.#random.fraction() < 0.2 ? [receipt, this.#receipt(queue).receipt, receipt] : [receipt]);
  }

  #nack(): Operation {
    const { queue, receipt } = this.#receipt();
    const delayMs = this.#one([0, 0, ...this.#span.delaysMs]);
    const [giveUp, reason] = [this.#random.fraction() < 0.25, this.#one(["", "no", "worse"])];
    return this.#operation(
      `nack ${queue} ${receipt} ${delayMs} ${giveUp} ${reason}`,
      [queue],
      false,
      (world) => world.model.nack(queue, [{ receipt: world.modelName(receipt), delayMs, giveUp, reason }]),
      (backend) => backend.nack(queue, [{ receipt: receipt as Receipt, delayMs, giveUp, ...(reason === "" ? {} : { reason }) }]),
    );
  }

  #release(): Operation {
    const { queue, receipt } = this.#receipt();
    return this.#operation(
      `release ${queue} ${receipt}`,
      [queue],
      false,
      (world) => world.model.release(queue, [world.modelName(receipt)]),
      (backend) => backend.release(queue, [receipt as Receipt]),
    );
  }

  #extend(): Operation {
    const { queue, receipt } = this.#receipt();
    const leaseMs = this.#one(this.#span.leasesMs);
    return this.#operation(
      `extend ${queue} ${receipt} ${leaseMs}`,
      [queue],
      false,
      (world) => world.model.extend(queue, [{ receipt: world.modelName(receipt), leaseMs }]),
      (backend) => backend.extend(queue, [{ receipt: receipt as Receipt, leaseMs }]),
    );
  }

  #ackById(): Operation {
    const { queue, id } = this.#id();
    return this.#operation(
      `ackById ${queue} ${id}`,
      [queue],
      false,
      (world) => world.model.ackById(queue, [world.modelName(id)]),
      (backend) => backend.ackById(queue, [id as MessageId]),
    );
  }

  #redrive(): Operation {
    const { queue, id } = this.#id();
    const name = this.#random.fraction() < 0.8 ? ("redrive" as const) : ("drop" as const);
    return this.#operation(
      `${name} ${queue} ${id}`,
      [queue],
      false,
      (world) => (name === "redrive" ? world.model.redrive(queue, [world.modelName(id)]) : world.model.drop(queue, [world.modelName(id)])),
      (backend) => (name === "redrive" ? backend.redrive(queue, [id as MessageId]) : backend.drop(queue, [id as MessageId])),
    );
  }

  #read(): Operation {
    const queue = this.#queue();
    const reads = ["status", "status", "status", "statistics", "peek", ...(this.#span.isExact ? (["nextDue"] as const) : [])] as const;
    const read = this.#one(reads);
    if (this.#random.fraction() < 0.2) {
      return this.#operation(
        `messages ${queue}`,
        [queue],
        true,
        ({ model }) => model.messages(queue),
        async (backend) => {
          const page = await backend.messages(queue, { limit: 1_000 });
          return page.items;
        },
      );
    }
    return this.#operation(
      `${read} ${queue}`,
      [queue],
      true,
      ({ model }) => model[read](queue),
      (backend) => backend[read](queue),
    );
  }

  #mark(): Operation {
    const known = this.#knowledge.marks;
    if (known.length === 0 || this.#random.fraction() < 0.4) {
      const index = this.#made;
      return this.#operation(
        "mark",
        QUEUES,
        true,
        (world) => {
          const mark = world.model.mark({ queues: QUEUES });
          world.marks.set(index, mark);
          return { queues: mark.queues.map(({ queue }) => ({ queue })) };
        },
        (backend) => backend.mark({ queues: QUEUES }),
      );
    }
    const { index, mark } = this.#one(known);
    return this.#operation(
      `reached ${index}`,
      QUEUES,
      true,
      (world) => world.model.reached(world.marks.get(index) as ModelMark),
      (backend) => backend.reached(mark),
    );
  }

  #clear(): Operation {
    const queue = this.#queue();
    return this.#operation(
      `clear ${queue}`,
      [queue],
      false,
      ({ model }) => model.clear(queue),
      (backend) => backend.clear(queue),
    );
  }

  #remove(): Operation {
    const queue = this.#queue();
    if (this.#random.fraction() < 0.6) return this.createQueue(queue, this.#number(1, 4));
    return this.#operation(
      `removeQueue ${queue}`,
      QUEUES,
      false,
      ({ model }) => model.removeQueue(queue, false),
      (backend) => backend.removeQueue(queue),
    );
  }

  #operation(
    what: string,
    touches: readonly string[],
    isRead: boolean,
    model: (world: World) => unknown,
    store: (backend: Backend) => Promise<unknown>,
  ): Operation {
    const index = this.#made;
    this.#made += 1;
    return {
      index,
      text: `#${index} ${what}`,
      touches,
      isRead,
      model,
      store,
      dependsOn: (other) => !(isRead && other.isRead) && touches.some((queue) => other.touches.includes(queue)),
    };
  }

  #messages(count: number): ModelNewMessage[] {
    return Array.from({ length: count }, () => {
      const data = this.#one(["", "00", "61", "7b7d", "ff00fe"]);
      const chance = this.#random.fraction();
      if (chance < 0.25) return { data: this.#one(["61", "62"]), id: this.#one(["x", "y", "z"]) };
      if (chance < 0.4 && this.#span.delaysMs.length > 0) return { data, delayMs: this.#one(this.#span.delaysMs) };
      return { data };
    });
  }

  #queue(): QueueName {
    return this.#one(["a", "a", "a/b", "c"]) as QueueName;
  }

  #receipt(queue?: QueueName): { readonly queue: QueueName; readonly receipt: string } {
    const known = this.#knowledge.receipts.filter((one) => queue === undefined || one.queue === queue);
    if (known.length === 0) return { queue: queue ?? this.#queue(), receipt: "r-unknown" };
    // Most often one of the newest, whose delivery is still held.
    const back = this.#random.fraction() < 0.8 ? this.#number(0, 4) : this.#number(0, known.length - 1);
    return known[Math.max(0, known.length - 1 - back)] as { readonly queue: QueueName; readonly receipt: string };
  }

  #id(): { readonly queue: QueueName; readonly id: string } {
    const known = this.#knowledge.ids;
    if (known.length === 0) return { queue: this.#queue(), id: "x" };
    return known[Math.max(0, known.length - 1 - this.#number(0, 8))] as { readonly queue: QueueName; readonly id: string };
  }

  #one<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random.fraction() * items.length)] as Item;
  }

  #number(from: number, to: number): number {
    return from + Math.floor(this.#random.fraction() * (to - from + 1));
  }
}

function toMessage({ data, id, delayMs }: ModelNewMessage): NewMessage {
  return {
    data: Buffer.from(data, "hex"),
    ...(id === undefined ? {} : { id: id as MessageId }),
    ...(delayMs === undefined ? {} : { delayMs }),
  };
}
