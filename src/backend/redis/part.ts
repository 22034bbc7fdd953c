/** What one call of the contract asks of a queue, as a part of an operation that may hold the parts of several calls. */

import type { QueueName } from "../../core/names.ts";
import type { ByteReader, ByteWriter } from "./bytes.ts";
import type { QueueLife } from "./registry.ts";

/** The kinds of operation, as the scripts number them. */
export const KIND = {
  enqueue: 1,
  enqueueSpecial: 2,
  dequeue: 3,
  ack: 4,
  ackById: 5,
  giveBack: 6,
  extend: 7,
  forward: 8,
  enqueueOwned: 9,
  enqueueAny: 10,
  clear: 20,
  configure: 21,
  redrive: 22,
  drop: 23,
  sweep: 24,
  makeTask: 40,
  updateTask: 41,
  sealTask: 42,
  renewProducers: 43,
  cancelTask: 44,
  redriveTask: 45,
  removeTask: 46,
  dueTasks: 47,
} as const;

const ENQUEUES: ReadonlySet<number> = new Set([KIND.enqueue, KIND.enqueueSpecial, KIND.enqueueOwned, KIND.enqueueAny]);

/** Whether operations of this kind store messages of their own queue, and answer with the sequence of the first. */
export function isEnqueue(kind: number): boolean {
  return ENQUEUES.has(kind);
}

/** First byte of an operation's answer. */
export const ANSWER = { done: 0, gone: 1, full: 2, again: 3, failed: 4, taskEnded: 5, taskActive: 6 } as const;

/** What an operation of several parts knows as a whole. */
export interface OperationState {
  /** Bytes of the largest message among those to be stored. */
  largest: number;
  /** Messages that its dequeues want together. */
  wanted: number;
  /** Sequence of the next message stored, or index of the next entry, while the answer is read. */
  next: number;
  /** Messages that were answered each by itself, delivered for the first time; else they are in the answer. */
  entries: readonly Buffer[] | undefined;
  /** Number of a queue among those of the script call. */
  groupOf(life: QueueLife): number;
}

/** What one call asks. */
export abstract class Part<Answer = unknown> {
  abstract readonly kind: number;
  /** Whether parts of other calls may stand in the same operation. */
  readonly isAlone: boolean = false;
  /** Only parts with the same one share an operation: the tasks that they name, for the operation may be refused as a whole. */
  readonly owner: unknown = undefined;
  /** Whether any of its messages is said to belong to a task: then another plain script is tried. */
  get hasTask(): boolean {
    return false;
  }
  /** How many items it has, for the size of a batch. */
  abstract readonly items: number;
  /** About how many bytes it will write. */
  readonly weight: number = 0;
  /** Bytes that it counts while it waits; 0 for what stores no messages. */
  waitingBytes = 0;
  readonly name: QueueName;
  readonly promise: Promise<Answer>;
  /** Other queues that it touches, by name; whoever sends it fills in their lives before each attempt. */
  readonly targets: Map<QueueName, QueueLife | undefined> | undefined = undefined;
  attempts = 0;
  /** Called once, when it is answered or refused. */
  onSettled: ((part: Part) => void) | undefined;
  /** Where its bytes are in its operation. */
  start = 0;
  end = 0;
  #resolve!: (answer: Answer) => void;
  #reject!: (error: unknown) => void;

  constructor(name: QueueName) {
    this.name = name;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Writes what stands once at the begin of an operation, for all parts of it. */
  writeHead(_writer: ByteWriter): void {}

  /** Writes what it asks. */
  abstract write(writer: ByteWriter, life: QueueLife, state: OperationState): void;

  /** Reads its answer; `undefined` when it must be asked again. */
  abstract read(reader: ByteReader, life: QueueLife, state: OperationState): Answer | undefined;

  /** Takes what it needs of its caller's data, before it has to wait. */
  detach(): void {}

  /** Keeps what it had written, to write it again. */
  keep(_written: Buffer): void {}

  /** Whether it shows that this life of the queue is not the newest. */
  isNewerThan(_life: QueueLife): boolean {
    return false;
  }

  resolve(answer: Answer): void {
    this.#resolve(answer);
    this.#settled();
  }

  reject(error: unknown): void {
    this.#reject(error);
    this.#settled();
  }

  #settled(): void {
    const { onSettled } = this;
    this.onSettled = undefined;
    onSettled?.(this as Part);
  }
}
