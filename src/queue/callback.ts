/** Calling what a program gave us to be told: what that throws must neither hinder the work nor go unheard. */

import { errorText } from "./error-text.ts";

/** Calls a listener. What it throws, or rejects with, becomes a warning of the process. */
export function tell(listener: () => unknown): void {
  try {
    const answer = listener();
    if (answer instanceof Promise) answer.catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** Warns of an error that nobody asked to be told of. */
export function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : errorText(error));
}
