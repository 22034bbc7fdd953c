/** Whole numbers as base 36 text, the digits of ids and receipts. */

// Number.prototype.toString(36) takes half a microsecond above 2^31, several times what the rest of a delivery costs in memory.
// Two tables of two-digit texts, one without and one with leading zeros, give the same text in a fraction of that.
const PAIR = 36 * 36;
const plain: string[] = [];
const padded: string[] = [];
for (let value = 0; value < PAIR; value += 1) {
  plain.push(value.toString(36));
  padded.push(value.toString(36).padStart(2, "0"));
}

/** The text that `value.toString(36)` gives, for a whole number from 0 to 2^53 - 1. */
export function toBase36(value: number): string {
  if (value < PAIR) return plain[value] as string;
  const above = Math.floor(value / (PAIR * PAIR));
  const below = value - above * (PAIR * PAIR);
  const high = (below / PAIR) | 0;
  const low = below - high * PAIR;
  if (above === 0) return (plain[high] as string) + (padded[low] as string);
  return toBase36(above) + (padded[high] as string) + (padded[low] as string);
}
