/** The dead letters of one queue. */

import type { MessageId } from "../../core/names.ts";
import { OrderedLog, type Placed } from "./ordered-log.ts";
import type { Failure, TaskState } from "./task-state.ts";

/** A message that was given up on. Its bytes are its own. */
export interface DeadRecord extends Placed {
  /** Its number among the dead letters: they are listed in the order they came. */
  readonly place: number;
  removed: boolean;
  /** Its place in the queue, to which a redrive returns it. */
  readonly oldPlace: number;
  readonly id: MessageId;
  readonly data: Uint8Array;
  readonly enqueuedAtMs: number;
  readonly deliveryCount: number;
  readonly reason: string;
  readonly diedAtMs: number;
  /** The task that owned it, and its entry among that task's failures. */
  readonly task: TaskState | undefined;
  failure: Failure | undefined;
}

/** What a dead letter counts against the bytes of the store. */
export function deadWeight(record: Pick<DeadRecord, "data" | "reason">): number {
  return record.data.length + record.reason.length * 2;
}

/** Dead letters in the order they came, and by id. */
export class DeadLetters {
  readonly #log = new OrderedLog<DeadRecord>();
  readonly #byId = new Map<MessageId, DeadRecord>();
  #lastPlace = 0;
  #weight = 0;

  /** How many there are. */
  get size(): number {
    return this.#byId.size;
  }

  /** What they count against the bytes of the store. */
  get weight(): number {
    return this.#weight;
  }

  /** Whether there is one of that id. */
  has(id: MessageId): boolean {
    return this.#byId.has(id);
  }

  /** Adds one; its number follows from the order of the calls. */
  add(record: Omit<DeadRecord, "place" | "removed" | "failure">): DeadRecord {
    this.#lastPlace += 1;
    const numbered: DeadRecord = { ...record, place: this.#lastPlace, removed: false, failure: undefined };
    this.#log.push(numbered);
    this.#byId.set(record.id, numbered);
    this.#weight += deadWeight(record);
    return numbered;
  }

  /** Removes the one of that id and returns it, or `undefined` when there is none. */
  take(id: MessageId): DeadRecord | undefined {
    const record = this.#byId.get(id);
    if (record === undefined) return undefined;
    this.#byId.delete(id);
    this.#log.remove(record);
    if (record.failure !== undefined) record.task?.failures.remove(record.failure);
    this.#weight -= deadWeight(record);
    return record;
  }

  /** Shows those from a number on, in order, until `visitor` answers false. */
  visit(place: number, visitor: (record: DeadRecord) => boolean): void {
    this.#log.visit(place, visitor);
  }
}
