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
  /** Messages in the queue at which the cost of a call is measured. */
  readonly depths: readonly number[];
  /** Callers at once in the sweep of consumers. */
  readonly callers: readonly number[];
  /** Bytes of a message in the sweep of payloads. */
  readonly payloadBytes: readonly number[];
  /** Processes that work on one file. */
  readonly processes: readonly number[];
  /** Messages that go through each store while memory and files are watched. */
  readonly growthMessages: number;
  /** How long idle workers are watched, in milliseconds. */
  readonly idleMs: number;
  /** Waits that are timed in a round, and stores that are opened. */
  readonly waits: number;
  readonly openings: number;
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

/** A few seconds: whether everything runs. The figures mean nothing. */
export const TINY: Settings = {
  rounds: 1,
  windowMs: 20,
  depths: [10, 1_000],
  callers: [1, 100],
  payloadBytes: [0, 65_536],
  processes: [1, 2],
  growthMessages: 4_000,
  idleMs: 200,
  waits: 2,
  openings: 1,
  deepMessages: 2_000,
  drainPart: 0.02,
  tasks: 5,
  messagesPerTask: 20,
  isThorough: false,
};
/** About one minute. */
export const QUICK: Settings = {
  rounds: 2,
  windowMs: 50,
  depths: [10, 1_000, 100_000],
  callers: [1, 10, 100, 1_000],
  payloadBytes: [0, 1_024, 65_536, 1_048_576],
  processes: [1, 2],
  growthMessages: 100_000,
  idleMs: 1_500,
  waits: 10,
  openings: 2,
  deepMessages: 300_000,
  drainPart: 0.2,
  tasks: 50,
  messagesPerTask: 100,
  isThorough: false,
};
/** A few minutes. */
export const NORMAL: Settings = {
  rounds: 5,
  windowMs: 400,
  depths: [10, 1_000, 100_000],
  callers: [1, 4, 16, 64, 250, 1_000],
  payloadBytes: [0, 64, 256, 1_024, 16_384, 131_072, 1_048_576],
  processes: [1, 2, 4],
  growthMessages: 1_000_000,
  idleMs: 5_000,
  waits: 50,
  openings: 5,
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
  callers: [1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1_000],
  payloadBytes: [0, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576],
  processes: [1, 2, 3, 4],
  growthMessages: 10_000_000,
  idleMs: 30_000,
  waits: 100,
  openings: 10,
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
