/** The manual clock of a run, which also tells when its next timer is due, so that nothing happens between two stops. */

import type { Timer } from "../../src/core/clock.ts";
import { ManualClock } from "../../src/testing/index.ts";

/** A manual clock that knows its next timer. */
export class SimulationClock extends ManualClock {
  readonly #due = new Map<object, number>();

  /** Whole milliseconds, as the timers of the host have, so that both clocks stay whole. */
  override setTimer(callback: () => void, delay: number): Timer {
    const delayMs = Math.ceil(delay);
    const entry = {};
    this.#due.set(entry, this.monotonicMs() + Math.max(0, delayMs));
    const timer = super.setTimer(() => {
      this.#due.delete(entry);
      callback();
    }, delayMs);
    return {
      cancel: () => {
        this.#due.delete(entry);
        timer.cancel();
      },
    };
  }

  /** How long until a timer is due, in milliseconds; `undefined` without one. */
  get nextTimerMs(): number | undefined {
    return this.#due.size === 0 ? undefined : Math.max(0, Math.min(...this.#due.values()) - this.monotonicMs());
  }
}
