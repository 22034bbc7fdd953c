/** Reads a history once, and sorts it by message, receipt, request and queue. */

import { type Batch, type Fault, type History, type Operation, type OperationOf, processOf } from "../operation.ts";
import { type Delivery, type HiddenDequeue, type Life, MS, type ReceiptUse, type StoringStep } from "./life.ts";
import type { Findings, Promises } from "./promises.ts";

/** A history in the order in which the checks need it. */
export interface Indexed {
  readonly history: History;
  readonly promises: Promises;
  readonly operations: readonly Operation[];
  readonly lives: ReadonlyMap<string, Life>;
  readonly livesByQueue: ReadonlyMap<string, readonly Life[]>;
  readonly deliveries: readonly Delivery[];
  readonly deliveryByReceipt: ReadonlyMap<string, Delivery>;
  readonly hidden: readonly HiddenDequeue[];
  /** Dequeues that were sent again, and took longer than their lease or outlived the server, so that what they took at first may have been recovered before they were sent again. */
  readonly resent: readonly HiddenDequeue[];
  readonly steps: readonly StoringStep[];
  readonly deaths: ReadonlyMap<string, number>;
}

type Dequeue = OperationOf<"dequeue">;

/** Builds an index; what shows a wrong while it is built is told to `findings`. */
export class Indexer {
  readonly #history: History;
  readonly #promises: Promises;
  readonly #findings: Findings;
  readonly #lives = new Map<string, Life>();
  readonly #steps: StoringStep[] = [];
  readonly #deliveries: Delivery[] = [];
  readonly #byReceipt = new Map<string, Delivery>();
  readonly #hidden: HiddenDequeue[] = [];
  readonly #resent: HiddenDequeue[] = [];
  readonly #deaths = new Map<string, number>();
  readonly #operations: Operation[];
  readonly #forwards = new Map<Operation, Map<string, StoringStep>>();
  readonly #forgettings: readonly Fault[];

  constructor(history: History, promises: Promises, findings: Findings) {
    this.#history = history;
    this.#promises = promises;
    this.#findings = findings;
    this.#forgettings = promises.forgetsAnswers ? history.faults.filter(({ kind }) => kind === "server killed") : [];
    for (const { kind, process, begin } of history.faults) if (kind === "kill") this.#deaths.set(process, begin);
    const ends = new Map(history.faults.filter(({ kind }) => kind === "kill").map(({ process, end }) => [process, end]));
    this.#operations = history.operations
      .map((operation) => this.#bounded(operation, ends))
      .sort((left, right) => left.begin - right.begin);
  }

  /** An unknown operation can still happen after its end, for as long as the backend says. */
  #bounded(operation: Operation, ends: ReadonlyMap<string, number>): Operation {
    if (operation.outcome !== "info") return operation;
    const last = Math.min(operation.end, ends.get(processOf(operation.client)) ?? Number.POSITIVE_INFINITY);
    return { ...operation, end: last + this.#promises.lateEffectMs * MS };
  }

  /** Whether it may have been carried out, forgotten with the death of the server, and carried out anew. */
  #isAnew({ begin, end }: Operation): boolean {
    return this.#forgettings.some((fault) => fault.begin <= end && fault.end >= begin);
  }

  index(): Indexed {
    for (const operation of this.#operations) {
      if (operation.op === "enqueue")
        this.#store(
          [operation],
          // Stored by its first copy, it is known to the second.
          operation.answers?.map(({ outcome }) => (outcome === "repeated" && this.#isAnew(operation) ? "unknown" : outcome)),
        );
      else if (operation.op === "submit" && operation.answer !== "exists") this.#storeTask(operation);
      else if (operation.op === "ack") for (const index of operation.items.keys()) this.#storeForward(operation, index);
    }
    this.#readDequeues();
    for (const operation of this.#operations) {
      if (operation.op === "ack" || operation.op === "nack" || operation.op === "release" || operation.op === "extend")
        this.#readUses(operation);
    }
    const livesByQueue = new Map<string, Life[]>();
    for (const life of this.#lives.values()) {
      life.deliveries.sort((left, right) => left.end - right.end);
      let next = Number.POSITIVE_INFINITY;
      for (const delivery of life.deliveries.toReversed()) {
        delivery.next = next;
        next = Math.min(next, delivery.begin);
      }
      const lives = livesByQueue.get(life.queue);
      if (lives === undefined) livesByQueue.set(life.queue, [life]);
      else lives.push(life);
    }
    return {
      history: this.#history,
      promises: this.#promises,
      operations: this.#operations,
      lives: this.#lives,
      livesByQueue,
      deliveries: this.#deliveries,
      deliveryByReceipt: this.#byReceipt,
      hidden: this.#hidden,
      resent: this.#resent,
      steps: this.#steps,
      deaths: this.#deaths,
    };
  }

  #newStep(operation: Operation, outcome: StoringStep["outcome"], source?: string): StoringStep {
    const step: StoringStep = { operation, storings: [], outcome, end: operation.end, ...(source === undefined ? {} : { source }) };
    this.#steps.push(step);
    return step;
  }

  #store(batches: readonly (Batch & Operation)[], replies: readonly string[] | undefined): void {
    for (const batch of batches) this.#add(this.#newStep(batch, batch.outcome), batch, replies);
  }

  #storeTask(operation: OperationOf<"submit">): void {
    const step = this.#newStep(operation, operation.outcome);
    for (const batch of operation.batches) this.#add(step, batch, undefined);
  }

  #storeForward(operation: OperationOf<"ack">, index: number): void {
    const { receipt, forward } = operation.items[index] as OperationOf<"ack">["items"][number];
    if (forward === undefined) return;
    const answer = operation.answers?.[index];
    const outcome = operation.outcome === "ok" ? (answer === "acked" ? "ok" : "fail") : operation.outcome;
    const step = this.#newStep(operation, outcome, receipt);
    const forwards = this.#forwards.get(operation) ?? new Map<string, StoringStep>();
    this.#forwards.set(operation, forwards.set(receipt, step));
    for (const batch of forward) this.#add(step, batch, undefined);
  }

  #add(step: StoringStep, { queue, messages }: Batch, replies: readonly string[] | undefined): void {
    for (const [index, message] of messages.entries()) {
      let life = this.#lives.get(message.value);
      if (life === undefined) {
        life = {
          value: message.value,
          queue,
          storings: [],
          deliveries: [],
          removals: [],
          task: undefined,
          born: Number.POSITIVE_INFINITY,
          sure: Number.POSITIVE_INFINITY,
          from: Number.POSITIVE_INFINITY,
          by: Number.POSITIVE_INFINITY,
        };
        this.#lives.set(message.value, life);
      }
      if (step.outcome !== "fail") life.task ??= message.task;
      const storing = { life, message, operation: step.operation, step, reply: replies?.[index] };
      life.storings.push(storing);
      step.storings.push(storing);
    }
  }

  /** The calls with one request id are one dequeue: the first that is not empty is remembered, and answers all. */
  #readDequeues(): void {
    const requests = new Map<string, Dequeue[]>();
    for (const operation of this.#operations) {
      if (operation.op !== "dequeue" || operation.outcome === "fail") continue;
      if (operation.requestId === undefined) {
        this.#readRequest([operation]);
        const { queue, begin, end, limit, leaseMs, outcome } = operation;
        const { resends, toleranceMs } = this.#promises;
        if (resends && outcome === "ok" && (end - begin >= (leaseMs - toleranceMs) * MS || this.#isAnew(operation)))
          this.#resent.push({ operation, queue, begin, end, limit, leaseMs });
      } else {
        const key = `${operation.queue} ${operation.requestId}`;
        const calls = requests.get(key);
        if (calls === undefined) requests.set(key, [operation]);
        else calls.push(operation);
      }
    }
    for (const calls of requests.values()) this.#readRequest(calls);
  }

  #readRequest(calls: readonly Dequeue[]): void {
    // An empty answer is not remembered, so the call that got it handed nothing out.
    const relevant = calls.filter(({ outcome, received }) => outcome === "info" || (received?.length ?? 0) > 0);
    const answered = relevant.filter(({ outcome }) => outcome === "ok");
    const [first] = answered;
    if (first === undefined) {
      for (const operation of relevant) {
        const { queue, begin, end, limit, leaseMs } = operation;
        this.#hidden.push({ operation, queue, begin, end, limit, leaseMs });
      }
      return;
    }
    if (answered.length > 1 || relevant.length > 1) {
      this.#findings.looked("S10", answered.length > 1);
      const receipts = (call: Dequeue): string => (call.received ?? []).map(({ receipt, value }) => `${receipt} ${value}`).join();
      for (const other of answered.slice(1))
        if (receipts(other) !== receipts(first))
          this.#findings.violated("S10", "two calls with one request id got different deliveries", first, other);
    }
    this.#deliver(first, relevant, Math.min(...answered.map(({ end }) => end)));
  }

  #deliver(operation: Dequeue, calls: readonly Dequeue[], end: number): void {
    const begin = Math.min(...calls.map((call) => call.begin));
    const death = Math.min(...calls.map(({ client }) => this.#deaths.get(processOf(client)) ?? Number.POSITIVE_INFINITY));
    for (const received of operation.received ?? []) {
      this.#findings.looked("S2");
      const life = this.#lives.get(received.value);
      if (life === undefined) {
        this.#findings.violated("S2", `a message was delivered that nobody enqueued: ${received.value}`, operation);
        continue;
      }
      if (life.queue !== operation.queue)
        this.#findings.violated("S2", `${life.value} came from another queue than it went to`, life.storings[0]?.operation, operation);
      if (!received.intact) this.#findings.violated("S2", `${life.value} came with other bytes`, life.storings[0]?.operation, operation);
      this.#findings.looked("S5");
      const twin = this.#byReceipt.get(received.receipt);
      if (twin !== undefined) {
        this.#findings.violated("S5", `receipt ${received.receipt} names two deliveries`, twin.operation, operation);
        continue;
      }
      const { receipt } = received;
      const delivery: Delivery = {
        life,
        receipt,
        begin,
        end,
        leaseMs: operation.leaseMs,
        operation,
        death,
        uses: [],
        next: Number.POSITIVE_INFINITY,
      };
      life.deliveries.push(delivery);
      this.#deliveries.push(delivery);
      this.#byReceipt.set(receipt, delivery);
    }
  }

  #readUses(operation: OperationOf<ReceiptUse["kind"]>): void {
    if (operation.outcome === "fail") return;
    for (const [index, item] of operation.items.entries()) {
      const delivery = this.#byReceipt.get(item.receipt);
      if (delivery === undefined) continue;
      const answer = operation.answers?.[index];
      const forward = this.#forwards.get(operation)?.get(item.receipt);
      // Its first copy may have renewed the lease, for a shorter time than was left of it.
      const isUnknown = operation.outcome === "info" || (operation.op === "extend" && answer === "stale" && this.#isAnew(operation));
      delivery.uses.push({
        kind: operation.op,
        operation,
        begin: operation.begin,
        end: operation.end,
        outcome: isUnknown ? "info" : answer === "stale" ? "stale" : "ok",
        delayMs: item.delayMs ?? 0,
        leaseMs: item.leaseMs ?? 0,
        ...(forward === undefined ? {} : { forward }),
      });
    }
  }
}
