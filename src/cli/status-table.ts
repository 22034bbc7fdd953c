/** Statuses for people and programs. */

import { isComplete, type QueueStatus, type Status } from "../core/message.ts";
import type { Session } from "./session.ts";
import { type Column, styled, tableLines } from "./table.ts";
import { visible } from "./visible.ts";

const COLUMNS: readonly Column[] = [{ title: "QUEUE" }, { title: "PENDING", align: "right" }, { title: "PROCESSING", align: "right" }];

/** The sum of several statuses. */
export function totalOf(statuses: readonly Status[]): Status {
  return statuses.reduce((sum, status) => ({ pending: sum.pending + status.pending, processing: sum.processing + status.processing }), {
    pending: 0,
    processing: 0,
  });
}

/** Whether the queues are complete, in a few words. */
export function verdict(session: Pick<Session, "colours">, statuses: readonly QueueStatus[]): string {
  if (statuses.length === 0) return "no queues";
  if (isComplete(statuses)) return styled(session, "green", "complete: nothing is unacknowledged");
  const { pending, processing } = totalOf(statuses);
  return `${styled(session, "yellow", "not complete")}: ${pending + processing} unacknowledged`;
}

/** The table of one snapshot, with a total where there are several queues, and the verdict. */
export async function statusLines(session: Pick<Session, "colours">, statuses: readonly QueueStatus[]): Promise<string[]> {
  if (statuses.length === 0) return [verdict(session, statuses)];
  const rows = statuses.map((status) => [visible(status.queue), String(status.pending), String(status.processing)]);
  const total = totalOf(statuses);
  if (statuses.length > 1) rows.push([styled(session, "bold", "total"), String(total.pending), String(total.processing)]);
  return [...(await tableLines(session, COLUMNS, rows)), verdict(session, statuses)];
}

/** Writes one snapshot: a table, or a line of JSON for each queue. */
export async function writeStatuses(session: Session, statuses: readonly QueueStatus[]): Promise<void> {
  if (session.json) for (const { queue, pending, processing } of statuses) await session.jsonLine({ queue, pending, processing });
  else for (const line of await statusLines(session, statuses)) await session.output.line(line);
}
