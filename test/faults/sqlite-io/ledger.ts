/** What a run was told of each message and task, and whether a store agrees with it. */

import type { Backend } from "../../../src/backend/contract.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import type { MessageId, QueueName, TaskId } from "../../../src/core/names.ts";
import type { TaskStatus } from "../../../src/core/task.ts";

/** Whether a change happened: yes, no, or nobody can know. */
export type Happened = "yes" | "no" | "unknown";

interface MessageEntry {
  readonly queue: QueueName;
  stored: Happened;
  removed: Happened;
  /** Whether it may have moved to the dead letters. */
  givenUp: boolean;
}

/** Whether a rejected call may have happened nevertheless. All but the errors that say so are definite. */
export function happenedAfter(error: unknown): Happened {
  return isQueueFSError(error, "outcome-unknown") ? "unknown" : "no";
}

const TERMINAL: readonly TaskStatus[] = ["completed", "failed", "cancelled"];

/** The ledger of one run. */
export class Ledger {
  readonly #messages = new Map<MessageId, MessageEntry>();
  readonly #tasks = new Map<TaskId, { created: Happened; terminal?: TaskStatus }>();

  stored(queue: QueueName, id: MessageId, stored: Happened): void {
    this.#messages.set(id, { queue, stored, removed: "no", givenUp: false });
  }

  /** A removal that certainly happened stays so whatever is told of later ones. */
  removed(id: MessageId, removed: Happened): void {
    const entry = this.#messages.get(id);
    if (entry !== undefined && entry.removed !== "yes" && removed !== "no") entry.removed = removed;
  }

  /** It is among the dead letters, or may be: not lost, and not counted by the status. */
  gaveUp(id: MessageId): void {
    const entry = this.#messages.get(id);
    if (entry !== undefined) entry.givenUp = true;
  }

  removedAll(queue: QueueName, removed: Happened): void {
    for (const [id, entry] of this.#messages) if (entry.queue === queue) this.removed(id, removed);
  }

  task(id: TaskId, created: Happened): void {
    this.#tasks.set(id, { created });
  }

  taskSeen(id: TaskId, status: TaskStatus): void {
    if (TERMINAL.includes(status)) this.#tasks.set(id, { created: "yes", terminal: status });
  }

  /** How many unacked messages a queue has at least and at most. */
  bounds(queue: QueueName): { least: number; most: number } {
    const entries = [...this.#messages.values()].filter((entry) => entry.queue === queue);
    return {
      least: entries.filter(({ stored, removed, givenUp }) => stored === "yes" && removed === "no" && !givenUp).length,
      most: entries.filter(({ stored, removed }) => stored !== "no" && removed !== "yes").length,
    };
  }

  /** What of the store contradicts what was told. */
  async contradictions(backend: Backend): Promise<string[]> {
    const found: string[] = [];
    const findings = (await backend.inspect()).filter(({ severity }) => severity === "error");
    found.push(...findings.map(({ check, message }) => `${check}: ${message}`));
    const present = new Set<MessageId>();
    for (const { queue, pending, processing } of await backend.statuses({ under: "" })) {
      const listed = [...(await backend.messages(queue, { limit: 1_000 })).items];
      if (listed.length !== pending + processing) found.push(`${queue}: counts ${pending}+${processing}, lists ${listed.length}`);
      const dead = (await backend.deadLetters(queue, { limit: 1_000 })).items;
      for (const { id } of [...listed, ...dead]) {
        if (present.has(id)) found.push(`${id} is there twice`);
        present.add(id);
        if (!this.#messages.has(id)) found.push(`${id} is there and was never enqueued`);
      }
    }
    for (const [id, { stored, removed }] of this.#messages) {
      if (stored === "yes" && removed === "no" && !present.has(id)) found.push(`${id} was enqueued, not removed, and is lost`);
      if (stored === "no" && present.has(id)) found.push(`${id} was refused and is there`);
      if (removed === "yes" && present.has(id)) found.push(`${id} was removed and is there again`);
    }
    found.push(...(await this.#taskContradictions(backend)));
    return found;
  }

  async #taskContradictions(backend: Backend): Promise<string[]> {
    const found: string[] = [];
    for (const [id, { created, terminal }] of this.#tasks) {
      const status = await backend.task(id).then(
        (task) => task.status,
        (error: unknown) => (isQueueFSError(error, "task-not-found") ? undefined : Promise.reject(error)),
      );
      if (created === "yes" && status === undefined) found.push(`task ${id} was made and is lost`);
      if (created === "no" && status !== undefined) found.push(`task ${id} was refused and is there`);
      if (terminal !== undefined && status !== terminal) found.push(`task ${id} was ${terminal} and is ${status}`);
    }
    return found;
  }
}
