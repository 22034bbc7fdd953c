/**
 * Receipts: whole numbers in base 36, joined by hyphens. Number.prototype.toString(36) takes half a microsecond above 2^31, and a
 * template of its results is a string of pieces that its first use joins anew: together more than all else that a delivery costs in
 * memory. Here the digits are written into an array of character codes, of which one plain string is made.
 */

const BASE = 36;
const DIGITS = Uint8Array.from("0123456789abcdefghijklmnopqrstuvwxyz", (digit) => digit.charCodeAt(0));
const HYPHEN = 45;
/** From here on a number does not fit into the 32 bits that integer division is fast for, and is divided into parts of so many digits. */
const WIDE = 2 ** 31;
const HALF_DIGITS = 5;
const HALF = BASE ** HALF_DIGITS;
/** The arrays of character codes by length; they are made once, since a step needs one for no longer than itself. */
const arrays: number[][] = [];

/** How many digits a whole number has in base 36. */
function digitCount(value: number): number {
  let count = 1;
  let rest = value;
  if (rest >= HALF) {
    rest = Math.floor(rest / HALF);
    count += HALF_DIGITS;
  }
  for (let power = BASE; rest >= power; power *= BASE) count += 1;
  return count;
}

/** Writes the digits of a whole number so that they end before `end`. */
function writeDigits(value: number, codes: number[], end: number): void {
  let index = end;
  let wide = value;
  while (wide >= WIDE) {
    const above = Math.floor(wide / HALF);
    let rest = (wide - above * HALF) | 0;
    for (const start = index - HALF_DIGITS; index > start; ) {
      const next = (rest / BASE) | 0;
      index -= 1;
      codes[index] = DIGITS[rest - next * BASE] as number;
      rest = next;
    }
    wide = above;
  }
  let rest = wide | 0;
  for (;;) {
    const above = (rest / BASE) | 0;
    index -= 1;
    codes[index] = DIGITS[rest - above * BASE] as number;
    if (above === 0) return;
    rest = above;
  }
}

function codesOf(length: number): number[] {
  let codes = arrays[length];
  if (codes === undefined) {
    codes = new Array<number>(length).fill(0);
    arrays[length] = codes;
  }
  return codes;
}

function textOf(codes: number[]): string {
  return String.fromCharCode.apply(undefined, codes);
}

/** Numbers of two digits, leading zeros included. */
const PAIRS: readonly string[] = Array.from({ length: BASE * BASE }, (_, value) => value.toString(BASE).padStart(2, "0"));

/** Makes texts of one beginning and a number that mostly is near the one before, as places are: they differ in the last two digits. */
export class NumberedTexts {
  readonly #beginning: string;
  #above = -1;
  #text = "";

  constructor(beginning: string) {
    this.#beginning = beginning;
  }

  /** The beginning and a whole number, from 0 to 2^53 - 1, in base 36. */
  text(value: number): string {
    if (value < PAIRS.length) return this.#beginning + value.toString(BASE);
    const above = Math.floor(value / PAIRS.length);
    if (above !== this.#above) {
      this.#above = above;
      this.#text = this.#beginning + above.toString(BASE);
    }
    return this.#text + PAIRS[value - above * PAIRS.length];
  }
}

/** `letter-first-second-third`, the numbers (whole, from 0 to 2^53 - 1) in base 36; `letter` is one ASCII character. */
export function joinBase36(letter: string, first: number, second: number, third: number): string {
  const firstEnd = 2 + digitCount(first);
  const secondEnd = firstEnd + 1 + digitCount(second);
  const length = secondEnd + 1 + digitCount(third);
  const codes = codesOf(length);
  codes[0] = letter.charCodeAt(0);
  codes[1] = HYPHEN;
  writeDigits(first, codes, firstEnd);
  codes[firstEnd] = HYPHEN;
  writeDigits(second, codes, secondEnd);
  codes[secondEnd] = HYPHEN;
  writeDigits(third, codes, length);
  return textOf(codes);
}
