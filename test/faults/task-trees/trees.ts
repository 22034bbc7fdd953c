/** Plants trees, has them grown by workers that are killed all the time, and looks meanwhile whether tasks tell the truth. */

import assert from "node:assert/strict";
import type { Backend } from "../../../src/backend/contract.ts";
import { isComplete } from "../../../src/core/message.ts";
import { type MessageId, parseTaskId, type TaskId } from "../../../src/core/names.ts";
import { isTerminal, type Task } from "../../../src/core/task.ts";
import { waitTask } from "../../../src/task/index.ts";
import { SeededRandom } from "../../../src/testing/index.ts";
import type { Child, Children } from "../../support/child-process.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";
import type { TreePrograms } from "./programs.ts";
import { everyNode, nodeOf, TREE_QUEUES } from "./tree.ts";

const WORKERS = 2;
/** How long all may take to end after the last kill, in milliseconds: many leases. */
const END_TIMEOUT_MS = 60_000;

/** One run. */
export interface TreeSettings {
  readonly spec: StoreSpec;
  readonly children: Children<TreePrograms>;
  readonly seconds: number;
  readonly seed: number;
  readonly leaseMs: number;
}

/** What a run saw. */
export interface TreeReport {
  readonly tasks: number;
  readonly messages: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly orphaned: number;
  readonly kills: number;
  readonly looks: number;
}

interface Planted {
  readonly id: TaskId;
  /** What it must end as, where that is certain. */
  readonly expected: { readonly total: number; readonly failed: number } | undefined;
}

class Trees {
  readonly #settings: TreeSettings;
  readonly #random: SeededRandom;
  readonly #workers: (Child<TreePrograms> | undefined)[] = [];
  readonly #planted: Planted[] = [];
  readonly #ended = new Map<TaskId, Task>();
  readonly #cancelled = new Set<TaskId>();
  readonly #seen = new Map<TaskId, Task>();
  #kills = 0;
  #looks = 0;
  #roots = 0;
  #isOver = false;

  constructor(settings: TreeSettings) {
    this.#settings = settings;
    this.#random = new SeededRandom(settings.seed);
  }

  #among(most: number): number {
    return Math.floor(this.#random.fraction() * most);
  }

  async #start(worker: number): Promise<void> {
    const { spec, leaseMs, children } = this.#settings;
    const child = await children.start();
    this.#workers[worker] = child;
    await child.call("work", { spec, leaseMs });
  }

  #newRoots(count: number): string[] {
    return Array.from({ length: count }, () => {
      this.#roots += 1;
      return `${this.#settings.seed}/${this.#roots}`;
    });
  }

  /** A task made with its roots, in one step. */
  async #plantWhole(store: Backend): Promise<void> {
    const roots = this.#newRoots(1 + this.#among(4));
    const batches = TREE_QUEUES.map((queue) => ({
      queue,
      messages: roots
        .filter((root) => nodeOf(root).queue === queue)
        .map((root) => ({ data: new TextEncoder().encode(root), id: root as MessageId })),
    }));
    const { task } = await store.createTask({ type: "planting" }, batches);
    const nodes = roots.flatMap(everyNode);
    this.#planted.push({
      id: task.id,
      expected: { total: nodes.length, failed: nodes.filter((node) => node.fate === "given up").length },
    });
    if (this.#among(5) === 0) {
      this.#cancelled.add(task.id);
      while ((await store.cancelTask(task.id)).more);
    }
  }

  /** A task that a producer in a process of its own adds to, which may be killed before it seals. */
  async #plantSlowly(): Promise<void> {
    const { spec, leaseMs, children } = this.#settings;
    const roots = this.#newRoots(1 + this.#among(4));
    const id = parseTaskId(`producer-${this.#roots}`);
    const child = await children.start();
    const doomed = this.#among(3) === 0;
    const planting = child.call("plant", { spec, leaseMs, id, roots });
    if (doomed) {
      planting.catch(() => {});
      await child.whenTold(1);
      await child.kill();
      this.#kills += 1;
      this.#planted.push({ id, expected: undefined });
      return;
    }
    await planting;
    await child.kill();
    const nodes = roots.flatMap(everyNode);
    this.#planted.push({ id, expected: { total: nodes.length, failed: nodes.filter((node) => node.fate === "given up").length } });
  }

  /** Looks at everything, again and again, from a process that does none of the work. */
  async #watch(store: Backend): Promise<void> {
    while (!this.#isOver) {
      await this.#look(store);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #look(store: Backend): Promise<void> {
    this.#looks += 1;
    const ids = this.#planted.map(({ id }) => id).filter((id) => !this.#ended.has(id) || this.#among(50) === 0);
    const before = new Map<TaskId, Task>();
    for (const id of ids) before.set(id, await store.task(id));
    for (const [id, task] of before) await this.#judge(store, id, task);
    const statuses = await store.statuses({ queues: TREE_QUEUES });
    if (!isComplete(statuses)) return;
    // Nothing was unacked then: what was sealed by that time has ended, and whoever looks later sees it.
    for (const [id, { sealed }] of before) {
      if (sealed) assert.ok(isTerminal((await store.task(id)).status), `all queues were complete and task ${id}, sealed, had not ended`);
    }
  }

  async #judge(store: Backend, id: TaskId, task: Task): Promise<void> {
    const { total, done, failed, cancelled, unacked } = task.progress;
    assert.equal(total, done + failed + cancelled + unacked, `the counts of ${id} add up`);
    const seen = this.#seen.get(id)?.progress;
    if (seen !== undefined)
      assert.ok(total >= seen.total && done >= seen.done && cancelled >= seen.cancelled, `counts of ${id} never fall`);
    this.#seen.set(id, task);
    if (task.status === "running") assert.ok(unacked > 0, `task ${id} runs without unacked work`);
    const ended = this.#ended.get(id);
    if (ended !== undefined) assert.deepEqual(task, ended, `task ${id} changed after its end`);
    if (ended !== undefined || !isTerminal(task.status)) return;
    this.#ended.set(id, task);
    assert.equal(unacked, 0);
    for (const queue of TREE_QUEUES) {
      for (let after: string | undefined; ; ) {
        const page = await store.messages(queue, after === undefined ? { limit: 1_000 } : { limit: 1_000, after });
        const left = page.items.find((message) => message.task === id);
        assert.equal(left, undefined, `task ${id} has ended and its message ${left?.id} is unacked`);
        after = page.next;
        if (after === undefined) break;
      }
    }
  }

  async run(): Promise<TreeReport> {
    const { spec, seconds, children } = this.#settings;
    const errors: unknown[] = [];
    const store = await openStore(spec, (error) => void errors.push(error));
    try {
      for (const queue of TREE_QUEUES) await store.createQueue(queue, { maxDeliveries: 0 });
      await Promise.all(Array.from({ length: WORKERS }, (_, worker) => this.#start(worker)));
      const watching = this.#watch(store);
      watching.catch(() => {});
      const endMs = performance.now() + seconds * 1_000;
      while (performance.now() < endMs) {
        for (let count = this.#among(5); count >= 0; count -= 1) await this.#plantWhole(store);
        if (this.#among(3) === 0) await this.#plantSlowly();
        const worker = this.#among(WORKERS);
        await this.#workers[worker]?.kill();
        this.#kills += 1;
        await this.#start(worker);
      }
      for (const { id } of this.#planted) await waitTask(store, id, { timeoutMs: END_TIMEOUT_MS });
      this.#isOver = true;
      await watching;
      await children.end();
      await this.#audit(store);
      assert.deepEqual(errors, [], "errors in the background");
      return this.#report();
    } finally {
      this.#isOver = true;
      await children.end();
      await store.close();
    }
  }

  async #audit(store: Backend): Promise<void> {
    for (const { id, expected } of this.#planted) {
      const task = await store.task(id);
      await this.#judge(store, id, task);
      const { total, failed, done } = task.progress;
      if (this.#cancelled.has(id) && task.status === "cancelled") continue;
      if (expected === undefined) {
        // Killed before it could seal, or just after: then nothing was lost of what it was told to be stored.
        if (task.status === "failed" && /producer/.test(task.error?.reason ?? "")) continue;
        assert.ok(task.sealed);
        continue;
      }
      assert.deepEqual({ total, failed, done }, { ...expected, done: expected.total - expected.failed }, `counts of ${id}`);
      assert.equal(task.status, expected.failed > 0 ? "failed" : "completed", `end of ${id}`);
      let listed = 0;
      for (let after: string | undefined; ; ) {
        const page = await store.taskFailures(id, after === undefined ? {} : { after });
        listed += page.items.length;
        after = page.next;
        if (after === undefined) break;
      }
      assert.equal(listed, expected.failed, `failures of ${id}`);
    }
    assert.ok(isComplete(await store.statuses({ queues: TREE_QUEUES })), "nothing is left");
    const findings = (await store.inspect()).filter((finding) => finding.severity === "error");
    assert.deepEqual(findings, [], "inspect() finds no error");
  }

  #report(): TreeReport {
    const tasks = [...this.#ended.values()];
    return {
      tasks: tasks.length,
      messages: tasks.reduce((sum, task) => sum + task.progress.total, 0),
      failed: tasks.filter((task) => task.status === "failed").length,
      cancelled: tasks.filter((task) => task.status === "cancelled").length,
      orphaned: tasks.filter((task) => /producer/.test(task.error?.reason ?? "")).length,
      kills: this.#kills,
      looks: this.#looks,
    };
  }
}

/** Runs trees. @throws AssertionError at the first thing that is not as it must be */
export function growTrees(settings: TreeSettings): Promise<TreeReport> {
  return new Trees(settings).run();
}
