/** A clock that stands still until a test moves it, so that a test of time is exact and takes none. */

import type { Clock, Timer } from "../core/clock.ts";

interface Waiting {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Where a {@link ManualClock} starts. */
export interface ManualClockStart {
  /** The monotonic clock in milliseconds. Default 1,000,000. */
  readonly monotonicMs?: number;
  /** The wall clock in milliseconds since 1970-01-01 UTC. Default 2023-11-14 22:13:20 UTC. */
  readonly wallMs?: number;
}

/** A clock moved by hand. Timers fire inside {@link advance}, each at its own instant, in the order in which they are due. */
export class ManualClock implements Clock {
  #monotonicMs: number;
  #wallMs: number;
  #order = 0;
  readonly #waiting = new Set<Waiting>();

  /** @param start where both clocks begin */
  constructor(start: ManualClockStart = {}) {
    this.#monotonicMs = start.monotonicMs ?? 1_000_000;
    this.#wallMs = start.wallMs ?? 1_700_000_000_000;
  }

  /** The monotonic clock, in milliseconds. */
  monotonicMs(): number {
    return this.#monotonicMs;
  }

  /** The wall clock, in milliseconds since 1970-01-01 UTC. */
  wallMs(): number {
    return this.#wallMs;
  }

  /** Calls `callback` once when the clock has been moved on by at least `delayMs`; a negative delay counts as 0. */
  setTimer(callback: () => void, delayMs: number): Timer {
    const waiting: Waiting = { dueMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order, callback };
    this.#order += 1;
    this.#waiting.add(waiting);
    return { cancel: () => void this.#waiting.delete(waiting) };
  }

  /** How many timers wait: 0 once everything that uses the clock is closed. */
  get timerCount(): number {
    return this.#waiting.size;
  }

  /**
   * Moves both clocks on by `ms` and fires the timers due by then, also those that a fired timer sets. Code that awaits in between runs
   * only after the whole step; {@link advanceAndSettle} lets it run after each timer.
   *
   * @param ms 0 or more; with 0, timers that are due at once fire
   */
  advance(ms: number): void {
    const endMs = this.#end(ms);
    while (this.#fireNext(endMs)) {
      // Each turn fires one timer.
    }
    this.#moveTo(endMs);
  }

  /** Like {@link advance}, and after each timer lets everything run that can run without time passing. */
  async advanceAndSettle(ms: number): Promise<void> {
    const endMs = this.#end(ms);
    await settle();
    while (this.#fireNext(endMs)) await settle();
    this.#moveTo(endMs);
    await settle();
  }

  /** Sets the wall clock forward or back by `ms`, as an administrator or a time service does; the monotonic clock stays. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  #end(ms: number): number {
    if (!Number.isFinite(ms) || ms < 0) throw new RangeError(`a manual clock moves on by 0 ms or more, got ${ms}`);
    return this.#monotonicMs + ms;
  }

  #moveTo(monotonicMs: number): void {
    // A timer's callback may have advanced the clock further by itself; the clock never goes back.
    const step = Math.max(0, monotonicMs - this.#monotonicMs);
    this.#monotonicMs += step;
    this.#wallMs += step;
  }

  #fireNext(endMs: number): boolean {
    let next: Waiting | undefined;
    for (const waiting of this.#waiting) {
      if (waiting.dueMs > endMs) continue;
      if (next === undefined || waiting.dueMs < next.dueMs || (waiting.dueMs === next.dueMs && waiting.order < next.order)) next = waiting;
    }
    if (next === undefined) return false;
    this.#waiting.delete(next);
    this.#moveTo(next.dueMs);
    next.callback();
    return true;
  }
}

/** Two turns of the event loop: promise chains, and calls that were put off to the end of a turn, have run after them. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
