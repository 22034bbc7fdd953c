/** Recovery while a store is open: finds the queues of which something is due, and lets the scripts make it available. */

import { assert } from "../../core/errors.ts";
import { RECOVERY_STEP_ITEMS } from "../../core/limits.ts";
import type { Recovered } from "../../core/message.ts";
import type { QueueName } from "../../core/names.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import { allQueueKeys, type Keys } from "./keys.ts";
import { ANSWER, KIND } from "./part.ts";
import { PROGRAMS } from "./programs.ts";
import { QueueLife, type Registry } from "./registry.ts";
import { encodeKeys, joinKeys, type ScriptRunner } from "./script-call.ts";
import type { Steps } from "./steps.ts";
import type { TaskSteps } from "./task-steps.ts";

/** Queues that one step looks after. */
const QUEUES_PER_STEP = 20;
/** What one step does of all that is due of tasks. */
const TASKS_PER_STEP = 100;
/** Removed queues whose keys one step frees. */
const LIVES_PER_PURGE = 50;

/** What a look finds to do; the trash is absent where it could not be read. */
interface Found {
  readonly queues: readonly unknown[];
  readonly ofTasks: readonly Buffer[];
  readonly trash: readonly unknown[] | undefined;
}

/** Looks after what becomes due and what is left over. */
export class Sweep {
  readonly #runner: ScriptRunner;
  readonly #steps: Steps;
  readonly #registry: Registry;
  readonly #tasks: TaskSteps;
  readonly #namespace: string;
  readonly #keys: Keys;

  constructor(runner: ScriptRunner, steps: Steps, registry: Registry, tasks: TaskSteps, namespace: string, keys: Keys) {
    this.#runner = runner;
    this.#steps = steps;
    this.#registry = registry;
    this.#tasks = tasks;
    this.#namespace = namespace;
    this.#keys = keys;
  }

  /** One bounded step of recovery in all queues and tasks. */
  async recover(): Promise<Recovered> {
    return this.#recover(await this.#look());
  }

  /** One bounded step of everything. Answers whether there is more to do. */
  async run(): Promise<boolean> {
    // Asked for together: where there is nothing to do, which is most of the time, this wakes the process once and not twice.
    const found = await this.#look();
    const { more } = await this.#recover(found);
    return (await this.#purge(found.trash ?? (await this.#readTrash()))) || more;
  }

  async #look(): Promise<Found> {
    const { wake, taskDue, trash } = this.#keys;
    const found = await this.#runner.read(
      PROGRAMS.due,
      encodeKeys([wake, taskDue, trash]),
      [QUEUES_PER_STEP, TASKS_PER_STEP, LIVES_PER_PURGE].map(String),
    );
    assert(Array.isArray(found) && Array.isArray(found[0]) && Array.isArray(found[1]), "two lists are answered");
    return { queues: found[0], ofTasks: found[1], trash: Array.isArray(found[2]) ? found[2] : undefined };
  }

  async #recover({ queues, ofTasks }: Found): Promise<Recovered> {
    const recovered = await this.#recoverQueues(queues);
    if (ofTasks.length === 0) return recovered;
    const more = (await this.#tasks.recover(ofTasks)) || ofTasks.length === TASKS_PER_STEP;
    return more ? { ...recovered, more } : recovered;
  }

  async #recoverQueues(due: readonly unknown[]): Promise<Recovered> {
    const lives = due
      .map((life) => new QueueLife(this.#namespace, this.#registry.store, "" as QueueName, Number(String(life))))
      .filter(({ life }) => Number.isSafeInteger(life));
    if (lives.length === 0) return { recovered: 0, dead: 0, more: false };
    const operations = new ByteWriter();
    for (const index of lives.keys()) {
      operations.u8(KIND.sweep);
      operations.u16(index + 1);
      operations.u32(10);
      operations.u32(Math.floor(RECOVERY_STEP_ITEMS / lives.length));
      operations.u48((lives[index] as QueueLife).life);
    }
    const reader = new ByteReader(
      await this.#steps.runScript(PROGRAMS.care, joinKeys(lives.map((life) => life.keys)), [operations.view()]),
    );
    let recovered = 0;
    let dead = 0;
    let more = lives.length === QUEUES_PER_STEP;
    while (!reader.isAtEnd) {
      const answer = reader.part(reader.u32());
      if (answer.u8() !== ANSWER.done) continue;
      recovered += answer.u32();
      dead += answer.u32();
      if (answer.u8() === 1) more = true;
    }
    return { recovered, dead, more };
  }

  /** Frees the keys of removed queues; answers whether there are more. */
  async purge(): Promise<boolean> {
    return this.#purge(await this.#readTrash());
  }

  async #readTrash(): Promise<readonly unknown[]> {
    const reply = await this.#runner.command("srandmember", this.#keys.trash, String(LIVES_PER_PURGE));
    assert(Array.isArray(reply), "a list is answered");
    return reply;
  }

  async #purge(trash: readonly unknown[]): Promise<boolean> {
    const lives = trash.map(String);
    if (lives.length === 0) return false;
    // The record went when the queue was removed.
    const keys = lives.flatMap((life) => allQueueKeys(this.#namespace, Number(life)).slice(1));
    await this.#runner.read(PROGRAMS.purge, encodeKeys([this.#keys.trash, ...keys]), lives);
    return lives.length === LIVES_PER_PURGE;
  }
}
