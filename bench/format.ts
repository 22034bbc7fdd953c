/** Figures in few characters. */

import type { Unit } from "./results.ts";

/** What a unit is called. */
export const UNITS: Readonly<Record<Unit, string>> = {
  "/s": "per second",
  us: "us",
  ms: "ms",
  bytes: "bytes",
  ratio: "ratio",
  errors: "count",
  "%": "%",
};

/** The number of a figure in few characters. */
export function formatValue(value: number, unit: Unit): string {
  if (Number.isNaN(value)) return "-";
  if (unit === "bytes" && value >= 1_000_000) return `${(value / 1_000_000).toFixed(1)}M`;
  if (unit === "bytes" || unit === "errors") return Math.round(value).toLocaleString("en");
  if (unit === "ratio" || unit === "%") return value.toFixed(2);
  if (value >= 1_000_000) return `${(value / 1_000_000).toFixed(2)}M`;
  if (value >= 10_000) return `${(value / 1_000).toFixed(1)}k`;
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 10 ? 1 : 2);
}

/** How many times its base something is. */
export function formatRatio(ratio: number): string {
  if (!Number.isFinite(ratio)) return "-";
  if (ratio < 0.1) return String(Number(ratio.toPrecision(2)));
  return ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2);
}
