/** One possible past of a store under test: the state of the model after it, and the names that answers have shown. */

import { isQueueFSError } from "../../src/core/errors.ts";
import { ANY, type ModelMark, type ModelStore } from "../../src/testing/index.ts";
import type { Operation } from "./operations.ts";

/** What came of a call: an answer, or a refusal by code. */
export type Outcome = { readonly value: unknown } | { readonly refusal: string };

const TIME_KEYS: ReadonlySet<string> = new Set(["enqueuedAtMs", "diedAtMs", "createdAtMs"]);
/** Which message is the oldest, the first in order or the one of the earliest date, is open once the wall clock was set back. */
const AGE_KEYS: ReadonlySet<string> = new Set(["oldestPendingMs", "oldestProcessingMs"]);
const PLACEHOLDER = /^\?[mr]\d+$/;

/** One possible past. */
export class World {
  readonly model: ModelStore;
  /** Marks that were made, by the index of the operation that made them. */
  readonly marks: Map<number, ModelMark>;
  /** What operations that have happened here will answer, until their answers come. */
  readonly answers: Map<number, Outcome>;
  readonly #toReal: Map<string, string>;
  readonly #toModel: Map<string, string>;

  constructor(
    model: ModelStore,
    marks: ReadonlyMap<number, ModelMark> = new Map(),
    answers: ReadonlyMap<number, Outcome> = new Map(),
    toReal: ReadonlyMap<string, string> = new Map(),
    toModel: ReadonlyMap<string, string> = new Map(),
  ) {
    this.model = model;
    this.marks = new Map(marks);
    this.answers = new Map(answers);
    this.#toReal = new Map(toReal);
    this.#toModel = new Map(toModel);
  }

  /** The same past, to go on from by itself. */
  copy(): World {
    return new World(this.model.copy(), this.marks, this.answers, this.#toReal, this.#toModel);
  }

  /** The model's name for a name that the store has shown; a name that nobody has made here stays what it is. */
  modelName(real: string): string {
    return this.#toModel.get(real) ?? real;
  }

  /** Lets an operation happen now. */
  perform(operation: Operation): void {
    try {
      this.answers.set(operation.index, { value: operation.model(this) });
    } catch (error) {
      if (!isQueueFSError(error)) throw error;
      this.answers.set(operation.index, { refusal: error.code });
    }
  }

  /** Whether an answer of the store is the one expected here; learns the names that it shows. @param exactTimes whether times must be the model's */
  accepts(expected: Outcome, actual: Outcome, exactTimes: boolean): boolean {
    if ("refusal" in expected || "refusal" in actual)
      return "refusal" in expected && "refusal" in actual && expected.refusal === actual.refusal;
    return this.#match(expected.value, actual.value, exactTimes);
  }

  /** Equal for two pasts that cannot be told apart any more. */
  key(): string {
    return JSON.stringify([this.model, [...this.answers], [...this.marks]], (_key, value: unknown) => {
      if (typeof value === "symbol") return "any";
      return typeof value === "string" ? (this.#toReal.get(value) ?? value) : value;
    });
  }

  #match(expected: unknown, actual: unknown, exactTimes: boolean): boolean {
    if (expected === ANY) return actual !== undefined;
    if (typeof expected === "string" && PLACEHOLDER.test(expected)) return this.#matchName(expected, actual);
    if (Array.isArray(expected)) {
      return (
        Array.isArray(actual) &&
        actual.length === expected.length &&
        expected.every((item, index) => this.#match(item, actual[index], exactTimes))
      );
    }
    if (typeof expected !== "object" || expected === null) return expected === actual;
    if (typeof actual !== "object" || actual === null) return false;
    const keys = Object.keys(expected);
    if (Object.keys(actual).length !== keys.length) return false;
    const [wanted, given] = [expected as Record<string, unknown>, actual as Record<string, unknown>];
    return keys.every((key) =>
      AGE_KEYS.has(key) || (TIME_KEYS.has(key) && !exactTimes)
        ? typeof given[key] === "number"
        : this.#match(wanted[key], given[key], exactTimes),
    );
  }

  #matchName(expected: string, actual: unknown): boolean {
    const known = this.#toReal.get(expected);
    if (known !== undefined) return known === actual;
    // A name that the store makes must be new.
    if (typeof actual !== "string" || !actual.startsWith(`${expected[1]}-`) || this.#toModel.has(actual)) return false;
    this.#toReal.set(expected, actual);
    this.#toModel.set(actual, expected);
    return true;
  }
}
