/** What a conformance case is, what it is given, and what a backend's harness must provide to run it. */

import type { Backend } from "../../backend/contract.ts";

/** What a harness may or may not be able to do. A case that needs more than its harness has is skipped, and the skip is listed. */
export const CAPABILITIES = {
  durable: "the state outlives all clients of the store",
  "manual-clock": "time stands still between calls of passTime, and passing a year costs nothing",
  "wall-clock-steps": "the wall clock can be stepped while the monotonic clock goes on",
  "process-owners": "a delivery can belong to the calling process, and not only to whoever has its receipt",
  bounded: "the option maxMessages bounds how many messages the store holds",
} as const;

/** The name of a capability. */
export type Capability = keyof typeof CAPABILITIES;

/** Options with which all clients of one case are opened. Every backend has them under these names. */
export interface CaseOptions {
  /** How long answers to ids are remembered, in milliseconds. */
  readonly rememberMs?: number;
  /** Bytes of one message and of one call. */
  readonly maxMessageBytes?: number;
  /** How often a client looks for ended leases by itself, in milliseconds. Unless given, so seldom that it never happens in a case. */
  readonly sweepIntervalMs?: number;
  /** Messages that the store holds at most; only with the capability `bounded`. */
  readonly maxMessages?: number;
}

/** What a case works with. */
export interface ConformanceContext {
  /** A client of a store that is empty when the case begins. */
  readonly backend: Backend;
  /** Opens another client of the same store. Clients that a case leaves open are closed after it. */
  open(): Promise<Backend>;
  /** Lets at least `ms` pass by the store's clock: moves the injected clock, or really waits. */
  passTime(ms: number): Promise<void>;
  /** Sets the wall clock forward or back, leaving the monotonic one; needs the capability `wall-clock-steps`. */
  stepWall(ms: number): void;
  /**
   * A span in milliseconds that a case can wait out, yet much longer than its steps take: leases and delays are multiples of it.
   * Where time is moved by hand it is about a second, where it is real a fraction of one.
   */
  readonly spanMs: number;
}

/** One thing that every backend must do. */
export interface ConformanceCase {
  /** What must hold, unique within its section. */
  readonly name: string;
  /** The subject. */
  readonly section: string;
  /** What the harness must be able to do. */
  readonly needs?: readonly Capability[];
  /** Options for all clients of this case. */
  readonly options?: CaseOptions;
  /** Rejects when the backend does not do it. */
  run(context: ConformanceContext): Promise<void>;
}

/** A case as the files of this folder list it: the section is the file's. */
export type SectionCase = Omit<ConformanceCase, "section">;

/** Gives the cases of one subject their section. */
export function section(name: string, cases: readonly SectionCase[]): readonly ConformanceCase[] {
  return cases.map((one) => ({ ...one, section: name }));
}

/** One empty store that a harness made for one case. */
export interface ConformanceStore {
  /** Opens a client. The first call must find the store empty. */
  open(options: CaseOptions): Promise<Backend>;
  /** As {@link ConformanceContext.passTime}. */
  passTime(ms: number): Promise<void>;
  /** As {@link ConformanceContext.stepWall}; only with that capability. */
  stepWall?(ms: number): void;
  /** Removes the store; its clients are closed by then. Rejects when something of it still lives. */
  destroy(): Promise<void>;
}

/** How the cases are run on one backend. */
export interface ConformanceHarness {
  /** Name of the backend and set-up, such as `sqlite, durability normal`. */
  readonly name: string;
  readonly capabilities: readonly Capability[];
  /** As {@link ConformanceContext.spanMs}. */
  readonly spanMs: number;
  /** Makes an empty store. */
  createStore(): Promise<ConformanceStore>;
}
