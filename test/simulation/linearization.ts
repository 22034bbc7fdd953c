/**
 * Follows every order in which the calls of concurrent clients may have happened, each in one step of the model somewhere between its begin
 * and its answer, and fails when an answer fits none of them. All of S1 to S12 and C1 to C4 that is said of one store follows from that: the model loses,
 * doubles and invents nothing, and its status is one moment.
 */

import type { ModelStore } from "../../src/testing/index.ts";
import type { Operation } from "./operations.ts";
import { type Outcome, World } from "./world.ts";

/** Possible pasts beyond which a run is given up as undecided: it has too much in the air at once. */
const MOST_WORLDS = 3_000;

/** Thrown when a run has too many possible pasts to be judged; not a failure of the store. */
export class Undecided extends Error {}

/** The possible pasts of one store. */
export class Linearization {
  readonly #exactTimes: boolean;
  #worlds: World[];
  /** Operations that have begun and whose answers have not come. */
  readonly #open = new Set<Operation>();

  /** Whether it is said of each operation when it happens, so that there is nothing to search. */
  readonly #isTold: boolean;

  /**
   * @param exactTimes whether the store under test has the clock of the model
   * @param isTold whether {@link happens} is called for every operation that happens
   */
  constructor(model: ModelStore, exactTimes: boolean, isTold: boolean) {
    this.#exactTimes = exactTimes;
    this.#isTold = isTold;
    this.#worlds = [new World(model)];
  }

  /** How many pasts are possible. */
  get worlds(): number {
    return this.#worlds.length;
  }

  /** Says that an operation has begun. */
  begin(operation: Operation): void {
    this.#open.add(operation);
  }

  /** Says that an operation happens now. */
  happens(operation: Operation): void {
    this.#keep(this.#worlds.flatMap((world) => [...this.#reach(world, operation, [])]));
  }

  /** Says what an operation answered. @throws Error when that fits no possible past */
  answer(operation: Operation, outcome: Outcome): void {
    const reached = this.#worlds.flatMap((world) => [...this.#reach(world, operation, [])]);
    const expected = reached.map((world) => world.answers.get(operation.index) as Outcome);
    const fitting = reached.filter((world, index) => {
      world.answers.delete(operation.index);
      const said = expected[index] as Outcome;
      return (
        world.accepts(said, outcome, this.#exactTimes) ||
        (operation.stillHeld !== undefined && world.accepts(operation.stillHeld(world, said), outcome, this.#exactTimes))
      );
    });
    if (fitting.length === 0) {
      const possible = [...new Set(expected.map(show))].slice(0, 5).join("\n  or ");
      throw new Error(`${operation.text}: no possible past answers\n  ${show(outcome)}\n  but ${possible}`);
    }
    this.#open.delete(operation);
    this.#keep(fitting);
  }

  /** Says that an operation did not happen, and never will. @throws Error when other answers have shown that it did */
  didNotHappen(operation: Operation): void {
    this.#open.delete(operation);
    const left = this.#worlds.filter((world) => !world.answers.has(operation.index));
    if (left.length === 0) throw new Error(`${operation.text}: said not to have happened, and yet it has`);
    this.#keep(left);
  }

  /** Says that nobody knows whether an operation has happened, but that it does not happen any more. */
  isUnknown(operation: Operation): void {
    const without = this.#worlds.filter((world) => !world.answers.has(operation.index));
    const reached = this.#worlds
      .filter((world) => !this.#isTold || world.answers.has(operation.index))
      .flatMap((world) => [...this.#reach(world, operation, [])]);
    for (const world of reached) world.answers.delete(operation.index);
    this.#open.delete(operation);
    this.#keep([...without, ...reached]);
  }

  /** To be called before the clock moves: what has begun may happen before that, or after. */
  timePasses(): void {
    if (this.#isTold) return;
    for (const operation of this.#open) {
      this.#keep(
        this.#worlds.flatMap((world) => [world, ...(world.answers.has(operation.index) ? [] : this.#reach(world, operation, []))]),
      );
    }
  }

  /** All worlds that come from this one by letting the operation happen, after any others that matter for it. */
  *#reach(world: World, operation: Operation, after: readonly Operation[]): Generator<World> {
    if (world.answers.has(operation.index)) {
      yield world;
      const undone = withoutAnswer(world, operation);
      if (undone !== undefined) yield* this.#reach(undone, operation, after);
      return;
    }
    const waiting = [...after, operation];
    for (const other of this.#isTold ? [] : this.#open) {
      if (waiting.includes(other) || !operation.dependsOn(other)) continue;
      const before = world.answers.has(other.index) ? withoutAnswer(world, other) : world;
      if (before === undefined) continue;
      for (const next of this.#reach(before, other, waiting)) yield* this.#reach(next, operation, after);
    }
    const next = world.copy();
    next.perform(operation);
    yield next;
    // A remembered answer may be given without a look at the queue, or after one that recovers ended leases: both are allowed.
    if (operation.mayRecoverBefore !== undefined) {
      const recovered = world.copy();
      operation.mayRecoverBefore(recovered);
      recovered.perform(operation);
      yield recovered;
    }
  }

  #keep(worlds: readonly World[]): void {
    if (worlds.length === 1) {
      this.#worlds = [...worlds];
      return;
    }
    this.#worlds = [...new Map(worlds.map((world) => [world.key(), world])).values()];
    if (this.#worlds.length > MOST_WORLDS) throw new Undecided(`${this.#worlds.length} possible pasts`);
  }
}

/**
 * The same past, in which a call that had to be sent again gets another answer than the one it had, of which nothing is held any more (it was
 * cleared, or its leases have ended): to say "empty" would be wrong, so it is made anew. Nothing where the answer stands.
 */
function withoutAnswer(world: World, operation: Operation): World | undefined {
  const said = world.answers.get(operation.index);
  if (operation.stillHeld === undefined || said === undefined || !holdsAny(said)) return undefined;
  if (holdsAny(operation.stillHeld(world, said))) return undefined;
  const undone = world.copy();
  undone.answers.delete(operation.index);
  return undone;
}

function holdsAny(outcome: Outcome): boolean {
  return "value" in outcome && Array.isArray(outcome.value) && outcome.value.length > 0;
}

function show(outcome: Outcome): string {
  return JSON.stringify(outcome, (_key, value: unknown) => (typeof value === "symbol" ? "(any)" : value));
}
