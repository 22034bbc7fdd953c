/** The pictures of the page of results: bars with their ratios for tables of contenders, lines for sweeps. */

import { formatRatio, formatValue, UNITS } from "./format.ts";
import { median, type Plot, type Results, type Suite } from "./results.ts";
import { colourOf, linearScale, logScale, Picture, type Scale } from "./svg.ts";

const MIB = 1024 ** 2;
/** Measures of the pictures. */
const WIDTH = 860;
const LABEL_WIDTH = 170;
const VALUE_WIDTH = 150;
const BAR = 16;
const GROUP_GAP = 34;
const TOP = 64;
const PLOT_HEIGHT = 330;
const LEFT = 80;
const RIGHT = 290;
const BOTTOM = 56;
/** So many places of a linear axis are all named. */
const FEW = 6;
/** Names of an axis keep this distance. */
const TICK_GAP = 38;

/** Draws all suites that are to be drawn; answers with the text of a file by the name of a suite. */
export function drawPlots(results: Results, caption: string): Record<string, string> {
  const drawn: Record<string, string> = {};
  for (const [key, suite] of Object.entries(results.suites)) {
    const { plot } = suite;
    if (plot === undefined || Object.keys(suite.measures).length === 0) continue;
    drawn[key] = plot.kind === "bars" ? drawBars(results, key, suite, plot, caption) : drawLines(results, key, suite, plot, caption);
  }
  return drawn;
}

type Bars = Extract<Plot, { readonly kind: "bars" }>;
type Lines = Extract<Plot, { readonly kind: "lines" }>;

function drawHead(picture: Picture, suite: Suite, caption: string): void {
  picture.text(0, 18, suite.title, { size: 16, isBold: true });
  picture.text(0, 38, caption, { size: 11 });
}

function drawBars(results: Results, key: string, suite: Suite, { measures }: Bars, caption: string): string {
  const picture = new Picture();
  drawHead(picture, suite, `In brackets: in relation to ${suite.base}. Each group has its own scale, from zero. ${caption}`);
  const contenders = results.contenders(key);
  let y = TOP;
  for (const measure of measures) {
    const unit = suite.measures[measure]?.unit;
    if (unit === undefined) continue;
    const taking = contenders.filter((contender) => results.rounds(key, measure, contender).length > 0);
    const most = Math.max(...taking.map((contender) => results.median(key, measure, contender)));
    picture.text(0, y + 8, `${measure}, ${UNITS[unit]}`, { size: 13, isBold: true });
    y += BAR;
    for (const contender of taking) {
      const value = results.median(key, measure, contender);
      const width = Math.max(1, (value / most) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH));
      picture.text(LABEL_WIDTH - 8, y + BAR - 4, contender, { anchor: "end" });
      picture.box(
        LABEL_WIDTH,
        y + 2,
        width,
        BAR - 4,
        contender.startsWith("QueueFS") ? colourOf(0) : colourOf(contenders.indexOf(contender)),
      );
      const figure = `${formatValue(value, unit)} (${formatRatio(results.relation(key, measure, contender))})`;
      picture.text(LABEL_WIDTH + width + 6, y + BAR - 4, figure);
      y += BAR;
    }
    y += GROUP_GAP - BAR;
  }
  return picture.write(WIDTH, y, suite.title);
}

/** Zero has no place on a logarithmic axis: it stands before the first value that has. */
function placedAt(values: readonly number[]): (value: number) => number {
  const least = Math.min(...values.filter((value) => value > 0));
  return (value) => (value > 0 ? value : least / 4);
}

function drawLines(results: Results, key: string, suite: Suite, plot: Lines, caption: string): string {
  const picture = new Picture();
  drawHead(picture, suite, caption);
  const contenders = plot.contenders ?? results.contenders(key);
  const measures = Object.keys(plot.at).filter((measure) => suite.measures[measure] !== undefined);
  const at = (measure: string): number => plot.at[measure] as number;
  const placed = plot.isLinear === true ? (value: number): number => value : placedAt(measures.map(at));
  const lines = contenders.map((contender) => ({
    contender,
    points: measures
      .filter((measure) => results.rounds(key, measure, contender).length > 0)
      .map((measure) => ({ measure, x: placed(at(measure)), y: median(results.rounds(key, measure, contender)) })),
  }));
  const xs = measures.map((measure) => placed(at(measure)));
  const ys = lines.flatMap(({ points }) => points.map(({ y }) => y));
  const scaleOf = plot.isLinear === true ? linearScale : logScale;
  const bottom = TOP + PLOT_HEIGHT;
  const vertical = scaleOf(ys, bottom, TOP);
  const horizontal = plot.isLinear === true ? linearScale(xs, LEFT, WIDTH - RIGHT) : spread(xs, LEFT, WIDTH - RIGHT);
  const unit = suite.measures[measures[0] as string]?.unit ?? "ratio";
  for (const tick of vertical.ticks) {
    picture.rule(LEFT, vertical.place(tick), WIDTH - RIGHT, vertical.place(tick));
    picture.text(LEFT - 8, vertical.place(tick) + 4, unit === "bytes" ? `${shortNumber(tick / 1_000_000)} MB` : shortNumber(tick), {
      anchor: "end",
    });
  }
  let last = Number.NEGATIVE_INFINITY;
  for (const value of plot.isLinear === true && measures.length > FEW ? horizontal.ticks : measures.map(at)) {
    const x = horizontal.place(placed(value));
    if (x - last < TICK_GAP) continue;
    last = x;
    picture.rule(x, TOP, x, bottom);
    picture.text(x, bottom + 18, plot.x.startsWith("bytes") ? shortBytes(value) : shortNumber(value), { anchor: "middle" });
  }
  picture.text((LEFT + WIDTH - RIGHT) / 2, bottom + 40, plot.x, { anchor: "middle", size: 13 });
  picture.text(20, (TOP + bottom) / 2, plot.y, { anchor: "middle", size: 13, isUpright: true });
  for (const [index, { contender, points }] of lines.entries()) {
    picture.path(
      points.map(({ x, y }) => [horizontal.place(x), vertical.place(y)] as const),
      colourOf(index === 0 ? 0 : index + 2),
    );
    drawLegend(picture, index, contender, points.at(-1)?.measure, results, key, suite);
  }
  return picture.write(WIDTH, bottom + BOTTOM, suite.title);
}

/** Names a line, and says how many times its first value its last one is. */
function drawLegend(
  picture: Picture,
  index: number,
  contender: string,
  last: string | undefined,
  results: Results,
  key: string,
  suite: Suite,
): void {
  const x = WIDTH - RIGHT + 24;
  const y = TOP + 10 + index * 40;
  picture.box(x, y - 8, 14, 8, colourOf(index === 0 ? 0 : index + 2));
  picture.text(x + 22, y, contender, { isBold: true });
  if (last === undefined || suite.baseMeasure === undefined) return;
  picture.text(x + 22, y + 16, `${last}: ${formatRatio(results.relation(key, last, contender))} times that of ${suite.baseMeasure}`, {
    size: 11,
  });
}

/** A logarithmic axis from the first value to the last. */
function spread(values: readonly number[], from: number, to: number): Scale {
  const low = Math.log10(Math.min(...values));
  const width = Math.log10(Math.max(...values)) - low || 1;
  return { place: (value) => from + ((Math.log10(value) - low) / width) * (to - from), ticks: [] };
}

function shortBytes(value: number): string {
  return value >= MIB ? `${Math.round(value / MIB)} MiB` : value >= 1_024 ? `${Math.round(value / 1_024)} KiB` : `${value} B`;
}

function shortNumber(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toFixed(1))}M`;
  return value >= 1_000 ? `${Number((value / 1_000).toFixed(1))}k` : String(Number(value.toPrecision(2)));
}
