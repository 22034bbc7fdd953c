/** Looking at a snapshot again and again: woken by the store, with a slow look as a safety net. */

import type { Backend } from "../backend/contract.ts";
import { isQueueFSError, type QueueFSError } from "../core/errors.ts";
import type { QueueSelection, QueueStatus } from "../core/message.ts";

/** How often to look although nothing woke, and how soon after a look at the earliest, in milliseconds. */
const POLL_MS = 1_000;
const GAP_MS = 100;

/** What a watcher is told. */
export interface StatusWatcher {
  /** Gets each snapshot; the next is taken when it has resolved. */
  onSnapshot(statuses: readonly QueueStatus[]): Promise<void>;
  /** Gets a failure that may pass by itself: the store is busy or away. */
  onFailure(error: QueueFSError): void;
}

/**
 * Takes snapshots until the signal is aborted.
 *
 * @throws the signal's reason; QueueFSError `queue-not-found` when a named queue is removed
 */
export async function watchStatuses(
  backend: Backend,
  selection: QueueSelection,
  signal: AbortSignal,
  watcher: StatusWatcher,
): Promise<never> {
  let changed = false;
  let wake = (_why: "change" | "abort"): void => {};
  // Keeps the process alive, which the timers and subscriptions of a backend do not.
  const pause = (milliseconds: number, untilChange: boolean): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      wake = (why) => {
        if (why === "change" && !untilChange) return;
        clearTimeout(timer);
        resolve();
      };
      if (signal.aborted) wake("abort");
      else if (changed) wake("change");
    });
  const unsubscribe = backend.subscribe(() => {
    changed = true;
    wake("change");
  });
  const onAbort = (): void => wake("abort");
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      changed = false;
      try {
        await watcher.onSnapshot(await backend.statuses(selection));
      } catch (error) {
        if (!isQueueFSError(error) || !error.retryable) throw error;
        watcher.onFailure(error);
      }
      await pause(GAP_MS, false);
      await pause(POLL_MS, true);
    }
  } finally {
    unsubscribe();
    signal.removeEventListener("abort", onAbort);
  }
}
