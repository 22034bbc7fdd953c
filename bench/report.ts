/** The results as people read them: a table per suite, each figure with its ratio, and the aims. As text, and as Markdown. */

import type { Verdict } from "./aims.ts";
import { formatRatio, formatValue, UNITS } from "./format.ts";
import type { Machine } from "./machine.ts";
import { median, type Results, type Suite, type Unit } from "./results.ts";
import type { Settings } from "./settings.ts";

/** A whole run. */
export interface Report {
  /** The day, in UTC. */
  readonly date: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Settings;
  /** How long each part of the run took. */
  readonly seconds: Readonly<Record<string, number>>;
  readonly results: Results;
  readonly verdicts: readonly Verdict[];
}

/** A table of texts; the first row is its head, the first column its side. */
type Cells = readonly (readonly string[])[];

function cellsOf(results: Results, key: string, suite: Suite): Cells {
  const measures = Object.entries(suite.measures);
  const contenders = results.contenders(key);
  const cell = (measure: string, unit: Unit, contender: string): string => {
    const values = results.rounds(key, measure, contender);
    if (values.length === 0) return "";
    return `${formatValue(median(values), unit)} (${formatRatio(results.relation(key, measure, contender))})`;
  };
  const side = measures.map(([measure, { unit }]) => (measure.includes("bytes") ? measure : `${measure}, ${UNITS[unit]}`));
  if (measures.length <= contenders.length) {
    return [
      ["", ...side],
      ...contenders.map((contender) => [contender, ...measures.map(([measure, { unit }]) => cell(measure, unit, contender))]),
    ];
  }
  return [
    ["", ...contenders],
    ...measures.map(([measure, { unit }], index) => [side[index] as string, ...contenders.map((one) => cell(measure, unit, one))]),
  ];
}

/** What the figures in brackets are in relation to. */
function relationOf({ base, baseMeasure }: Suite): string {
  return baseMeasure === undefined ? `in relation to ${base}` : `in relation to "${baseMeasure}" of the same column or row`;
}

function verdictCells(verdicts: readonly Verdict[]): Cells {
  const number = (value: number): string => (value >= 1_000 ? Math.round(value).toLocaleString("en") : formatRatio(value));
  const rows = verdicts.map(({ aim, bound, measured, isMet }) => [aim, bound, number(measured), isMet ? "met" : "MISSED"]);
  return [["aim", "should be", "is", ""], ...rows];
}

/** A table whose columns are aligned, for a terminal. */
function textTable(cells: Cells): string {
  const columns = cells[0] ?? [];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function markdownTable(cells: Cells): string {
  const [head = [], ...rows] = cells;
  const line = (row: readonly string[]): string => `| ${row.join(" | ")} |`;
  return [line(head), `| --- |${" ---: |".repeat(head.length - 1)}`, ...rows.map(line)].join("\n");
}

function headOf({ date, machine, versions, settings }: Report): string[] {
  return [
    `${date}, ${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB of memory, ${machine.platform}`,
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", "),
    `${settings.rounds} rounds in which the contenders take turns, ${settings.windowMs} ms for each figure; the medians, in brackets the median of the ratios to the base`,
    ...(machine.loadAtBegin > machine.cores / 2
      ? [`the machine was busy with other things when the run began (load ${machine.loadAtBegin}): these figures are noisy`]
      : []),
  ];
}

/** The report as text for a terminal. */
export function textReport(report: Report): string {
  const { results, verdicts } = report;
  const suites = Object.entries(results.suites).map(
    ([key, suite]) => `${suite.title}\n(in brackets: ${relationOf(suite)})\n${textTable(cellsOf(results, key, suite))}\n`,
  );
  const skipped = results.skipped.map((text) => `left out: ${text}`);
  const aims = verdicts.length === 0 ? [] : [`Aims\n${textTable(verdictCells(verdicts))}`];
  return ["", ...headOf(report), "", ...suites, ...skipped, ...aims].join("\n");
}

/** The report as the page docs/benchmarks.md. @param plots the suites that have a picture, `benchmarks/SUITE.svg` */
export function markdownReport(report: Report, plots: readonly string[]): string {
  const { results, verdicts } = report;
  const suites = Object.entries(results.suites).map(([key, suite]) =>
    [
      `## ${suite.title}`,
      `${suite.note} In brackets: ${relationOf(suite)}.`,
      ...(plots.includes(key) ? [`![${suite.title}](benchmarks/${key}.svg)`] : []),
      markdownTable(cellsOf(results, key, suite)),
    ].join("\n\n"),
  );
  const skipped = results.skipped.length === 0 ? [] : [`Left out: ${results.skipped.join("; ")}.`];
  return `${[
    "# Benchmarks",
    "Written by `npm run bench -- --write`; `npm run bench -- --quick` takes about a minute. The peers are installed with `npm ci --prefix bench/peers`. Absolute figures are those of one machine on one day; what counts is the ratio of figures of the same run.",
    headOf(report)
      .map((line) => `- ${line}`)
      .join("\n"),
    ...skipped,
    `## Aims\n\n${markdownTable(verdictCells(verdicts))}`,
    ...suites,
  ].join("\n\n")}\n`;
}

/** The report as JSON: every round of every figure. */
export function jsonReport({ date, machine, versions, settings, seconds, results, verdicts }: Report): string {
  return `${JSON.stringify({ date, machine, versions, settings, seconds, skipped: results.skipped, suites: results.suites, aims: verdicts }, undefined, 2)}\n`;
}
