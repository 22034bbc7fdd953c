/** Writes histories by hand, in milliseconds and few words. */

import { check } from "../../faults/proof/check/check.ts";
import { type Promises, type Property, STRICT_PROMISES } from "../../faults/proof/check/promises.ts";
import type { Batch, Call, Fault, Operation, Outcome, ReceiptItem, SentMessage } from "../../faults/proof/operation.ts";

/** From when to when, in milliseconds; a call without an end was never answered. */
export type Span = readonly [begin: number, end?: number];

const MS = 1e6;

/** Any operation. */
export function call([begin, end]: Span, what: Call, outcome?: Outcome, client = "c1.0"): Operation {
  const isAnswered = end !== undefined;
  return {
    client,
    begin: begin * MS,
    end: isAnswered ? end * MS : Number.POSITIVE_INFINITY,
    outcome: outcome ?? (isAnswered ? "ok" : "info"),
    ...what,
  };
}

/** Messages of these values. */
export function messages(...values: readonly string[]): SentMessage[] {
  return values.map((value) => ({ value }));
}

/** An enqueue of these values without ids. */
export function enqueue(span: Span, queue: string, ...values: readonly string[]): Operation {
  return call(span, { op: "enqueue", queue, messages: messages(...values) });
}

/** An enqueue of one value with an id, and what was answered. */
export function keyed(span: Span, queue: string, value: string, outcome: string): Operation {
  return call(span, { op: "enqueue", queue, messages: [{ value, id: `k-${value}` }], answers: [{ outcome, id: `k-${value}` }] });
}

/** A dequeue that got these values; the receipt of `v` is `v/1` unless it is written `v/2`. */
export function dequeue(
  span: Span,
  queue: string,
  values: readonly string[],
  options: { leaseMs?: number; requestId?: string; client?: string } = {},
): Operation {
  const { leaseMs = 100, requestId, client } = options;
  const received = values.map((text) => {
    const [value = "", delivery = "1"] = text.split("/");
    return { value, id: `id-${value}`, receipt: `${value}/${delivery}`, intact: true };
  });
  const limit = Math.max(1, values.length);
  const request = requestId === undefined ? {} : { requestId };
  return call(
    span,
    { op: "dequeue", queue, limit, leaseMs, ...request, ...(span[1] === undefined ? {} : { received }) },
    undefined,
    client,
  );
}

/** A use of one receipt. */
export function use(
  span: Span,
  op: "ack" | "nack" | "release" | "extend",
  queue: string,
  receipt: string,
  answer = "ok",
  more: Partial<ReceiptItem> = {},
): Operation {
  return call(span, { op, queue, items: [{ receipt, ...more }], ...(span[1] === undefined ? {} : { answers: [answer] }) });
}

/** An accepted ack, perhaps with forwards. */
export function ack(span: Span, queue: string, receipt: string, forward?: readonly Batch[]): Operation {
  return use(span, "ack", queue, receipt, "acked", forward === undefined ? {} : { forward });
}

/** A status of queues, with pending and processing of each. */
export function status(span: Span, counts: Readonly<Record<string, readonly [number, number]>>): Operation {
  return call(span, { op: "status", queues: Object.keys(counts), counts: Object.values(counts) });
}

/** What else is known of a history. */
export interface Around {
  readonly faults?: readonly Fault[];
  readonly drained?: boolean;
  readonly promises?: Partial<Promises>;
}

/** The properties that a history violates. One that was not drained is not asked for liveness. */
export function violated(operations: readonly Operation[], { faults = [], drained, promises }: Around = {}): Property[] {
  const exact = { ...STRICT_PROMISES, toleranceMs: 0, recoveryMs: 0, lateEffectMs: Number.POSITIVE_INFINITY };
  const report = check({ operations, faults, drained: drained ?? false }, { ...exact, ...promises });
  const found = [...new Set(report.violations.map(({ property }) => property))];
  return drained === undefined ? found.filter((property) => property !== "L2") : found;
}
