/** What this process has seen of a queue. It is told beside the status, and nothing is ever decided by it. */

import type { Clock } from "../core/clock.ts";
import { errorText } from "./error-text.ts";

/** Errors that are kept. */
const KEPT_ERRORS = 100;

/** One error of a handler or of the queue itself. */
export interface TelemetryError {
  /** The message it happened with; absent when it was none's, such as a failure to look for work. */
  readonly id?: string;
  /** Which delivery of the message it was, from 1. */
  readonly attempt?: number;
  /** The text, at most 4,096 characters. */
  readonly text: string;
  /** When, by the wall clock, in milliseconds since 1970-01-01 UTC. */
  readonly atMs: number;
}

/** Counts of one process since it began or they were reset. */
export interface TelemetryCounts {
  /** Messages acked after their handler returned. */
  readonly processed: number;
  /** Messages given back after they were looked at: nacks and releases. */
  readonly requeueCount: number;
  /** Errors seen. */
  readonly errorCount: number;
  /** The last 100 errors, oldest first. */
  readonly recentErrors: readonly TelemetryError[];
}

/** Collects the counts of one process for one queue. */
export class Telemetry {
  readonly #clock: Clock;
  #processed = 0;
  #requeueCount = 0;
  #errorCount = 0;
  #errors: TelemetryError[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a message that was acked. */
  countProcessed(): void {
    this.#processed += 1;
  }

  /** Counts a message that was given back. */
  countRequeue(): void {
    this.#requeueCount += 1;
  }

  /** Keeps an error. @param about the message it happened with, if it was one's */
  recordError(error: unknown, about: { readonly id?: string; readonly attempt?: number } = {}): TelemetryError {
    const entry = { ...about, text: errorText(error), atMs: Math.floor(this.#clock.wallMs()) };
    this.#errorCount += 1;
    this.#errors.push(entry);
    if (this.#errors.length > KEPT_ERRORS) this.#errors.shift();
    return entry;
  }

  /** The counts now. */
  read(): TelemetryCounts {
    return { processed: this.#processed, requeueCount: this.#requeueCount, errorCount: this.#errorCount, recentErrors: [...this.#errors] };
  }

  /** Sets all counts to zero; the status of the queue is untouched. */
  reset(): void {
    this.#processed = 0;
    this.#requeueCount = 0;
    this.#errorCount = 0;
    this.#errors = [];
  }
}
