/** What was measured: for each suite, measure and contender one value per round. Ratios are taken within a round, then the median of them. */

/** What a value is. */
export type Unit = "/s" | "us" | "ms" | "bytes" | "ratio" | "errors" | "%";

/** The values of one contender, one per round. */
export interface Cell {
  readonly rounds: number[];
}

/** One measure. */
export interface Measure {
  readonly unit: Unit;
  readonly contenders: Record<string, Cell>;
}

/** A picture of a suite. */
export type Plot =
  /** Bars: for each of these measures one per contender, from zero. */
  | { readonly kind: "bars"; readonly measures: readonly string[] }
  /** A line for each contender, through its measures, which stand at these numbers of the horizontal axis. */
  | {
      readonly kind: "lines";
      readonly x: string;
      readonly y: string;
      readonly at: Readonly<Record<string, number>>;
      /** The other contenders are not drawn, if there are any. */
      readonly contenders?: readonly string[];
      /** Whether the horizontal axis is linear, instead of logarithmic. */
      readonly isLinear?: boolean;
    };

/** One table. */
export interface Suite {
  readonly title: string;
  /** The contender that the others are set in relation to; unless it is the measure. */
  readonly base: string;
  /** The measure that a contender's other ones are set in relation to. */
  readonly baseMeasure?: string;
  /** How it is drawn, if it is. */
  readonly plot?: Plot;
  /** The order of the contenders in the table; those not named follow. */
  readonly order: readonly string[];
  /** How it was measured, in a sentence or two. */
  readonly note: string;
  readonly measures: Record<string, Measure>;
}

/** The middle value. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which the given part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  if (sorted.length === 0) return Number.NaN;
  const position = (sorted.length - 1) * part;
  const below = sorted[Math.floor(position)] as number;
  const above = sorted[Math.ceil(position)] as number;
  return below + (above - below) * (position - Math.floor(position));
}

/** All suites of one run. */
export class Results {
  readonly suites: Record<string, Suite> = {};
  /** What did not take part, and why. */
  readonly skipped: string[] = [];

  /** Says what does not take part, once. */
  skip(reasons: readonly string[]): void {
    for (const reason of reasons) if (!this.skipped.includes(reason)) this.skipped.push(reason);
  }

  /** Begins a suite. */
  begin(suite: string, about: Omit<Suite, "measures">): void {
    this.suites[suite] = { ...about, measures: {} };
  }

  /** Keeps the value of one round. */
  record(suite: string, measure: string, contender: string, unit: Unit, value: number): void {
    const measures = this.suites[suite]?.measures;
    if (measures === undefined) throw new Error(`suite ${suite} was not begun`);
    measures[measure] ??= { unit, contenders: {} };
    const { contenders } = measures[measure];
    contenders[contender] ??= { rounds: [] };
    contenders[contender].rounds.push(value);
  }

  /** The values of the rounds; empty when it was not measured. */
  rounds(suite: string, measure: string, contender: string): readonly number[] {
    return this.suites[suite]?.measures[measure]?.contenders[contender]?.rounds ?? [];
  }

  /** The median of the rounds; NaN when it was not measured. */
  median(suite: string, measure: string, contender: string): number {
    return median(this.rounds(suite, measure, contender));
  }

  /** How many times the second value the first is, by the median of the ratios of each round; NaN when one was not measured. */
  ratio(suite: string, measure: string, contender: string, other: string, otherMeasure: string = measure): number {
    const others = this.rounds(suite, otherMeasure, other);
    const ratios = this.rounds(suite, measure, contender).flatMap((value, round) => {
      const against = others[round];
      return against === undefined ? [] : [value / against];
    });
    return median(ratios);
  }

  /** How many times its base a figure is: the base contender in the same measure, or the base measure of the same contender. */
  relation(suite: string, measure: string, contender: string): number {
    const { base, baseMeasure } = this.suites[suite] as Suite;
    return baseMeasure === undefined
      ? this.ratio(suite, measure, contender, base)
      : this.ratio(suite, measure, contender, contender, baseMeasure);
  }

  /** The contenders of a suite that were measured, in the order of its table. */
  contenders(suite: string): string[] {
    const { order, measures } = this.suites[suite] as Suite;
    const measured = new Set(Object.values(measures).flatMap(({ contenders }) => Object.keys(contenders)));
    return [...order.filter((name) => measured.has(name)), ...[...measured].filter((name) => !order.includes(name))];
  }
}
