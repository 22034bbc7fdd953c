/**
 * Traces by OpenTelemetry, where a program has set that up: then its API package is there, and is loaded only then. Messages have no headers;
 * what is enqueued within a sampled span, and has no id, gets one that carries the context. So it reaches the handler over every store and
 * host, and the payload is not touched.
 */

import type { Attributes, Context, Link, Span, Tracer } from "@opentelemetry/api";
import { systemRandom } from "../core/clock.ts";
import { isQueueFSError } from "../core/errors.ts";
import type { MessageId, QueueName } from "../core/names.ts";

type Api = typeof import("@opentelemetry/api");

/** Where the API package keeps what was set up, for all copies of it in a process. */
const SET_UP = Symbol.for("opentelemetry.js.api.1");
const CARRYING_ID = /^trace-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-z]+$/;
/** Links of one span: those to the messages of a batch. */
const MAX_LINKS = 128;

let current: Tracing | undefined;
let loading: Promise<void> | undefined;
let isMissing = false;

async function load(): Promise<void> {
  try {
    current = new Tracing(await import("@opentelemetry/api"));
  } catch {
    // Set up by a copy of the package that cannot be found from here.
    isMissing = true;
  }
  loading = undefined;
}

/** While the API is being loaded: until when. Whoever must not miss a span awaits it. */
export function isTracingLoading(): Promise<void> | undefined {
  if (current === undefined && !isMissing && (globalThis as Record<symbol, unknown>)[SET_UP] !== undefined) loading ??= load();
  return loading;
}

/** Traces, where the program has set up OpenTelemetry. */
export function tracing(): Tracing | undefined {
  return current;
}

/** A message, as far as spans tell of it. */
interface TracedMessage {
  readonly id: MessageId;
  readonly deliveryCount: number;
}

/** The span of a request that is being served. */
export interface ServedSpan {
  /** Says what became of it. */
  end(name: string, attributes: Attributes, isError: boolean): void;
}

function messaging(queue: QueueName, type: "send" | "receive" | "process", more: Attributes): Attributes {
  return {
    "messaging.system": "queuefs",
    "messaging.destination.name": queue,
    "messaging.operation.type": type,
    "messaging.operation.name": type,
    ...more,
  };
}

/** Makes spans. */
export class Tracing {
  readonly #api: Api;
  readonly #tracer: Tracer;

  constructor(api: Api) {
    this.#api = api;
    this.#tracer = api.trace.getTracer("queuefs");
  }

  /** An id for a message that is enqueued now, which carries the context; `undefined` outside of a sampled span. */
  messageId(): MessageId | undefined {
    const context = this.#api.trace.getActiveSpan()?.spanContext();
    if (context === undefined || (context.traceFlags & this.#api.TraceFlags.SAMPLED) === 0 || !this.#api.isSpanContextValid(context))
      return undefined;
    return `trace-${context.traceId}-${context.spanId}-${systemRandom.token().toString(36)}` as MessageId;
  }

  /** Within which span a message was enqueued, if its id says so. */
  #contextOf(id: MessageId): Link["context"] | undefined {
    const [, traceId, spanId] = CARRYING_ID.exec(id) ?? [];
    if (traceId === undefined || spanId === undefined) return undefined;
    const context = { traceId, spanId, traceFlags: this.#api.TraceFlags.SAMPLED, isRemote: true };
    return this.#api.isSpanContextValid(context) ? context : undefined;
  }

  /** A span around an enqueue. */
  send<Result>(queue: QueueName, count: number, work: () => Promise<Result>): Promise<Result> {
    const attributes = messaging(queue, "send", { "messaging.batch.message_count": count });
    const { PRODUCER } = this.#api.SpanKind;
    const span = this.#tracer.startSpan(`send ${queue}`, { kind: PRODUCER, attributes });
    return this.#run(span, this.#api.context.active(), work);
  }

  /** A span of a dequeue that gave something; those that found nothing would be many. It links to where the messages came from. */
  received(queue: QueueName, begunMs: number, messages: readonly TracedMessage[]): void {
    const links = messages.slice(0, MAX_LINKS).flatMap(({ id }): Link[] => {
      const context = this.#contextOf(id);
      return context === undefined ? [] : [{ context, attributes: { "messaging.message.id": id } }];
    });
    const attributes = messaging(queue, "receive", { "messaging.batch.message_count": messages.length });
    this.#tracer.startSpan(`receive ${queue}`, { kind: this.#api.SpanKind.CLIENT, startTime: begunMs, attributes, links }).end();
  }

  /** A span around the handling of a message, within the span in which it was enqueued. */
  process<Outcome extends string>(queue: QueueName, message: TracedMessage, work: () => Promise<Outcome>): Promise<Outcome> {
    const { context, trace, SpanKind, SpanStatusCode } = this.#api;
    const from = this.#contextOf(message.id);
    const parent = from === undefined ? context.active() : trace.setSpanContext(context.active(), from);
    const attributes = messaging(queue, "process", {
      "messaging.message.id": message.id,
      "queuefs.delivery_count": message.deliveryCount,
    });
    const span = this.#tracer.startSpan(`process ${queue}`, { kind: SpanKind.CONSUMER, attributes }, parent);
    return this.#run(span, parent, async () => {
      const outcome = await work();
      span.setAttribute("queuefs.outcome", outcome);
      if (outcome !== "done") span.setStatus({ code: SpanStatusCode.ERROR });
      return outcome;
    });
  }

  /** A span around a request, within that of the client if its headers tell of one. */
  serve(method: string, header: (name: string) => string | undefined, work: (span: ServedSpan) => Promise<void>): Promise<void> {
    const { context, propagation, SpanKind, SpanStatusCode, trace } = this.#api;
    const active = context.active();
    // Where HTTP itself is traced, that span is the one to be within.
    const parent =
      trace.getSpan(active) === undefined
        ? propagation.extract(active, undefined, { keys: () => [], get: (_, name) => header(name) })
        : active;
    const attributes = { "http.request.method": method };
    const span = this.#tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent);
    return this.#run(span, parent, () =>
      work({
        end(name, more, isError) {
          span.updateName(name);
          span.setAttributes(more);
          if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
        },
      }),
    );
  }

  async #run<Result>(span: Span, parent: Context, work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#api.context.with(this.#api.trace.setSpan(parent, span), work);
    } catch (error) {
      // Its words may quote what the message holds.
      span.setAttribute("error.type", isQueueFSError(error) ? error.code : error instanceof Error ? error.name : typeof error);
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }
}
