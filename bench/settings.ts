/** How a run is made: which suites, how long, how often. */

import type { Contender } from "./contender.ts";
import type { Library } from "./library.ts";
import type { Results } from "./results.ts";

/** How long a run takes and how deep it goes. */
export interface Settings {
  /** Every measure is taken so often, the contenders taking turns. */
  readonly rounds: number;
  /** How long one measurement runs, in milliseconds. */
  readonly windowMs: number;
  /** Messages in the queue at which a status is read. */
  readonly depths: readonly number[];
  /** Messages that are in memory when "deep" is measured. */
  readonly deepMessages: number;
  /** Which part of its usual messages a drain begins with. */
  readonly drainPart: number;
  /** Tasks that are worked off at once, and the messages of each. */
  readonly tasks: number;
  readonly messagesPerTask: number;
  /** Whether those take part who are so slow that nobody is measured by them, and two processes are measured with full durability too. */
  readonly isThorough: boolean;
}

/** What a suite gets. */
export interface Run {
  readonly settings: Settings;
  readonly library: Library;
  readonly results: Results;
  /** Says what is measured now. */
  readonly tell: (text: string) => void;
  /** Makes a fresh folder, calls back with it, and removes it. */
  readonly inFolder: <Value>(use: (folder: string) => Promise<Value>) => Promise<Value>;
}

/** About one minute. */
export const QUICK: Settings = {
  rounds: 3,
  windowMs: 50,
  depths: [10, 1_000, 100_000],
  deepMessages: 300_000,
  drainPart: 0.2,
  tasks: 100,
  messagesPerTask: 100,
  isThorough: false,
};
/** A few minutes. */
export const NORMAL: Settings = {
  rounds: 5,
  windowMs: 400,
  depths: [10, 1_000, 100_000],
  deepMessages: 1_000_000,
  drainPart: 1,
  tasks: 300,
  messagesPerTask: 100,
  isThorough: true,
};
/** For the page of results. */
export const FULL: Settings = {
  rounds: 7,
  windowMs: 600,
  depths: [10, 1_000, 100_000, 1_000_000, 5_000_000],
  deepMessages: 1_000_000,
  drainPart: 1,
  tasks: 10_000,
  messagesPerTask: 100,
  isThorough: true,
};

/** The contenders in the order of a round: each round begins with another one, so that none is always the first on a cold or the last on a hot machine. */
export function turns<Participant extends Contender | string>(participants: readonly Participant[], round: number): Participant[] {
  const shift = participants.length === 0 ? 0 : round % participants.length;
  return [...participants.slice(shift), ...participants.slice(0, shift)];
}
