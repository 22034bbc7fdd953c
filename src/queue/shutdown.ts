/** Graceful ends by signal: offered, not forced. */

import { warn } from "./callback.ts";
import type { StopReport } from "./worker-options.ts";

/** What can be stopped: a worker, a manager. */
export interface Stoppable {
  stop(): Promise<StopReport>;
}

/** Options of {@link stopOnSignals}. */
export interface SignalOptions {
  /** Default SIGTERM and SIGINT. */
  readonly signals?: readonly NodeJS.Signals[];
  /** Called when all has stopped: the place to close the store. */
  readonly onStopped?: (report: StopReport, signal: NodeJS.Signals) => void | Promise<void>;
  /** Told when stopping or `onStopped` fails. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
  /**
   * Whether to end the process when it still lives half a second after `onStopped` has returned, because handlers that did not come to
   * their end hold timers or sockets. Its exit code is `process.exitCode`, 0 unless somebody set it. Default false.
   */
  readonly exit?: boolean;
}

/** How long the process has to end by itself before signals have their usual effect again, in milliseconds. */
const ENDING_MS = 500;

/**
 * Stops workers at the first signal; further ones change nothing until all has stopped and the process has had half a second to end by
 * itself, as it does with nothing left to do. Listeners of others stay as they are.
 *
 * @returns a function that takes the listeners away again
 */
export function stopOnSignals(stoppable: Stoppable, options: SignalOptions = {}): () => void {
  const { signals = ["SIGTERM", "SIGINT"], onStopped, onError = warn, exit = false } = options;
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) return;
    isStopping = true;
    void end(signal);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    try {
      const report = await stoppable.stop();
      await onStopped?.(report, signal);
    } catch (error) {
      onError(error);
    }
    // Not kept alive by this: it only fires where something else does that.
    setTimeout(() => {
      remove();
      if (exit) process.exit();
    }, ENDING_MS).unref();
  };
  const remove = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  return remove;
}
