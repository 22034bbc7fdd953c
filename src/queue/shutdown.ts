/** Graceful ends by signal: offered, not forced. */

import type { StopReport } from "./worker.ts";

/** What can be stopped: a worker, a manager. */
export interface Stoppable {
  stop(): Promise<StopReport>;
}

/** Options of {@link stopOnSignals}. */
export interface SignalOptions {
  /** Default SIGTERM and SIGINT. */
  readonly signals?: readonly NodeJS.Signals[];
  /** Called when all has stopped, before the listeners are taken away: the place to close the store. */
  readonly onStopped?: (report: StopReport, signal: NodeJS.Signals) => void | Promise<void>;
  /** Told when stopping or `onStopped` fails. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
}

/**
 * Stops workers at the first signal; further ones change nothing. The process is not ended: with nothing left to do it ends by itself, and
 * listeners of others stay as they are.
 *
 * @returns a function that takes the listeners away again
 */
export function stopOnSignals(stoppable: Stoppable, options: SignalOptions = {}): () => void {
  const { signals = ["SIGTERM", "SIGINT"], onError = (error) => process.emitWarning(String(error)) } = options;
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) return;
    stopping = true;
    void end(signal);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    try {
      const report = await stoppable.stop();
      await options.onStopped?.(report, signal);
    } catch (error) {
      onError(error);
    }
    remove();
  };
  const remove = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  return remove;
}
