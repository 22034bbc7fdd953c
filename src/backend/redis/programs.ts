/** The scripts as they are sent: each transition is a file of its own under scripts/, and those that work together are joined here. */

import { createHash } from "node:crypto";
import { scripts } from "./scripts.generated.ts";

/** One script as the server runs it. */
export interface Program {
  readonly name: string;
  readonly text: string;
  /** SHA-1 of the text, by which the server knows it. */
  readonly sha: string;
}

function program(name: string, ...parts: (keyof typeof scripts)[]): Program {
  const text = parts.map((part) => scripts[part]).join("\n");
  return { name, text, sha: createHash("sha1").update(text).digest("hex") };
}

/** All scripts. Those with `frame` change something and know a repeat. */
export const PROGRAMS = {
  /** The frequent operations in any mixture: enqueue, dequeue, ack, nack, release, extend, forward. */
  step: program(
    "step",
    "frame",
    "queue",
    "wake",
    "task-care",
    "tasks",
    "memory",
    "settle",
    "enqueue",
    "enqueue-owned",
    "enqueue-special",
    "dequeue",
    "ack",
    "ack-by-id",
    "give-back",
    "forward",
    "run",
  ),
  /** What happens most, on one queue, with nothing out of the ordinary. They give up, with an empty answer, where there is. */
  plainEnqueue: program("plain-enqueue", "plain-begin", "plain-enqueue", "plain-end"),
  plainDequeue: program("plain-dequeue", "plain-begin", "plain-dequeue", "plain-end"),
  plainAck: program("plain-ack", "plain-begin", "plain-ack", "plain-end"),
  plainEnqueueOwned: program("plain-enqueue-owned", "plain-begin", "plain-enqueue-owned", "plain-end"),
  plainAckOwned: program("plain-ack-owned", "plain-begin", "plain-ack-owned", "plain-end"),
  /** The most frequent operations, each kind by itself: a script that knows less starts faster. */
  enqueue: program("enqueue", "frame", "queue", "enqueue", "run"),
  enqueueOwned: program("enqueue-owned", "frame", "queue", "task-care", "tasks", "enqueue-owned", "run"),
  dequeue: program("dequeue", "frame", "queue", "wake", "task-care", "tasks", "memory", "settle", "dequeue", "run"),
  ack: program("ack", "frame", "queue", "task-care", "tasks", "memory", "ack", "run"),
  /** The rarer ones: clear, configure, redrive, drop, sweep. */
  care: program("care", "frame", "queue", "wake", "task-care", "tasks", "memory", "settle", "care", "run"),
  /** What is done with tasks themselves. */
  taskStep: program(
    "task-step",
    "frame",
    "queue",
    "wake",
    "task-care",
    "tasks",
    "memory",
    "enqueue-owned",
    "enqueue-special",
    "task-shown",
    "task-make",
    "task-change",
    "task-cancel",
    "task-redrive",
    "task-run",
  ),
  create: program("create", "frame", "create"),
  remove: program("remove", "frame", "queue", "task-care", "tasks", "remove"),
  purge: program("purge", "purge"),
  open: program("open", "open"),
  resolve: program("resolve", "resolve"),
  list: program("list", "list"),
  due: program("due", "due"),
  snapshot: program("snapshot", "snapshot"),
  statistics: program("statistics", "statistics"),
  nextDue: program("next-due", "next-due"),
  peek: program("peek", "peek"),
  messages: program("messages", "messages"),
  deadLetters: program("dead-letters", "dead-letters"),
  task: program("task", "task-shown", "task"),
  taskList: program("task-list", "task-shown", "task-list"),
  taskFailures: program("task-failures", "task-failures"),
  taskLetters: program("task-letters", "task-letters"),
  taskAudit: program("task-audit", "task-audit"),
} as const;
