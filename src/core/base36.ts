/**
 * Receipts: whole numbers in base 36, joined by hyphens. Number.prototype.toString(36) takes half a microsecond above 2^31, and a
 * template of its results is a string of pieces that its first use joins anew: together more than all else that a delivery costs in
 * memory. Here the digits are written into an array of character codes, of which one plain string is made.
 */

const BASE = 36;
const DIGITS = Uint8Array.from("0123456789abcdefghijklmnopqrstuvwxyz", (digit) => digit.charCodeAt(0));
const HYPHEN = 45;
/** From here on a number does not fit into the 32 bits that integer division is fast for. */
const WIDE = 2 ** 31;
/** The arrays of character codes by length; they are made once, since a step needs one for no longer than itself. */
const arrays: number[][] = [];

/** How many digits a whole number has in base 36. */
function digitCount(value: number): number {
  let count = 1;
  for (let power = BASE; value >= power; power *= BASE) count += 1;
  return count;
}

/** Writes the digits of a whole number so that they end before `end`. */
function writeDigits(value: number, codes: number[], end: number): void {
  let index = end;
  let wide = value;
  while (wide >= WIDE) {
    const above = Math.floor(wide / BASE);
    index -= 1;
    codes[index] = DIGITS[wide - above * BASE] as number;
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
