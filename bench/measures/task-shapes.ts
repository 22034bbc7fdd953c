/** How the benchmark makes tasks and takes their messages. */

/** How messages and tasks are made, and how the messages are taken. */
export interface Shape {
  readonly name: string;
  /** Calls at once. */
  readonly callers: number;
  /** Messages of one call, whether it stores, takes or acks. */
  readonly batch: number;
  /** Whether a task is made with all its messages, or opened, added to between the others, and sealed. */
  readonly isMadeWhole: boolean;
}

/** All of them. */
export const SHAPES: readonly Shape[] = [
  { name: "task by task, batches of 100", callers: 4, batch: 100, isMadeWhole: true },
  { name: "interleaved, one by one x64", callers: 64, batch: 1, isMadeWhole: false },
  { name: "interleaved, batches of 100", callers: 4, batch: 100, isMadeWhole: false },
];
