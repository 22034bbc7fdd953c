/** Deciding what becomes of new messages before anything changes, so that a step happens as a whole or not at all. */

import type { EnqueueAnswer, NewMessage } from "../../core/message.ts";
import type { MessageId } from "../../core/names.ts";
import type { Entry } from "./entry.ts";
import type { QueueState } from "./queue-state.ts";
import { digestOf } from "./remembered.ts";
import type { Resources } from "./resources.ts";
import type { TaskState } from "./task-state.ts";
import { type Bounds, checkRoom } from "./totals.ts";

/** Ids that one call with an id looks at for forgetting: more than it adds, so that remembered ids do not pile up. */
const PURGE_PER_ID = 4;
/** Ids that a call looks at when there is no room for more. */
const PURGE_WHEN_FULL = 1_000;

/** Instants and bounds of one step. */
export interface Step {
  readonly nowMs: number;
  readonly wallMs: number;
  readonly rememberMs: number;
  readonly bounds: Bounds;
}

/** What will become of one message. */
interface Planned {
  readonly message: NewMessage;
  readonly outcome: EnqueueAnswer["outcome"];
  readonly digest: string;
  readonly task: TaskState | undefined;
}

/** The messages of one step for one queue, decided upon. */
export interface Plan {
  readonly queue: QueueState;
  readonly planned: readonly Planned[];
}

/** One step that stores messages: plan all, check that there is room, store. */
export class Admission {
  readonly #resources: Resources;
  readonly #step: Step;
  #messages = 0;
  #bytes = 0;
  #ids = 0;
  /** Messages that will be gone by then. */
  readonly #removed = new Set<Entry>();
  /** Ids that earlier messages of this very step will take. */
  readonly #taken = new Map<QueueState, Map<MessageId, string>>();

  constructor(resources: Resources, step: Step) {
    this.#resources = resources;
    this.#step = step;
  }

  /** Decides about messages that come after those planned before. @throws QueueFSError `task-not-found`, `task-ended` */
  plan(queue: QueueState, messages: readonly NewMessage[]): Plan {
    return { queue, planned: messages.map((message) => this.#decide(queue, message)) };
  }

  /** Takes note that the step also removes a message, before the messages planned from here on. */
  removes(entry: Entry): void {
    this.#messages -= 1;
    this.#bytes -= entry.weight;
    this.#removed.add(entry);
  }

  /** Refuses the step when there is no room for all of it. @throws QueueFSError `store-full` */
  check(): void {
    const { totals } = this.#resources;
    const { bounds, nowMs, rememberMs } = this.#step;
    if (totals.remembered + this.#ids > bounds.maxRemembered) {
      for (const queue of this.#taken.keys()) {
        queue.ids.purge(nowMs, PURGE_WHEN_FULL, rememberMs);
        queue.answers.purge(nowMs, PURGE_WHEN_FULL);
      }
    }
    checkRoom(totals, bounds, this.#messages, this.#bytes, this.#ids);
  }

  /** Stores what was decided. Nothing of it can fail after {@link check}. @param owner the task that is to own all of it */
  store({ queue, planned }: Plan, owner?: TaskState): EnqueueAnswer[] {
    return planned.map((item) => this.#store(queue, item, owner ?? item.task));
  }

  #decide(queue: QueueState, message: NewMessage): Planned {
    const { id } = message;
    let outcome: EnqueueAnswer["outcome"] = "enqueued";
    let digest = "";
    if (id !== undefined) {
      digest = digestOf(message.data);
      const known = this.#taken.get(queue)?.get(id) ?? this.#knownDigest(queue, id);
      if (known !== undefined) outcome = known === digest ? "repeated" : "conflict";
    }
    if (outcome === "enqueued") {
      this.#messages += 1;
      this.#bytes += message.data.length;
      if (id !== undefined) this.#take(queue, id, digest);
    }
    // What is not stored needs no task that takes work: a repeat gets the first answer, also after the end of its task.
    const task = message.task === undefined || outcome !== "enqueued" ? undefined : this.#resources.tasks.open(message.task);
    return { message, outcome, digest, task };
  }

  #knownDigest(queue: QueueState, id: MessageId): string | undefined {
    const known = queue.ids.find(id, this.#step.nowMs);
    if (known === undefined || this.#step.nowMs < known.untilMs || this.#removed.size === 0) return known?.digest;
    // It is known only because its message is still there, which this step may remove.
    const entry = queue.passed.find(known.place);
    return entry !== undefined && this.#removed.has(entry) ? undefined : known.digest;
  }

  #take(queue: QueueState, id: MessageId, digest: string): void {
    let taken = this.#taken.get(queue);
    if (taken === undefined) {
      taken = new Map();
      this.#taken.set(queue, taken);
    }
    taken.set(id, digest);
    this.#ids += 1;
  }

  #store(queue: QueueState, { message, outcome, digest }: Planned, task: TaskState | undefined): EnqueueAnswer {
    const { nowMs, wallMs, rememberMs } = this.#step;
    if (outcome !== "enqueued") return { outcome, id: message.id as MessageId };
    const id = queue.append(message.data, message.id, message.delayMs ?? 0, wallMs, nowMs, task);
    if (message.id !== undefined) {
      queue.ids.purge(nowMs, PURGE_PER_ID, rememberMs);
      queue.ids.add({ id, place: queue.lastPlace, digest, untilMs: nowMs + rememberMs });
    }
    return { outcome, id };
  }
}
