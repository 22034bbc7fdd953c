/** Tables for people: no borders, so that they can be cut with other tools as well. */

import { styleText } from "node:util";
import type { Session } from "./session.ts";

/** One column. */
export interface Column {
  readonly title: string;
  /** Where the cells stand; numbers stand right. Default `left`. */
  readonly align?: "left" | "right";
}

type Style = "bold" | "dim" | "green" | "yellow" | "red";

/** Text in a colour or weight, where colours are wanted. */
export function styled(session: Pick<Session, "colours">, style: Style, text: string): string {
  return session.colours ? styleText(style, text) : text;
}

/** The lines of a table. Cells must have been made {@link visible} before. */
export async function tableLines(
  session: Pick<Session, "colours">,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): Promise<string[]> {
  const { default: Table } = await import("cli-table3");
  const none = {
    top: "",
    "top-mid": "",
    "top-left": "",
    "top-right": "",
    bottom: "",
    "bottom-mid": "",
    "bottom-left": "",
    "bottom-right": "",
  };
  const table = new Table({
    head: columns.map((column) => styled(session, "bold", column.title)),
    colAligns: columns.map((column) => column.align ?? "left"),
    chars: { ...none, left: "", "left-mid": "", mid: "", "mid-mid": "", right: "", "right-mid": "", middle: "  " },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
  });
  for (const row of rows) table.push([...row]);
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd());
}

/** Writes a table. */
export async function writeTable(session: Session, columns: readonly Column[], rows: readonly (readonly string[])[]): Promise<void> {
  for (const line of await tableLines(session, columns, rows)) await session.output.line(line);
}
