/** One message for people. */

import { formatTimestamp } from "../core/codec.ts";
import type { Message } from "../core/message.ts";
import { fieldLines } from "./fields.ts";
import type { Session } from "./session.ts";
import { preview, visible } from "./visible.ts";

/** Characters of data shown; the whole is had with --raw or --json. */
const SHOWN_CHARACTERS = 2_000;

/** The lines that describe a message; `more` names and values come after its id. */
export function messageLines(session: Session, message: Message, more: readonly (readonly [string, string])[]): string[] {
  const rows: (readonly [string, string])[] = [
    ["id", visible(message.id)],
    ...more.map(([name, value]) => [name, visible(value)] as const),
    ...(message.task === undefined ? [] : [["task", visible(message.task)] as const]),
    ["enqueued", formatTimestamp(message.enqueuedAtMs)],
    ["deliveries", String(message.deliveryCount)],
    ["bytes", String(message.data.byteLength)],
    ["data", preview(message.data, SHOWN_CHARACTERS)],
  ];
  return fieldLines(session, rows);
}
