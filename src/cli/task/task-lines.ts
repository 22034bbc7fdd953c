/** Tasks for people. */

import { formatTimestamp } from "../../core/codec.ts";
import { quote } from "../../core/errors.ts";
import type { Task, TaskError, TaskProgress } from "../../core/task.ts";
import { describeTask } from "../../core/task-json.ts";
import { fieldLines } from "../fields.ts";
import type { Session } from "../session.ts";
import { preview, visible, visibleJson } from "../visible.ts";

/** Characters of `meta` and of `result` shown; the whole is had with --json. */
const SHOWN_CHARACTERS = 2_000;
const encoder = new TextEncoder();

/** How far a task is, in a few words. */
export function progressWords({ total, done, failed, cancelled, unacked }: TaskProgress): string {
  const others = Object.entries({ failed, cancelled, unacked }).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]));
  return [`${done} of ${total} done`, ...others].join(", ");
}

/** Which message an error is about, in parentheses, if it is about one. */
export function whereOf({ queue, message }: TaskError): string {
  const parts = [
    ...(message === undefined ? [] : [`message ${quote(message)}`]),
    ...(queue === undefined ? [] : [`queue ${quote(queue)}`]),
  ];
  return parts.length === 0 ? "" : ` (${parts.join(" of ")})`;
}

/** The state of a task on one line. */
export function stateLine({ status, progress, stage }: Task): string {
  return [status, progressWords(progress), ...(stage === undefined || stage === "" ? [] : [visible(stage)])].join("  ");
}

/** The lines that describe a task. */
export function taskLines(session: Session, task: Task): string[] {
  const { createdAt, updatedAt, finishedAt, resource, stage, error, meta, result, retryOf, progress } = describeTask(task);
  const json = (value: unknown): string => preview(encoder.encode(visibleJson(JSON.stringify(value))), SHOWN_CHARACTERS);
  const field = (name: string, value: string | undefined): (readonly [string, string])[] => (value === undefined ? [] : [[name, value]]);
  return fieldLines(session, [
    ["id", task.id],
    ["type", visible(task.type)],
    ...field("resource", resource && visible(resource)),
    ["status", task.status],
    ...field("stage", stage && visible(stage)),
    ["progress", progressWords(progress)],
    ["sealed", task.sealed ? "yes" : "no, its producer may add more"],
    ...field("error", error && visible(`${error.reason}${whereOf(error)}`)),
    ...field("retry of", retryOf),
    ["created", createdAt],
    ["updated", updatedAt],
    ...field("finished", finishedAt),
    ...field("meta", meta === undefined ? undefined : json(meta)),
    ...field("result", result === undefined ? undefined : json(result)),
  ]);
}

/** Writes what is known of a task: its JSON, or the word that says what became of it and its id. */
export async function writeTask(session: Session, task: Task, word: string = task.status): Promise<void> {
  if (session.json) await session.jsonLine(describeTask(task));
  else await session.output.line(`${word} ${task.id}`);
}

/** One line with a time, for logs. */
export function logLine(task: Task): string {
  return `${formatTimestamp(task.updatedAtMs)}  ${stateLine(task)}`;
}
