/**
 * A small writer of SVG for charts. No background, and colours of middle lightness: they can be read on white and on black. Texts stay texts.
 */

/** Colour of texts and axes. */
const INK = "#7d7d7d";
/** Colours of bars and lines, in the order of the table. */
const COLOURS = ["#2f86d1", "#8c8c8c", "#9a6bd0", "#d9772b", "#2f9e63", "#d1567e", "#a08a1f", "#3aa0a0"] as const;

/** The colour of the contender at a place in the table. */
export function colourOf(index: number): string {
  return COLOURS[index % COLOURS.length] as string;
}

/** Makes a text fit for XML. */
export function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** How a text is set. */
export interface TextStyle {
  readonly anchor?: "start" | "middle" | "end";
  readonly size?: number;
  readonly isBold?: boolean;
  /** Turned to run upwards. */
  readonly isUpright?: boolean;
}

/** Rounded to tenths: more cannot be seen. */
function tenth(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** The parts of one picture, from top left. */
export class Picture {
  readonly #parts: string[] = [];

  /** A text at its base line. */
  text(x: number, y: number, text: string, { anchor = "start", size = 12, isBold = false, isUpright = false }: TextStyle = {}): void {
    const weight = isBold ? ' font-weight="600"' : "";
    const turn = isUpright ? ` transform="rotate(-90 ${tenth(x)} ${tenth(y)})"` : "";
    this.#parts.push(
      `<text x="${tenth(x)}" y="${tenth(y)}" text-anchor="${anchor}" font-size="${size}"${weight}${turn}>${escapeXml(text)}</text>`,
    );
  }

  /** A filled box. */
  box(x: number, y: number, width: number, height: number, colour: string): void {
    this.#parts.push(`<rect x="${tenth(x)}" y="${tenth(y)}" width="${tenth(width)}" height="${tenth(height)}" rx="2" fill="${colour}"/>`);
  }

  /** A thin line of the grid. */
  rule(x1: number, y1: number, x2: number, y2: number): void {
    this.#parts.push(
      `<line x1="${tenth(x1)}" y1="${tenth(y1)}" x2="${tenth(x2)}" y2="${tenth(y2)}" stroke="${INK}" stroke-opacity="0.3" stroke-width="1"/>`,
    );
  }

  /** A line through points, each with a dot. */
  path(points: readonly (readonly [number, number])[], colour: string): void {
    const corners = points.map(([x, y]) => `${tenth(x)},${tenth(y)}`).join(" ");
    this.#parts.push(`<polyline points="${corners}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const [x, y] of points) this.#parts.push(`<circle cx="${tenth(x)}" cy="${tenth(y)}" r="3" fill="${colour}"/>`);
  }

  /** The picture as a file. @param title what it shows, for those who do not see it */
  write(width: number, height: number, title: string): string {
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img"`,
      `  font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif" fill="${INK}">`,
      `<title>${escapeXml(title)}</title>`,
      ...this.#parts,
      "</svg>",
      "",
    ].join("\n");
  }
}

/** An axis: where a value stands, and the values that are named. */
export interface Scale {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

/** Fewest powers of ten that an axis spans for only these to be named. */
const MANY_DECADES = 3;

/** A logarithmic axis that holds all values. @param from the place of its lower end, and `to` that of its upper one */
export function logScale(values: readonly number[], from: number, to: number): Scale {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive))));
  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  const ticks =
    high - low > MANY_DECADES
      ? decades
      : decades.flatMap((decade, index) => (index === high - low ? [decade] : [decade, 2 * decade, 5 * decade]));
  return { place: (value) => from + ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * (to - from), ticks };
}

/** A linear axis from zero that holds all values. */
export function linearScale(values: readonly number[], from: number, to: number): Scale {
  const most = Math.max(...values, Number.MIN_VALUE);
  const decade = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2].map((part) => part * decade).find((size) => most / size <= 6) as number;
  const high = Math.ceil(most / step) * step;
  const ticks = Array.from({ length: Math.round(high / step) + 1 }, (_, index) => index * step);
  return { place: (value) => from + (value / high) * (to - from), ticks };
}
