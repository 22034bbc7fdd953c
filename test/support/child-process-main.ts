/** The other side of {@link ./child-process.ts}: what runs inside a child process and calls the programs its parent asks for. */

import { isQueueFSError } from "../../src/core/errors.ts";
import type { FromChild, Programs, ToChild } from "./child-process.ts";

function send(message: FromChild): void {
  // Without a channel the parent is gone, and nobody is left to be told.
  if (process.connected) process.send?.(message);
}

/** Tells the parent something while a program runs. Values are copied: plain data, bytes, arrays. */
export function tell(value: unknown): void {
  send({ kind: "told", value });
}

/**
 * Like {@link tell}, and resolves when the value has left this process: from then on it arrives even if the process is killed at once. Without
 * that, what a busy parent has not read yet may still wait here, and dies with the process.
 */
export function tellSurely(value: unknown): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.({ kind: "told", value } satisfies FromChild, undefined, undefined, () => resolve());
  });
}

/** Tells the parent of an error that no call can answer with; the parent's test then fails. */
export function reportFault(error: unknown): void {
  send({ kind: "fault", text: describe(error) });
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}

/** Answers the parent's calls until it ends or lets go of this process. */
export function serve(programs: Programs): void {
  process.on("message", (message: ToChild) => void answer(programs, message));
  process.on("disconnect", () => process.exit());
  send({ kind: "ready" });
}

async function answer(programs: Programs, { number, program, values }: ToChild): Promise<void> {
  try {
    const run = programs[program] as ((...values: unknown[]) => unknown) | undefined;
    if (run === undefined) throw new Error(`this child has no program ${program}`);
    send({ kind: "answer", number, value: await run(...values) });
  } catch (error) {
    send({
      kind: "failure",
      number,
      text: describe(error),
      ...(isQueueFSError(error) ? { code: error.code, message: error.message } : {}),
    });
  }
}
