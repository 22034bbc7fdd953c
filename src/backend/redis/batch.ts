/** Gathers the parts of calls into the operations of one script call. */

import { ByteWriter } from "./bytes.ts";
import { isEnqueue, KIND, type OperationState, type Part } from "./part.ts";
import { PROGRAMS, type Program } from "./programs.ts";
import type { QueueLife } from "./registry.ts";
import { type EncodedKeys, joinKeys } from "./script-call.ts";

/** Bytes, items and calls after which a batch is full: keeps one script short. A single call may be larger. */
const BATCH_BYTES = 1024 * 1024;
const BATCH_ITEMS = 2000;
/** Room that an operation takes for its head and, beside its data, for each item. Only a guess: a writer grows. */
const HEAD_BYTES = 200;
const ITEM_BYTES = 20;

/** Calls of one kind on one queue, one after the other. */
export class Operation implements OperationState {
  readonly kind: number;
  readonly life: QueueLife;
  readonly owner: Part["owner"];
  readonly writer: ByteWriter;
  readonly parts: Part[] = [];
  readonly #batch: Batch;
  readonly #hasHead: boolean;
  largest = 0;
  wanted = 0;
  next = 0;
  entries: readonly Buffer[] | undefined;

  constructor(batch: Batch, { kind, owner, weight, items }: Part, life: QueueLife) {
    this.#batch = batch;
    this.owner = owner;
    this.kind = kind;
    this.life = life;
    // Room for the first part at once: where neighbours belong to different tasks there is no other.
    this.writer = new ByteWriter(HEAD_BYTES + weight + items * ITEM_BYTES);
    // Enqueue begins with the size of the largest message, dequeue with the number wanted: known when the operation is complete.
    this.#hasHead = kind <= KIND.dequeue || kind === KIND.enqueueOwned;
    if (this.#hasHead) this.writer.u32(0);
  }

  groupOf(life: QueueLife): number {
    return this.#batch.groupOf(life);
  }

  /** What it asks, complete. */
  encode(): Buffer {
    if (this.#hasHead) this.writer.setU32(0, this.kind === KIND.dequeue ? this.wanted : this.largest);
    return this.writer.view();
  }

  add(part: Part): void {
    if (this.parts.length === 0) part.writeHead(this.writer);
    part.start = this.writer.length;
    part.write(this.writer, this.life, this);
    part.end = this.writer.length;
    this.parts.push(part);
  }
}

/** What travels in one script call. */
export class Batch {
  readonly #isCare: boolean;
  readonly operations: Operation[] = [];
  /** Made when they are first asked for: most batches are of one queue and go to a plain script, which knows no groups. */
  #groups: Map<QueueLife, number> | undefined;
  /** The last operation, which takes more parts of its queue, and those of other queues that do. */
  #last: Operation | undefined;
  #open: Map<QueueLife, Operation> | undefined;
  items = 0;
  bytes = 0;
  calls = 0;

  constructor(isCare: boolean) {
    this.#isCare = isCare;
  }

  /** The smallest script that knows all its operations. */
  get program(): Program {
    if (this.#isCare) return PROGRAMS.care;
    const kind = this.operations[0]?.kind;
    if (this.operations.some((operation) => operation.kind !== kind)) return PROGRAMS.step;
    if (kind === KIND.enqueue) return PROGRAMS.enqueue;
    if (kind === KIND.enqueueOwned) return PROGRAMS.enqueueOwned;
    if (kind === KIND.dequeue) return PROGRAMS.dequeue;
    return kind === KIND.ack ? PROGRAMS.ack : PROGRAMS.step;
  }

  isFullFor(part: Part): boolean {
    return this.items >= BATCH_ITEMS || this.bytes + part.weight > BATCH_BYTES;
  }

  /** Whether it is of one kind on one queue, as plain scripts take it, and this part is of another kind on the same queue. */
  wouldMix(part: Part, life: QueueLife): boolean {
    const [first, second] = this.operations;
    if (first === undefined || second !== undefined || first.life !== life) return false;
    return first.kind !== part.kind && !(isEnqueue(first.kind) && isEnqueue(part.kind));
  }

  /** The number of a queue among those of this call, from 1. */
  groupOf(life: QueueLife): number {
    this.#groups ??= new Map();
    let group = this.#groups.get(life);
    if (group === undefined) {
      group = this.#groups.size + 1;
      this.#groups.set(life, group);
    }
    return group;
  }

  add(part: Part, life: QueueLife): void {
    let operation = this.#last?.life === life ? this.#last : this.#open?.get(life);
    if (operation === undefined || operation.kind !== part.kind || operation.owner !== part.owner || part.isAlone) {
      operation = new Operation(this, part, life);
      this.operations.push(operation);
    }
    this.#keepOpen(operation, part.isAlone);
    const before = operation.writer.length;
    operation.add(part);
    this.bytes += operation.writer.length - before;
    this.items += part.items + 1;
    this.calls += 1;
  }

  #keepOpen(operation: Operation, isAlone: boolean): void {
    const last = this.#last;
    if (isAlone) {
      // What stands alone may touch other queues too: what comes after it begins anew.
      this.#last = undefined;
      this.#open = undefined;
    } else if (operation !== last) {
      if (last !== undefined && last.life !== operation.life) {
        this.#open ??= new Map();
        this.#open.set(last.life, last);
      }
      this.#last = operation;
    }
  }

  keys(): EncodedKeys {
    for (const { life } of this.operations) this.groupOf(life);
    return joinKeys([...(this.#groups?.keys() ?? [])].map((life) => life.keys));
  }

  encode(): Buffer {
    let size = 0;
    for (const { writer } of this.operations) size += writer.length + 7;
    const result = new ByteWriter(size);
    for (const operation of this.operations) {
      const body = operation.encode();
      result.u8(operation.kind);
      result.u16(this.groupOf(operation.life));
      result.u32(body.length);
      result.bytes(body);
    }
    return result.view();
  }
}
