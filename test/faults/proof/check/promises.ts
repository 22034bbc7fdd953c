/** What is checked, and which promises of a backend the checks rest on. */

import type { Operation } from "../operation.ts";

/** The properties of the design that a history can show. */
export const PROPERTIES = [
  "S1",
  "S2",
  "S3",
  "S4",
  "S5",
  "S6",
  "S7",
  "S8",
  "S9",
  "S10",
  "S11",
  "S12",
  "C1",
  "C2",
  "C3",
  "C4",
  "C5",
  "L1",
  "L2",
  "L3",
  "L4",
] as const;

/** One of them. */
export type Property = (typeof PROPERTIES)[number];

/** What a backend promises beside the contract. */
export interface Promises {
  /** Whether the death of a process gives back what it holds at once. */
  readonly deathRecovery: boolean;
  /** How long after a client's end an unanswered request of it can still happen. Infinity where a server may hold it in a socket. */
  readonly lateEffectMs: number;
  /** Whether a client sends a call again by itself when the connection breaks: a dequeue may then have held messages that its answer does not name. */
  readonly resends: boolean;
  /**
   * Whether a server forgets, when it is killed, what it answered: what is harmless twice is then carried out anew when its client sends it again,
   * and answered as of now.
   */
  readonly forgetsAnswers: boolean;
  /** By how much two clocks of one host, and their rounding, may differ over one lease. */
  readonly toleranceMs: number;
  /** How long after the end of a lease a dequeue must find the message. */
  readonly recoveryMs: number;
  /** Longest time that a call may take while nothing is wrong with the server or the network. */
  readonly callMs: number;
  /** How long a waiter may sleep after its condition came true: its poll interval and what a busy machine adds. */
  readonly wakeUpMs: number;
  /** How many of the calls may fail while nothing is wrong. */
  readonly errorRate: number;
  /** How long after a fault its consequences are excused. */
  readonly faultTailMs: number;
}

/** What holds for the checks of a store inside one process. */
export const STRICT_PROMISES: Promises = {
  deathRecovery: false,
  lateEffectMs: 0,
  resends: false,
  forgetsAnswers: false,
  toleranceMs: 2,
  recoveryMs: 50,
  callMs: 15_000,
  wakeUpMs: 6_000,
  errorRate: 0.001,
  faultTailMs: 2_000,
};

/** A property that does not hold, with the operations that prove it. */
export interface Violation {
  readonly property: Property;
  readonly text: string;
  readonly proof: readonly Operation[];
}

/** How often a property was looked at, and how often that could have shown something. */
export interface Tally {
  checks: number;
  telling: number;
  violations: number;
}

/** What came of checking a history. */
export interface Report {
  readonly tallies: Readonly<Record<Property, Tally>>;
  /** The first ten of each property. */
  readonly violations: readonly Violation[];
}

const KEPT = 10;

/** Collects what the checks find. */
export class Findings implements Report {
  readonly tallies = Object.fromEntries(PROPERTIES.map((name) => [name, { checks: 0, telling: 0, violations: 0 }])) as Record<
    Property,
    Tally
  >;
  readonly violations: Violation[] = [];

  /** One look at a property. @param telling whether it could have failed, as far as the history shows */
  looked(property: Property, telling = true): void {
    const tally = this.tallies[property];
    tally.checks += 1;
    if (telling) tally.telling += 1;
  }

  /** A property does not hold. */
  violated(property: Property, text: string, ...proof: readonly (Operation | undefined)[]): void {
    const tally = this.tallies[property];
    tally.violations += 1;
    if (tally.violations <= KEPT)
      this.violations.push({ property, text, proof: [...new Set(proof)].filter((operation) => operation !== undefined) });
  }
}
