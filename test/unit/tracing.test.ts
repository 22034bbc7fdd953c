/** Traces by a real SDK: of programs, of the server, and from one to the other through the messages of every kind of store. */

import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { openHttp } from "../../src/backend/http/index.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { giveUp, NamedQueue, Worker } from "../../src/index.ts";
import { startServer } from "../support/raw-http.ts";

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
beforeAll(() => provider.register());
afterEach(() => exporter.reset());
afterAll(async () => {
  await provider.shutdown();
  for (const api of [trace, context, propagation]) api.disable();
});

const named = (name: string): ReadableSpan => {
  const found = exporter.getFinishedSpans().filter((span) => span.name === name);
  expect({ name, found: found.length }).toEqual({ name, found: 1 });
  return found[0] as ReadableSpan;
};

it("leads from an enqueue to its handler, and from there to what it forwards and enqueues", async () => {
  await using store = await openMemory();
  const [first, second, third] = ["first", "second", "third"].map((name) => new NamedQueue<string>(store, name)) as [
    NamedQueue<string>,
    NamedQueue<string>,
    NamedQueue<string>,
  ];
  await first.enqueue("secret payload");
  await first.dequeue(async (_value, { forward }) => {
    await third.enqueue("more");
    await forward(second, "forwarded");
  });
  await second.dequeue(() => giveUp("secret reason"));
  const send = named("send first");
  const process = named("process first");
  expect(send).toMatchObject({
    kind: SpanKind.PRODUCER,
    attributes: { "messaging.system": "queuefs", "messaging.batch.message_count": 1 },
  });
  expect(named("receive first").links.map((link) => link.context.spanId)).toEqual([send.spanContext().spanId]);
  expect(process).toMatchObject({ kind: SpanKind.CONSUMER, attributes: { "queuefs.outcome": "done", "queuefs.delivery_count": 1 } });
  expect(process.parentSpanContext?.spanId).toBe(send.spanContext().spanId);
  expect(named("send third").parentSpanContext?.spanId).toBe(process.spanContext().spanId);
  const forwarded = named("process second");
  expect(forwarded.parentSpanContext?.spanId).toBe(process.spanContext().spanId);
  expect(forwarded).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { "queuefs.outcome": "dead" } });
  const spans = exporter.getFinishedSpans();
  expect(new Set(spans.filter(({ name }) => !name.startsWith("receive")).map((span) => span.spanContext().traceId)).size).toBe(1);
  expect(
    JSON.stringify(spans.map(({ name, attributes, events, links, status }) => [name, attributes, events, links, status])),
  ).not.toContain("secret");
});

it("leads through workers, redeliveries and ids of the caller", async () => {
  await using store = await openMemory();
  const queue = new NamedQueue<number>(store, "q");
  const ids = await queue.enqueueMany([1, 2]);
  for (const id of ids) expect(id).toMatch(/^trace-[0-9a-f]{32}-[0-9a-f]{16}-/);
  expect(new Set(ids).size).toBe(2);
  // An id that the caller chose carries nothing, and stays.
  expect(await queue.enqueue(3, { id: "chosen" })).toBe("chosen");
  let failures = 0;
  const worker = new Worker(
    queue,
    (value) => {
      if (value === 1 && failures === 0) {
        failures += 1;
        throw new Error("secret words");
      }
    },
    { backoff: { firstMs: 1, maximumMs: 1 } },
  );
  worker.start();
  await queue.waitComplete({ timeoutMs: 10_000 });
  await worker.stop();
  const [sent] = exporter.getFinishedSpans().filter(({ name }) => name === "send q");
  const processed = exporter.getFinishedSpans().filter(({ name }) => name === "process q");
  expect(processed).toHaveLength(4);
  expect(processed.map(({ attributes }) => attributes["queuefs.outcome"]).sort()).toEqual(["done", "done", "done", "retry"]);
  const traces = processed.filter((span) => span.attributes["messaging.message.id"] !== "chosen").map((span) => span.spanContext().traceId);
  expect(new Set(traces)).toEqual(new Set([sent?.spanContext().traceId]));
});

it("leads from a request with a traceparent through the server to a handler elsewhere", async () => {
  const server = await startServer();
  await server.backend.createQueue(parseQueueName("q"));
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const post = (headers: Record<string, string>): Promise<Response> =>
    fetch(`${server.api}/queues/q/messages?task=`.replace("?task=", ""), { method: "POST", body: "payload", headers });
  await post({ traceparent: `00-${traceId}-00f067aa0ba902b7-01`, "content-type": "text/plain" });
  const served = named("POST queue.enqueue");
  expect(served).toMatchObject({
    kind: SpanKind.SERVER,
    attributes: { "http.request.method": "POST", "http.route": "queue.enqueue", "http.response.status_code": 201 },
  });
  expect(served.spanContext().traceId).toBe(traceId);
  expect(served.parentSpanContext?.spanId).toBe("00f067aa0ba902b7");
  // The client, as in another process.
  const client = await openHttp({ url: server.server.url });
  const { textCodec } = await import("../../src/index.ts");
  await new NamedQueue(client, "q", { codec: textCodec }).dequeue(() => {});
  expect(named("process q").parentSpanContext?.spanId).toBe(served.spanContext().spanId);
  // One that is not sampled leaves ids alone.
  const answer = await post({ traceparent: `00-${traceId}-00f067aa0ba902b7-00`, "content-type": "text/plain" });
  expect(((await answer.json()) as { answers: { id: string }[] }).answers[0]?.id).toMatch(/^m-/);
  await client.close();
  await server.close();
});
