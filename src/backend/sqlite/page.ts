/** Pages of listings: bounded by number and by bytes, never an iterator left open (it would hold back the checkpoint). */

import { QueueFSError, quote } from "../../core/errors.ts";
import type { Page } from "../../core/message.ts";

/** Payload bytes of one page at most, unless its first entry alone has more: 8 MiB. */
export const PAGE_BYTES = 8 * 1024 * 1024;

/** Reads a cursor that is a number. @throws QueueFSError `invalid-argument` when it is not one that a listing gave */
export function numberCursor(after: string | undefined): number {
  if (after === undefined) return 0;
  const number = /^\d{1,16}$/.test(after) ? Number(after) : Number.NaN;
  if (!Number.isSafeInteger(number))
    throw new QueueFSError("invalid-argument", `after must be the next of an earlier page, got ${quote(after)}`);
  return number;
}

/** Takes rows until the page is full; a row beyond it says that there is a next page. */
export function pageOf<Row, Item>(
  rows: Iterable<Row>,
  limit: number,
  read: (row: Row) => { readonly cursor: string; readonly bytes: number; readonly item: Item },
): Page<Item> {
  const items: Item[] = [];
  let bytes = 0;
  let cursor = "";
  for (const row of rows) {
    const entry = read(row);
    if (items.length > 0 && (items.length >= limit || bytes + entry.bytes > PAGE_BYTES)) return { items, next: cursor };
    items.push(entry.item);
    bytes += entry.bytes;
    cursor = entry.cursor;
  }
  return { items };
}
