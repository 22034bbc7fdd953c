/** Records the operations of one process, with begin and end by the clock that all processes share. */

import type { Operation } from "../history.ts";

/** The monotonic clock of the host, in nanoseconds. A double holds them exactly for 104 days after the boot. */
export function now(): number {
  return Number(process.hrtime.bigint());
}

/** The operations of one process. */
export class Recorder {
  readonly operations: Operation[] = [];

  /** Runs one call that does the same to all of these messages, and records it once it has answered. */
  async record<Result>(kind: Operation["kind"], queue: string, messages: readonly string[], call: () => Promise<Result>): Promise<Result> {
    const begin = now();
    const result = await call();
    const end = now();
    for (const message of messages) this.operations.push({ kind, queue, message, begin, end });
    return result;
  }

  /** Records what a call of known begin did to messages that only its answer named. */
  note(kind: Operation["kind"], queue: string, messages: readonly string[], begin: number, end = now()): void {
    for (const message of messages) this.operations.push({ kind, queue, message, begin, end });
  }
}
