/** Answers as the model expects them, and how an actual answer is held against one. */

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

/** Stands for any value but `undefined`, where the promises leave the value open. */
export const ANY: unique symbol = Symbol("any value");

/** Keys whose values are times. */
const TIME_KEYS: ReadonlySet<string> = new Set(["enqueuedAtMs", "diedAtMs", "createdAtMs", "oldestPendingMs", "oldestProcessingMs"]);

/** Marks the names that the model gives to what the store will name itself: message ids and receipts. */
const PLACEHOLDER = /^\?[mr]\d+$/;

/**
 * Which name of the store belongs to which name of the model. The model cannot know the ids and receipts that a store makes, so it names them
 * `?m1`, `?r1` and so on; the first answer that shows one tells the store's name, which must be new, and from then on it must stay.
 */
export class Correspondence {
  readonly #toReal = new Map<string, string>();
  readonly #toModel = new Map<string, string>();
  readonly #exactTimes: boolean;

  /** @param exactTimes whether times must be the model's; otherwise they must only be numbers */
  constructor(exactTimes: boolean) {
    this.#exactTimes = exactTimes;
  }

  /** The store's name for a name of the model; a name that is not the model's invention is itself. */
  real(name: string): string {
    return this.#toReal.get(name) ?? name;
  }

  /** Fails unless `actual` is what the model expects. @param where leads to the value, for the message */
  match(expected: unknown, actual: unknown, where: string): void {
    if (expected === ANY) {
      assert.notEqual(actual, undefined, `${where}: there is a value`);
    } else if (typeof expected === "string" && PLACEHOLDER.test(expected)) {
      this.#matchName(expected, actual, where);
    } else if (Array.isArray(expected)) {
      assert.ok(Array.isArray(actual), `${where}: an array, not ${JSON.stringify(actual)}`);
      assert.equal(actual.length, expected.length, `${where}: ${expected.length} items, not ${JSON.stringify(actual)}`);
      for (const [index, item] of expected.entries()) this.match(item, actual[index], `${where}[${index}]`);
    } else if (typeof expected === "object" && expected !== null) {
      this.#matchObject(expected as Record<string, unknown>, actual, where);
    } else {
      assert.ok(isDeepStrictEqual(actual, expected), `${where}: ${JSON.stringify(expected)}, not ${JSON.stringify(actual)}`);
    }
  }

  /** Fails unless `actual` is that span until something is due. Where time is real, it may have become shorter, but not run out. */
  matchSpan(expectedMs: number | undefined, actual: unknown, where: string): void {
    if (this.#exactTimes || !expectedMs) this.match(expectedMs, actual, where);
    else
      assert.ok(typeof actual === "number" && actual > 0 && actual <= expectedMs, `${where}: at most ${expectedMs}, not ${String(actual)}`);
  }

  #matchObject(expected: Record<string, unknown>, actual: unknown, where: string): void {
    assert.ok(typeof actual === "object" && actual !== null, `${where}: an object, not ${JSON.stringify(actual)}`);
    const given = actual as Record<string, unknown>;
    assert.deepEqual(Object.keys(given).toSorted(), Object.keys(expected).toSorted(), `${where}: these keys`);
    for (const [key, value] of Object.entries(expected)) {
      if (TIME_KEYS.has(key) && !this.#exactTimes) assert.equal(typeof given[key], "number", `${where}.${key}: a number`);
      else this.match(value, given[key], `${where}.${key}`);
    }
  }

  #matchName(expected: string, actual: unknown, where: string): void {
    const known = this.#toReal.get(expected);
    if (known !== undefined) {
      assert.equal(actual, known, `${where}: the name it had before`);
      return;
    }
    assert.ok(typeof actual === "string" && actual.startsWith(`${expected[1]}-`), `${where}: a made name, not ${JSON.stringify(actual)}`);
    assert.equal(this.#toModel.get(actual), undefined, `${where}: ${actual} is a new name`);
    this.#toReal.set(expected, actual);
    this.#toModel.set(actual, expected);
  }
}
