/**
 * S7, S11, C1, C2, C3, L1 and L4: what counts, waits and empty answers say must be so at one instant of their call. One pass over time keeps the
 * bounds of all counts; a question that is under way is answered as soon as an instant fits it, and is a violation when its call ends before.
 */

import type { Operation, OperationOf } from "../operation.ts";
import { type Changes, COUNTED } from "./changes.ts";
import type { Indexed } from "./index-history.ts";
import { type Life, MS } from "./life.ts";
import type { Findings, Property } from "./promises.ts";

/** What is asked of the instants of one call. */
interface Question {
  readonly property: Property;
  readonly operation: Operation;
  readonly queues: readonly number[];
  /** Of a status or wait. */
  readonly counts?: readonly (readonly [pending: number, processing: number])[];
  /** Of an empty answer: which count must be zero. */
  readonly zero?: number;
  isTelling: boolean;
  bounds: string;
}

const [LOOSEN, BEGIN, END, TIGHTEN] = [0, 1, 2, 3];

/** Whether a change makes more answers right: fewer are certain, or more possible. */
function isLoosening(key: number, by: number): boolean {
  return key < 0 ? by < 0 : key % 8 === COUNTED.most ? by > 0 : by < 0;
}

/** One pass. */
class Pass {
  readonly #indexed: Indexed;
  readonly #changes: Changes;
  readonly #findings: Findings;
  readonly #counts: Int32Array;
  readonly #links: Int32Array;
  readonly #open: Set<Question>[];
  /** Since when nothing can have been unacked, per queue; NaN while something may be. */
  readonly #idleSince: Float64Array;

  constructor(indexed: Indexed, changes: Changes, findings: Findings) {
    this.#indexed = indexed;
    this.#changes = changes;
    this.#findings = findings;
    this.#counts = new Int32Array(changes.queues.length * 8);
    this.#links = new Int32Array(changes.links.length);
    this.#open = changes.queues.map(() => new Set());
    this.#idleSince = new Float64Array(changes.queues.length).fill(Number.NEGATIVE_INFINITY);
  }

  #count(queue: number, counted: number): number {
    return this.#counts[queue * 8 + counted] as number;
  }

  #inTheAir(queues: readonly number[]): number {
    let sum = 0;
    if (queues.length > 1) {
      for (const [index, { source, targets }] of this.#changes.links.entries()) {
        const count = this.#links[index] as number;
        if (count > 0 && queues.includes(source) && targets.every((target) => queues.includes(target))) sum += count;
      }
    }
    return sum;
  }

  #fits({ queues, counts, zero }: Question): boolean {
    if (zero !== undefined) return this.#count(queues[0] as number, zero) <= 0;
    let least = this.#inTheAir(queues);
    let seen = 0;
    for (const [index, queue] of queues.entries()) {
      const [pending, processing] = counts?.[index] ?? [0, 0];
      const unacked = pending + processing;
      if (unacked < this.#count(queue, COUNTED.least) || unacked > this.#count(queue, COUNTED.most)) return false;
      if (pending < this.#count(queue, COUNTED.pending) || processing < this.#count(queue, COUNTED.processing)) return false;
      least += this.#count(queue, COUNTED.least);
      seen += unacked;
    }
    return seen >= least;
  }

  #describe({ queues }: Question): string {
    const one = (queue: number): string => {
      const [least, most, pending, processing, available, due] = [0, 1, 2, 3, 4, 5].map((counted) => this.#count(queue, counted));
      return `${this.#changes.queues[queue]}: ${least} to ${most} unacked, at least ${pending} pending, ${processing} processing, ${available} (${due}) available`;
    };
    return `${queues.map(one).join("; ")}; ${this.#inTheAir(queues)} being forwarded`;
  }

  #begin(question: Question): void {
    const { property, queues } = question;
    const isAboutZero = property === "C1" || property === "C2" || property === "S11" || property === "L1";
    question.isTelling = queues.some((queue) => this.#count(queue, isAboutZero ? COUNTED.most : COUNTED.least) > 0);
    if (this.#fits(question)) this.#findings.looked(property, question.isTelling);
    else {
      question.bounds = this.#describe(question);
      for (const queue of queues) this.#open[queue]?.add(question);
    }
  }

  #close(question: Question): void {
    this.#findings.looked(question.property, true);
    for (const queue of question.queues) this.#open[queue]?.delete(question);
  }

  #end(question: Question): void {
    const { operation, property, queues, counts } = question;
    if (operation.op === "wait") this.#checkWakeUp(operation, queues);
    if (!this.#open[queues[0] as number]?.has(question)) return;
    this.#close(question);
    const said = counts === undefined ? "empty" : JSON.stringify(counts);
    this.#findings.violated(
      property,
      `no instant of the call explains ${said}; at its begin ${question.bounds}`,
      ...this.#culprits(question),
      operation,
    );
  }

  /** Messages that were there throughout, for the proof. */
  #culprits({ operation, queues, zero }: Question): Operation[] {
    const isThere = (life: Life): boolean => life.sure <= operation.begin && life.from > operation.end;
    const names = queues.map((queue) => this.#changes.queues[queue] as string);
    const wasThere = (name: string): Life[] =>
      zero === undefined
        ? (this.#indexed.livesByQueue.get(name) ?? []).filter(isThere)
        : (this.#changes.available.get(name) ?? [])
            .filter(({ from, to }) => from <= operation.begin && to > operation.end)
            .map(({ life }) => life);
    const lives = names.flatMap((name) => wasThere(name).slice(0, 2));
    return lives
      .slice(0, 4)
      .flatMap((life) => [
        ...life.storings.slice(0, 1).map((storing) => storing.operation),
        ...life.deliveries.slice(-3).flatMap((delivery) => [delivery.operation, ...delivery.uses.map((use) => use.operation)]),
      ]);
  }

  /** A waiter sleeps at most one poll interval on after its condition has come true for good. */
  #checkWakeUp(wait: OperationOf<"wait">, queues: readonly number[]): void {
    const since = Math.max(wait.begin, ...queues.map((queue) => this.#idleSince[queue] as number));
    if (Number.isNaN(since)) return;
    const { wakeUpMs, faultTailMs } = this.#indexed.promises;
    const isExcused = this.#indexed.history.faults.some(({ begin, end }) => begin < wait.end && end + faultTailMs * MS > since);
    if (isExcused) return;
    this.#findings.looked("L4", since > wait.begin);
    if (wait.end - since > wakeUpMs * MS)
      this.#findings.violated(
        "L4",
        `a wait went on for ${Math.round((wait.end - since) / MS)} ms after nothing was unacked any more`,
        wait,
      );
  }

  #change(key: number, by: number, time: number): void {
    if (key < 0) {
      const index = -key - 1;
      this.#links[index] = (this.#links[index] as number) + by;
      if (by < 0) this.#look(this.#changes.links[index]?.source as number);
      return;
    }
    this.#counts[key] = (this.#counts[key] as number) + by;
    const queue = Math.floor(key / 8);
    if (key % 8 === COUNTED.most) {
      const isIdle = this.#counts[key] === 0;
      if (!isIdle) this.#idleSince[queue] = Number.NaN;
      else if (Number.isNaN(this.#idleSince[queue])) this.#idleSince[queue] = time;
    }
    if (isLoosening(key, by)) this.#look(queue);
  }

  #look(queue: number): void {
    for (const question of this.#open[queue] ?? []) if (this.#fits(question)) this.#close(question);
  }

  run(questions: readonly Question[]): void {
    const { times, keys, by } = this.#changes;
    const changes = times.length;
    const total = changes + questions.length * 2;
    const at = new Float64Array(total);
    const rank = new Uint8Array(total);
    const order = new Uint32Array(total);
    for (let index = 0; index < changes; index += 1) {
      at[index] = times[index] as number;
      rank[index] = (isLoosening(keys[index] as number, by[index] as number) ? LOOSEN : TIGHTEN) as number;
    }
    for (const [index, { operation }] of questions.entries()) {
      at[changes + index * 2] = operation.begin;
      rank[changes + index * 2] = BEGIN as number;
      at[changes + index * 2 + 1] = operation.end;
      rank[changes + index * 2 + 1] = END as number;
    }
    for (let index = 0; index < total; index += 1) order[index] = index;
    order.sort((left, right) => {
      const [first, second] = [at[left] as number, at[right] as number];
      return first < second ? -1 : first > second ? 1 : (rank[left] as number) - (rank[right] as number);
    });
    for (const index of order) {
      if (index < changes) this.#change(keys[index] as number, by[index] as number, at[index] as number);
      else {
        const question = questions[(index - changes) >> 1] as Question;
        if ((index - changes) % 2 === 0) this.#begin(question);
        else this.#end(question);
      }
    }
  }
}

type Asked = Omit<Question, "operation" | "queues" | "isTelling" | "bounds">;

/** What an answer says of the instants of its call. */
function askedBy(operation: Operation): readonly [queues: readonly string[], asked: readonly Asked[]] {
  if (operation.op === "status" && operation.counts !== undefined) {
    const { counts, queues } = operation;
    const isZero = counts.every(([pending, processing]) => pending === 0 && processing === 0);
    const isOne = queues.length === 1;
    return [queues, [{ property: isZero ? (isOne ? "C1" : "C2") : isOne ? "S7" : "C3", counts }]];
  }
  if (operation.op === "wait" && operation.answer === "complete" && !operation.upToNow) {
    const { queues } = operation;
    return [queues, [{ property: queues.length === 1 ? "C1" : "C2", counts: queues.map(() => [0, 0]) }]];
  }
  if (operation.op === "peek" && operation.value === null) return [[operation.queue], [{ property: "S11", zero: COUNTED.available }]];
  if (operation.op !== "dequeue") return [[], []];
  const received = operation.received?.length ?? 0;
  // A call that repeats an earlier one may tell of that one's instant.
  if (received >= operation.limit || (operation.requestId !== undefined && received > 0)) return [[], []];
  return [
    [operation.queue],
    [
      { property: "S11", zero: COUNTED.available },
      { property: "L1", zero: COUNTED.due },
    ],
  ];
}

function questionsOf({ operations }: Indexed, changes: Changes): Question[] {
  return operations.flatMap((operation) => {
    if (operation.outcome !== "ok") return [];
    const [names, asked] = askedBy(operation);
    const queues = names.map((name) => changes.queue(name));
    return queues.length === 0 ? [] : asked.map((what) => ({ ...what, operation, queues, isTelling: false, bounds: "" }));
  });
}

/** Checks every count, wait and empty answer. */
export function checkSnapshots(indexed: Indexed, changes: Changes, findings: Findings): void {
  const questions = questionsOf(indexed, changes);
  new Pass(indexed, changes, findings).run(questions);
}
