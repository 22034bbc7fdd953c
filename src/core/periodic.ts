/** A step that is repeated at an interval while something is open. */

import type { Clock, Timer } from "./clock.ts";

/** Stops a periodic step; resolves when the step that may be running has ended. Calling it twice is harmless. */
export type StopPeriodic = () => Promise<void>;

/**
 * Runs `step` every `intervalMs`, measured from the end of one run to the start of the next, so that runs never overlap. A run that
 * answers `true` ("more to do") is followed at once. It does not keep the process alive.
 *
 * @param onError gets what `step` threw; the next run happens all the same
 */
export function startPeriodic(
  clock: Clock,
  intervalMs: number,
  step: () => Promise<boolean>,
  onError: (error: unknown) => void,
): StopPeriodic {
  let stopped = false;
  let timer: Timer | undefined;
  let running: Promise<void> = Promise.resolve();
  const run = async (): Promise<void> => {
    let more = false;
    try {
      more = await step();
    } catch (error) {
      if (!stopped) onError(error);
    }
    schedule(more ? 0 : intervalMs);
  };
  const schedule = (delayMs: number): void => {
    if (stopped) return;
    timer = clock.setTimer(() => {
      running = run();
    }, delayMs);
  };
  schedule(intervalMs);
  return async () => {
    stopped = true;
    timer?.cancel();
    await running;
  };
}
