/** Waiting for a task before people's eyes, or in a log. */

import type { Backend } from "../../backend/contract.ts";
import { parseTaskId } from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import { describeTask } from "../../core/task-json.ts";
import { makeBar, speedOf } from "../progress-bar.ts";
import { ProgressMeter } from "../progress-meter.ts";
import type { Session } from "../session.ts";
import { visible } from "../visible.ts";
import { assertCompleted } from "./ending.ts";
import { logLine, stateLine } from "./task-lines.ts";

/** How often at most, in milliseconds, a line is written although neither status nor stage has changed. */
const LINE_GAP_MS = 1_000;
const STAGE_CHARACTERS = 30;

/** Shows how a task goes. */
interface Follower {
  update(task: Task): void;
  /** Shows the last state. Resolves when all is written. */
  end(): Promise<void>;
}

/** A line for each change, into a pipe, or as JSON. Aborts `failed` when it cannot be written. */
class LineFollower implements Follower {
  readonly #session: Session;
  readonly #failed: AbortController;
  #last: Task | undefined;
  #written: { readonly task: Task; readonly atMs: number } | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(session: Session, failed: AbortController) {
    this.#session = session;
    this.#failed = failed;
  }

  update(task: Task): void {
    this.#last = task;
    const before = this.#written;
    const isTurn = before?.task.status !== task.status || before.task.stage !== task.stage;
    if (isTurn || performance.now() - before.atMs >= LINE_GAP_MS) this.#write(task);
  }

  async end(): Promise<void> {
    if (this.#last !== undefined) this.#write(this.#last);
    await this.#writing;
  }

  #write(task: Task): void {
    if (this.#written !== undefined && this.#isSame(this.#written.task, task)) return;
    this.#written = { task, atMs: performance.now() };
    const { json, output } = this.#session;
    this.#writing = this.#writing
      .then(async () => {
        if (json) await this.#session.jsonLine(describeTask(task));
        else await output.line(logLine(task));
        await output.flush();
      })
      .catch((error: unknown) => this.#failed.abort(error));
  }

  #isSame(left: Task, right: Task): boolean {
    return this.#session.json ? JSON.stringify(left) === JSON.stringify(right) : stateLine(left) === stateLine(right);
  }
}

/** A bar, and the last state in its place. */
async function barFollower(session: Session): Promise<Follower | undefined> {
  const bar = await makeBar(session, "{bar} {percentage}% | {done} of {total} done{failed} | {speed}/s | {left}{stage}");
  if (bar === undefined) return undefined;
  const meter = new ProgressMeter();
  let last: Task | undefined;
  let begun = false;
  return {
    update(task) {
      last = task;
      const { total, done, failed, unacked } = task.progress;
      const stage = task.stage ? ` | ${Array.from(visible(task.stage)).slice(0, STAGE_CHARACTERS).join("")}` : "";
      const shown = { ...speedOf(meter.add(unacked, performance.now())), done, failed: failed === 0 ? "" : `, ${failed} failed`, stage };
      // What has ended at the first look needs no bar.
      if (!begun && task.finishedAtMs !== undefined) return;
      if (!begun) bar.start(total, total - unacked, shown);
      begun = true;
      bar.setTotal(total);
      bar.update(total - unacked, shown);
    },
    async end() {
      if (begun) bar.stop();
      begun = false;
      if (last !== undefined) await session.output.line(stateLine(last));
    },
  };
}

/**
 * Waits for the end of a task, showing how it goes.
 *
 * @throws QueueFSError `task-failed`, `task-cancelled`, `timed-out`, `task-not-found`
 */
export async function followTask(session: Session, backend: Backend, id: string, timeoutMs: number | undefined): Promise<void> {
  const { waitTask } = await import("../../task/wait.ts");
  const unwritable = new AbortController();
  const follower = (await barFollower(session)) ?? new LineFollower(session, unwritable);
  let said = "";
  let task: Task;
  try {
    task = await waitTask(backend, parseTaskId(id), {
      signal: AbortSignal.any([session.signal, unwritable.signal]),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      onProgress(seen) {
        said = "";
        follower.update(seen);
      },
      onError(error) {
        if (said === error.message) return;
        said = error.message;
        session.note(`still waiting: ${error.message}`);
      },
    });
  } finally {
    await follower.end();
  }
  unwritable.signal.throwIfAborted();
  await session.output.flush();
  await assertCompleted(backend, task);
}
