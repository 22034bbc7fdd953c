/** Tables of messages. */

import type { Message } from "../core/message.ts";
import type { Session } from "./session.ts";
import { type Column, writeTable } from "./table.ts";
import { visible } from "./visible.ts";

/** Writes a table of messages. Where a task owns any of them, it has a column more, before the last. */
export async function writeMessageTable<Item extends Message>(
  session: Session,
  columns: readonly Column[],
  items: readonly Item[],
  row: (item: Item) => readonly string[],
): Promise<void> {
  if (items.length === 0) return;
  const withTask = items.some(({ task }) => task !== undefined);
  const widen = <Cell>(cells: readonly Cell[], more: Cell): readonly Cell[] => (withTask ? cells.toSpliced(-1, 0, more) : cells);
  await writeTable(
    session,
    widen<Column>(columns, { title: "TASK" }),
    items.map((item) => widen(row(item), visible(item.task ?? "-"))),
  );
}
