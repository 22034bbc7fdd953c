/** C4 and C5: watermarks, and the ends of tasks. */

import type { Operation, OperationOf } from "../operation.ts";
import type { Indexed } from "./index-history.ts";
import type { Life } from "./life.ts";
import type { Findings } from "./promises.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** For any instant: the life with the latest of some time among those that come before it. */
class LatestBefore {
  readonly #keys: number[] = [];
  readonly #latest: Life[] = [];
  readonly #value: (life: Life) => number;

  constructor(lives: readonly Life[], key: (life: Life) => number, value: (life: Life) => number) {
    this.#value = value;
    let latest: Life | undefined;
    for (const life of lives.filter((each) => key(each) < NEVER).sort((left, right) => key(left) - key(right))) {
      if (latest === undefined || value(life) > value(latest)) latest = life;
      this.#keys.push(key(life));
      this.#latest.push(latest);
    }
  }

  before(time: number): { readonly life: Life | undefined; readonly value: number } {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] as number) < time) low = middle + 1;
      else high = middle;
    }
    const life = this.#latest[low - 1];
    return { life, value: life === undefined ? Number.NEGATIVE_INFINITY : this.#value(life) };
  }
}

/** Checks what marks, and waits up to now, say. */
export function checkMarks(indexed: Indexed, findings: Findings): void {
  const byQueue = new Map(
    [...indexed.livesByQueue].map(([queue, lives]) => [
      queue,
      {
        stored: new LatestBefore(
          lives,
          ({ sure }) => sure,
          ({ from }) => from,
        ),
        possible: new LatestBefore(
          lives,
          ({ born }) => born,
          ({ by }) => by,
        ),
      },
    ]),
  );
  const marks = new Map<string, OperationOf<"mark">>();
  for (const operation of indexed.operations) if (operation.op === "mark") marks.set(operation.mark, operation);
  const judge = (asked: Operation, queues: readonly string[], markBegin: number, reply: Operation): void => {
    let isTelling = false;
    for (const queue of queues) {
      const { life, value } = byQueue.get(queue)?.stored.before(markBegin) ?? { life: undefined, value: 0 };
      isTelling ||= life !== undefined && value > asked.begin;
      if (life !== undefined && value > reply.end)
        findings.violated(
          "C4",
          `the mark was said to be reached while ${life.value}, enqueued before it, was unacked`,
          life.storings[0]?.operation,
          asked,
          reply,
        );
    }
    findings.looked("C4", isTelling);
  };
  for (const operation of indexed.operations) {
    if (operation.outcome !== "ok") continue;
    if (operation.op === "wait" && operation.upToNow && operation.answer === "complete")
      judge(operation, operation.queues, operation.begin, operation);
    if (operation.op !== "reached") continue;
    const mark = marks.get(operation.mark);
    if (mark === undefined || mark.outcome !== "ok") continue;
    if (operation.reached) {
      judge(mark, mark.queues, mark.begin, operation);
      continue;
    }
    const latest = Math.max(...mark.queues.map((queue) => byQueue.get(queue)?.possible.before(mark.end).value ?? Number.NEGATIVE_INFINITY));
    findings.looked("C4", latest < NEVER);
    if (latest < operation.begin)
      findings.violated("C4", "the mark was said to be open although all that can have come before it was removed", mark, operation);
  }
}

interface TaskHistory {
  readonly lives: Life[];
  submit: OperationOf<"submit"> | undefined;
  readonly seals: OperationOf<"seal">[];
  readonly reads: OperationOf<"task">[];
}

function taskHistories({ operations, lives }: Indexed): Map<string, TaskHistory> {
  const tasks = new Map<string, TaskHistory>();
  const task = (id: string): TaskHistory => {
    const known = tasks.get(id) ?? { lives: [], submit: undefined, seals: [], reads: [] };
    tasks.set(id, known);
    return known;
  };
  for (const operation of operations) {
    if (operation.op === "submit") {
      const known = task(operation.task);
      if (operation.outcome !== "fail" && (known.submit === undefined || operation.outcome === "ok")) known.submit ??= operation;
    } else if (operation.op === "seal" && operation.outcome !== "fail") task(operation.task).seals.push(operation);
    else if (operation.op === "task") task(operation.task).reads.push(operation);
  }
  for (const life of lives.values()) if (life.task !== undefined) task(life.task).lives.push(life);
  return tasks;
}

/** By when the task must have ended; Infinity while that is open. */
function endsBy({ lives, submit, seals }: TaskHistory): number {
  if (submit === undefined) return NEVER;
  const sealed = submit.sealed ? submit.end : Math.min(...seals.filter(({ outcome }) => outcome === "ok").map(({ end }) => end), NEVER);
  return lives.reduce((last, { by, born }) => (born === NEVER ? last : Math.max(last, by)), sealed);
}

type Read = OperationOf<"task">;

/** A read that says that the task has ended. */
function checkEnded(id: string, { lives, submit, seals }: TaskHistory, read: Read, findings: Findings): void {
  if (read.status !== "completed") findings.violated("C5", `task ${id} ended as ${read.status}, although nothing failed`, submit, read);
  const open = lives.find(({ sure, from }) => from > read.end && sure < NEVER);
  if (open !== undefined)
    findings.violated(
      "C5",
      `task ${id} had ended while ${open.value} was unacked, or before it was stored`,
      open.storings[0]?.operation,
      read,
    );
  const sealedFrom = submit?.sealed ? submit.begin : Math.min(...seals.map(({ begin }) => begin), NEVER);
  if (sealedFrom > read.end) findings.violated("C5", `task ${id} had ended before it was sealed`, submit, ...seals, read);
}

function isEnded({ status }: Read): boolean {
  return status !== "pending" && status !== "running";
}

function checkTask(id: string, task: TaskHistory, findings: Findings): void {
  const { lives, submit, seals, reads } = task;
  const by = endsBy(task);
  let done: Read | undefined;
  for (const read of reads) {
    // Tasks are kept for a day after their end.
    if (read.error === "task-not-found" && submit?.outcome === "ok" && submit.end < read.begin)
      findings.violated("C5", `task ${id} was said not to be there`, submit, read);
    if (read.outcome !== "ok") continue;
    findings.looked("C5", isEnded(read) ? lives.some(({ from }) => from > (submit?.begin ?? 0)) : by < NEVER);
    if (isEnded(read)) {
      checkEnded(id, task, read, findings);
      if (done === undefined || read.end < done.end) done = read;
    } else if (by < read.begin) {
      const removals = lives.flatMap((life) => life.removals.map(({ operation }) => operation)).slice(-3);
      findings.violated("C5", `task ${id} was not ended although all its messages were removed`, submit, ...seals, ...removals, read);
    }
  }
  for (const read of reads) {
    if (done === undefined || read.outcome !== "ok" || read.begin <= done.end || read.status === done.status) continue;
    findings.violated("C5", `task ${id} was ${done.status} and then ${read.status}`, done, read);
  }
}

/** Checks when tasks end. */
export function checkTasks(indexed: Indexed, findings: Findings): void {
  for (const [id, task] of taskHistories(indexed)) checkTask(id, task, findings);
}
