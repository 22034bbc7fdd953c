/** The shapes of tasks: pieces of business work (an import, a session commit) that own messages and end with a status. */

import type { DeadLetter, EnqueueAnswer, PageOptions } from "./message.ts";
import type { MessageId, QueueName, TaskId } from "./names.ts";

/** Where a task can be. The last three are final: a task that has one of them never changes again. */
export const TASK_STATUSES = ["pending", "running", "cancelling", "completed", "failed", "cancelled"] as const;

/**
 * Where a task is. `pending`: none of its messages was handed out yet, or none is unacked and its producer may add more. `running`: it has
 * unacked messages. `cancelling`: it was cancelled and some of its messages are not settled yet. `completed`: all are acked. `failed`: at
 * least one was given up on, or its producer failed. `cancelled`: it was cancelled and all are settled.
 */
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** The statuses with which a task has ended. */
export type TerminalStatus = "completed" | "failed" | "cancelled";

/** Whether a task with this status has ended. */
export function isTerminal(status: TaskStatus): status is TerminalStatus {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/**
 * The messages of a task, counted in the steps that change them: `total` = `done` + `failed` + `cancelled` + `unacked`. Messages that its
 * handlers enqueue raise the total while it runs.
 */
export interface TaskProgress {
  /** Messages ever stored for it. */
  readonly total: number;
  /** Of these: acked. */
  readonly done: number;
  /** Moved to the dead letters and not redriven, or removed with or from their queue (`clear`). */
  readonly failed: number;
  /** Removed because the task was cancelled. */
  readonly cancelled: number;
  /** Pending or processing. */
  readonly unacked: number;
}

/** Why a task failed or was cancelled: the first failure. */
export interface TaskError {
  /** In words; cut at 4,096 characters. */
  readonly reason: string;
  /** The queue of the message that failed, if it was a message. */
  readonly queue?: QueueName;
  /** That message. */
  readonly message?: MessageId;
}

/** A value as JSON has it. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** One task, all of one moment. */
export interface Task {
  readonly id: TaskId;
  /** What kind of work it is, such as `import`. */
  readonly type: string;
  /** What it is about, such as a path or an address; absent when it was not told. */
  readonly resource?: string;
  readonly status: TaskStatus;
  /** The step it is in, in the words of whoever does it. */
  readonly stage?: string;
  readonly progress: TaskProgress;
  /** Whether its producer has said that it adds no more. What its handlers enqueue is still taken until the task ends. */
  readonly sealed: boolean;
  /** Whatever its maker keeps with it. */
  readonly meta?: Json;
  /** What came out of it; its handlers or its producer set it before it ends. */
  readonly result?: Json;
  /** The first failure, or why it was cancelled. */
  readonly error?: TaskError;
  /** The task whose dead letters this one tries again. */
  readonly retryOf?: TaskId;
  /** When it was made, by the store's wall clock, in milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  /** When it or one of its messages last changed its state, likewise. */
  readonly updatedAtMs: number;
  /** When it ended, likewise; absent before. */
  readonly finishedAtMs?: number;
}

/** How long a task is kept after its end, in milliseconds, 0 to 366 days each. */
export interface TaskRetention {
  /** Default one day. */
  readonly completed: number;
  /** Default seven days. */
  readonly failed: number;
  /** Default one day. */
  readonly cancelled: number;
}

/** Who adds messages to a task that is not sealed yet. */
export interface NewProducer {
  /** How long it counts as alive without a renewal, in milliseconds by the store's clock. 10 ms to 7 days. */
  readonly leaseMs: number;
  /** `process`: it is also gone when the calling process provably is (same host, SQLite). `receipt`: by its lease only. Default `process`. */
  readonly owner?: "process" | "receipt";
}

/** A task to be made. */
export interface NewTask {
  /** An id chosen by the caller, which makes a repeat safe; see {@link parseChosenTaskId}. The store makes one if absent. */
  readonly id?: TaskId;
  /** 1 to 255 bytes. */
  readonly type: string;
  /** At most 4,096 characters. */
  readonly resource?: string;
  /** At most 255 bytes. */
  readonly stage?: string;
  /** At most 64 KiB as JSON. */
  readonly meta?: Json;
  /** How long it is kept after its end. */
  readonly keepMs?: Partial<TaskRetention>;
  /** Present: the task is open for more messages until this producer seals it. Absent: it is sealed with what it is made with. */
  readonly producer?: NewProducer;
  /** The task whose dead letters it is to try again. */
  readonly retryOf?: TaskId;
}

/** What became of making a task. */
export type CreatedTask =
  /** It was made, with its messages, in one step. `producer` is the name of its producer, for sealing and renewing, unless it is sealed. */
  | {
      readonly outcome: "created";
      readonly task: Task;
      readonly producer?: string;
      readonly enqueued: readonly (readonly EnqueueAnswer[])[];
    }
  /** There is one of that id already; nothing changed. */
  | { readonly outcome: "exists"; readonly task: Task };

/** What changes in a task that has not ended; what is absent stays. */
export interface TaskChange {
  readonly stage?: string;
  readonly meta?: Json;
  readonly result?: Json;
}

/** How a task is sealed. */
export interface SealOptions {
  /** The producer that seals, as `createTask` named it. Absent: whoever asks may. */
  readonly producer?: string;
  /** That the producer failed, and why: the task then ends as `failed` once its messages are settled. */
  readonly error?: string;
}

/** What became of sealing. `stale`: it was sealed before, has ended, or this producer was taken for gone; nothing changed. */
export interface SealedTask {
  readonly outcome: "sealed" | "stale";
  readonly task: Task;
}

/** One producer that is still there. */
export interface ProducerRenewal {
  readonly task: TaskId;
  readonly producer: string;
  /** The lease from now, in milliseconds. 10 ms to 7 days. */
  readonly leaseMs: number;
}

/** What one step of cancelling did. */
export interface CancelledTask {
  readonly task: Task;
  /** Pending messages that this step removed. */
  readonly removed: number;
  /** Whether pending messages of it are left for another step. */
  readonly more: boolean;
}

/** Which tasks a listing shows, newest first. */
export interface TaskListOptions extends PageOptions {
  readonly type?: string;
  readonly status?: TaskStatus;
  readonly resource?: string;
  /** Made at or after this time, in milliseconds since 1970-01-01 UTC. */
  readonly fromMs?: number;
  /** Made before this time, likewise. */
  readonly toMs?: number;
}

/** A message of a task that was given up on. */
export interface TaskFailure extends DeadLetter {
  readonly queue: QueueName;
}

/** What one step of trying again did. */
export interface RedrivenTask {
  /** Dead letters that became pending again. */
  readonly redriven: number;
  /** Whether there are more. */
  readonly more: boolean;
}
