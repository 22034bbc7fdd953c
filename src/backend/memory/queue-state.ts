/** The state of one queue. Each method leaves all of it consistent; together with deliveries.ts these are all its changes. */

import { NumberedTexts } from "../../core/base36.ts";
import type { Cleared, QueueSettings, Status } from "../../core/message.ts";
import { type MessageId, makeMessageId, placeOfMessageId, type QueueName, type Receipt } from "../../core/names.ts";
import { Backlog } from "./backlog.ts";
import { DeadLetters } from "./dead-letters.ts";
import { DeliveryTable } from "./delivery-table.ts";
import { DELAYED, DUE, Entry, NO_BYTES, PROCESSING, WITHDRAWN } from "./entry.ts";
import { Heap } from "./heap.ts";
import { OrderedLog } from "./ordered-log.ts";
import { type Ownership, Ownerships } from "./ownership.ts";
import { RememberedAnswers, RememberedIds } from "./remembered.ts";
import type { Resources } from "./resources.ts";
import type { TaskState } from "./task-state.ts";

/** Leases of ended deliveries that may lie in the heap beyond the number of current ones before they are cleaned out. */
const SMALL_LEASE_GARBAGE = 64;

/**
 * One queue. A message is in exactly one of: the backlog (waiting), the delays, the due, the processing collection. Once the cursor
 * of the backlog has passed it, it is also in `passed`, which keeps those messages in the order of their places.
 */
export class QueueState {
  readonly name: QueueName;
  readonly resources: Resources;
  readonly createdAtMs: number;
  settings: QueueSettings;
  /** The slot in which it was made: lower ones belong to removed queues of the same name. */
  readonly firstSlot: number;
  /** The present life: clearing begins a new one. */
  slot: number;
  /** Make the ids of this slot, of messages that come and of those that are looked at: two, since each goes on from place to place. */
  #newIds: NumberedTexts;
  #ids: NumberedTexts;
  /** The place of the latest enqueue. Places go on through all lives, so that a redriven dead letter finds its old one. */
  lastPlace = 0;
  /** Messages out of the line: handed out at least once, or delayed and overtaken. */
  passed = new OrderedLog<Entry>();
  backlog: Backlog;
  /** Messages whose not-before time lies ahead, by that time. */
  delays = new Heap<Entry>();
  /** Returned messages and those whose delay is over, by place. */
  due = new Heap<Entry>();
  /** What is in consumers' hands. */
  processing = new DeliveryTable();
  /** The ends of leases; holds ended deliveries too, told by their stamps. */
  leases = new Heap<Entry>();
  readonly dead = new DeadLetters();
  readonly ids: RememberedIds;
  readonly answers: RememberedAnswers;
  /** Unacked messages by the task that owns them. */
  readonly owners = new Ownerships();
  /** What the unacked messages count against the bytes of the store. */
  weight = 0;
  /** Counts since the queue was made. */
  readonly counts = { enqueued: 0, delivered: 0, acked: 0, returned: 0, deadLettered: 0, cleared: 0 };

  constructor(resources: Resources, name: QueueName, settings: QueueSettings, createdAtMs: number) {
    this.resources = resources;
    this.name = name;
    this.settings = settings;
    this.createdAtMs = createdAtMs;
    this.slot = resources.nextSlot();
    this.firstSlot = this.slot;
    this.#newIds = idsOf(resources.id, this.slot);
    this.#ids = idsOf(resources.id, this.slot);
    this.backlog = new Backlog(resources.segments, this.passed, this.owners);
    this.answers = new RememberedAnswers(resources.totals);
    this.ids = new RememberedIds(resources.totals, (remembered) => this.isUnacked(remembered.place) || this.dead.has(remembered.id));
  }

  /** Unacked messages in nobody's hands. */
  get pending(): number {
    return this.backlog.waiting + this.due.size + this.delays.size;
  }

  /** Both numbers, in one turn. */
  get status(): Status {
    return { pending: this.pending, processing: this.processing.size };
  }

  /** The id of an unacked message. */
  idOf(entry: Entry): MessageId {
    return entry.id ?? (this.#ids.text(entry.place) as MessageId);
  }

  /** Stores a copy of a message. @returns its id */
  append(
    data: Uint8Array,
    id: MessageId | undefined,
    delayMs: number,
    wallMs: number,
    nowMs: number,
    task: TaskState | undefined = undefined,
  ): MessageId {
    this.lastPlace += 1;
    const place = this.lastPlace;
    const owner = task === undefined ? undefined : this.#own(task);
    if (id === undefined && delayMs === 0) {
      this.backlog.append(place, data, wallMs, owner);
    } else {
      const entry = new Entry(place, id, wallMs, NO_BYTES, 0, data.length, undefined, owner);
      if (delayMs > 0) this.#delay(entry, nowMs + delayMs);
      this.backlog.appendAside(entry, data);
    }
    this.counts.enqueued += 1;
    this.weigh(1, data.length);
    return id ?? (this.#newIds.text(place) as MessageId);
  }

  #own(task: TaskState): Ownership {
    task.total += 1;
    this.resources.tasks.touch(task);
    return this.owners.add(task);
  }

  /** Makes a message a task's, which counts it for the first time. */
  own(entry: Entry, task: TaskState): void {
    entry.owner = this.#own(task);
  }

  /** Makes a dead letter that became pending again its task's, which counted it before. */
  ownAgain(entry: Entry, task: TaskState): void {
    this.resources.tasks.touch(task);
    entry.owner = this.owners.add(task);
  }

  /** Takes note that a message is a task's no more, and gives the task, whose counts then are to be changed. */
  disown(entry: Entry): TaskState | undefined {
    const { owner } = entry;
    if (owner === undefined) return undefined;
    this.owners.remove(owner);
    this.resources.tasks.touch(owner.task);
    return owner.task;
  }

  /** Removes a message because its task was cancelled: one that is in no collection, or pending. */
  cancel(entry: Entry): void {
    const task = this.disown(entry) as TaskState;
    task.cancelled += 1;
    this.counts.cleared += 1;
    if (entry.place < this.backlog.firstPlace()) {
      entry.state = WITHDRAWN;
      this.remove(entry);
    } else {
      this.weigh(-1, -entry.weight);
      this.backlog.withdraw(entry);
    }
  }

  /** Forgets cancelled messages among the due and the delayed. To be called once after some were cancelled. */
  forgetCancelled(): void {
    const isThere = (entry: Entry): boolean => entry.state !== WITHDRAWN;
    this.due.compact(isThere);
    this.delays.compact(isThere);
  }

  /** Puts a message that is in no collection back among the pending ones. */
  makePending(entry: Entry, delayMs: number, nowMs: number): void {
    if (delayMs > 0) {
      this.#delay(entry, nowMs + delayMs);
    } else {
      entry.state = DUE;
      this.due.push(entry.place, entry);
    }
  }

  /** Moves the messages whose delay is over to the due. @returns how many, at most `atMost` */
  mature(nowMs: number, atMost = Number.POSITIVE_INFINITY): number {
    let count = 0;
    for (; count < atMost && this.delays.firstKey() <= nowMs; count += 1) this.makePending(this.delays.pop() as Entry, 0, nowMs);
    return count;
  }

  #delay(entry: Entry, untilMs: number): void {
    entry.state = DELAYED;
    this.delays.push(untilMs, entry);
  }

  /** Puts a message that is in no collection into processing, or renews its lease there. */
  hold(entry: Entry, receipt: Receipt, untilMs: number): void {
    entry.state = PROCESSING;
    entry.receipt = receipt;
    this.processing.add(entry);
    this.lease(entry, untilMs);
  }

  /** Sets the end of the lease of a message in processing. */
  lease(entry: Entry, untilMs: number): void {
    entry.leaseStamp = this.leases.push(untilMs, entry);
    this.#cleanLeases();
  }

  /** Takes a message out of processing; it is then in no collection. */
  letLoose(entry: Entry): void {
    this.processing.delete(entry);
    entry.receipt = undefined;
    entry.leaseStamp = 0;
    this.#cleanLeases();
  }

  #cleanLeases(): void {
    if (this.leases.size > 2 * this.processing.size + SMALL_LEASE_GARBAGE) this.leases.compact(isCurrentLease);
  }

  /** Removes a message that is in no collection. */
  remove(entry: Entry): void {
    this.weigh(-1, -entry.weight);
    this.passed.remove(entry);
    this.backlog.letGo(entry);
  }

  /** Keeps a reason with a message, or the one before when there is none. */
  setReason(entry: Entry, reason: string): void {
    this.weigh(0, -entry.weight);
    entry.reason = reason;
    this.weigh(0, entry.weight);
  }

  /** Counts messages that become, or cease to be, unacked. */
  weigh(messages: number, bytes: number): void {
    this.weight += bytes;
    this.resources.totals.messages += messages;
    this.resources.totals.bytes += bytes;
  }

  /** The lowest place of an unacked message, or `Infinity` when there is none. All that was passed lies below the cursor. */
  firstUnackedPlace(): number {
    return this.passed.first()?.place ?? this.backlog.firstPlace();
  }

  /** Whether the message of a place is unacked. */
  isUnacked(place: number): boolean {
    const isAhead = place >= this.backlog.firstPlace() && place <= this.lastPlace;
    return (isAhead && !this.backlog.isWithdrawn(place)) || this.passed.find(place) !== undefined;
  }

  /** The message in processing that has this id, or `undefined`. */
  findProcessing(id: MessageId): Entry | undefined {
    const place = placeOfMessageId(this.resources.id, id)?.sequence ?? this.ids.place(id);
    const entry = place === undefined ? undefined : this.passed.find(place);
    return entry !== undefined && entry.state === PROCESSING && this.idOf(entry) === id ? entry : undefined;
  }

  /** Shows the unacked messages from `place` on, in order, until `visitor` answers false. */
  visit(place: number, visitor: (entry: Entry) => boolean): void {
    if (this.passed.visit(place, visitor)) this.backlog.visit(place, visitor);
  }

  /** Removes all unacked messages and begins a new life. Costs the same however many there are. */
  clear(): Cleared {
    const cleared = this.status;
    const messages = cleared.pending + cleared.processing;
    this.weigh(-messages, -this.weight);
    this.counts.cleared += messages;
    for (const { task, count } of this.owners) {
      task.failAll(this.name, count);
      this.resources.tasks.touch(task);
    }
    this.owners.clear();
    this.slot = this.resources.nextSlot();
    this.#newIds = idsOf(this.resources.id, this.slot);
    this.#ids = idsOf(this.resources.id, this.slot);
    this.passed = new OrderedLog();
    this.backlog = new Backlog(this.resources.segments, this.passed, this.owners);
    this.delays = new Heap();
    this.due = new Heap();
    this.processing = new DeliveryTable();
    this.leases = new Heap();
    return cleared;
  }

  /** Takes all of it out of the sums of the store; the queue is not used afterwards. */
  dispose(): void {
    this.clear();
    this.dead.visit(0, ({ task, failure }) => {
      if (failure !== undefined) task?.failures.remove(failure);
      return true;
    });
    this.resources.totals.messages -= this.dead.size;
    this.resources.totals.bytes -= this.dead.weight;
    this.ids.clear();
    this.answers.clear();
  }
}

function idsOf(store: string, slot: number): NumberedTexts {
  return new NumberedTexts(makeMessageId(store, slot, 0).slice(0, -1));
}

/** Whether a lease in the heap is that of a current delivery. */
export function isCurrentLease(entry: Entry, stamp: number): boolean {
  return entry.leaseStamp === stamp;
}
