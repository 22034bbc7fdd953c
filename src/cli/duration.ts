/** Durations as people write them: a number and a unit, or several of them (`500ms`, `30s`, `1h30m`). */

import { QueueFSError, quote } from "../core/errors.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y;

/**
 * The milliseconds of a duration, rounded to a whole number. A number without a unit is refused, except 0, since guessing between
 * seconds and milliseconds would be wrong half of the time.
 *
 * @throws QueueFSError `invalid-argument`
 */
export function parseDuration(text: string): number {
  const trimmed = text.trim();
  if (trimmed === "0") return 0;
  let milliseconds = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < trimmed.length || trimmed === "") {
    const part = PART.exec(trimmed);
    if (part === null)
      throw new QueueFSError("invalid-argument", `a duration is a number and a unit (500ms, 30s, 15m, 2h, 1d, 1h30m), got ${quote(text)}`);
    milliseconds += Number(part[1]) * (UNIT_MS[part[2] as string] as number);
  }
  return Math.round(milliseconds);
}

/** A duration for people, in the two greatest units that say something: `350ms`, `4s`, `1h30m`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))}ms`;
  let rest = Math.round(milliseconds / 1_000) * 1_000;
  const parts: string[] = [];
  for (const unit of ["d", "h", "m", "s"]) {
    const size = UNIT_MS[unit] as number;
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
  }
  return parts.join("");
}
