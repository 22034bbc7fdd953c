/** The steps of which the cases are made. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import { type ErrorCode, isQueueFSError } from "../../core/errors.ts";
import type { DeadLetter, DeliveredMessage, DequeueOptions, ListedMessage, NewMessage, Page } from "../../core/message.ts";
import { type MessageId, parseChosenMessageId, parseQueueName, type QueueName, type Receipt } from "../../core/names.ts";
import type { ConformanceContext } from "./case.ts";

/** A queue name for a case. */
export const name: (text: string) => QueueName = parseQueueName;
/** A message id for a case. */
export const id: (text: string) => MessageId = parseChosenMessageId;

/** The queue that most cases use. */
export const JOBS: QueueName = name("jobs");

/** Text as bytes. */
export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Bytes as text. */
export function text(data: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(data);
}

/** Fails unless both are the same bytes. */
export function sameBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert.ok(actual instanceof Uint8Array, `${what}: a Uint8Array`);
  assert.equal(actual.byteLength, expected.byteLength, `${what}: as many bytes`);
  assert.ok(Buffer.compare(actual, expected) === 0, `${what}: the same bytes`);
}

/** Makes queues. */
export async function make(backend: Backend, ...queues: readonly (QueueName | string)[]): Promise<void> {
  for (const queue of queues) assert.equal(await backend.createQueue(name(queue)), "created", `create ${queue}`);
}

/** Enqueues texts in one call and returns their ids. */
export async function put(backend: Backend, queue: QueueName, ...texts: readonly string[]): Promise<MessageId[]> {
  const answers = await backend.enqueue(
    queue,
    texts.map((one) => ({ data: bytes(one) })),
  );
  assert.deepEqual(
    answers.map((answer) => answer.outcome),
    texts.map(() => "enqueued"),
  );
  return answers.map((answer) => answer.id);
}

/** A message with an id of the caller's. */
export function withId(chosen: string, content: string, rest: Partial<NewMessage> = {}): NewMessage {
  return { ...rest, id: id(chosen), data: bytes(content) };
}

/** Dequeues exactly one message. */
export async function take(backend: Backend, queue: QueueName, options: DequeueOptions = {}): Promise<DeliveredMessage> {
  const [delivered, ...more] = await backend.dequeue(queue, options);
  assert.ok(delivered, `${queue} has a message to give`);
  assert.deepEqual(more, []);
  return delivered;
}

/** Fails unless a dequeue gives nothing. */
export async function empty(backend: Backend, queue: QueueName): Promise<void> {
  assert.deepEqual((await backend.dequeue(queue)).map(content), [], `${queue} has nothing to give`);
}

/** The text of a message. */
export function content(message: { readonly data: Uint8Array }): string {
  return text(message.data);
}

/** Dequeues up to `limit` messages and returns their texts. */
export async function takeTexts(backend: Backend, queue: QueueName, limit = 100): Promise<string[]> {
  return (await backend.dequeue(queue, { limit })).map(content);
}

/** Fails unless the queue has so many pending and processing. */
export async function counts(backend: Backend, queue: QueueName, pending: number, processing: number): Promise<void> {
  assert.deepEqual(await backend.status(queue), { pending, processing }, `status of ${queue}`);
}

/** Acks and fails unless each was acked. */
export async function ack(backend: Backend, queue: QueueName, ...delivered: readonly { readonly receipt: Receipt }[]): Promise<void> {
  const answers = await backend.ack(
    queue,
    delivered.map((one) => ({ receipt: one.receipt })),
  );
  assert.deepEqual(
    answers,
    delivered.map(() => ({ outcome: "acked", forwarded: [] })),
  );
}

/** The answer of an ack of one receipt. */
export async function ackOutcome(backend: Backend, queue: QueueName, one: Receipt): Promise<string | undefined> {
  const answers = await backend.ack(queue, [{ receipt: one }]);
  assert.equal(answers.length, 1);
  return answers[0]?.outcome;
}

/** Fails unless every way to settle a delivery answers that the receipt is stale, and nothing changes. */
export async function assertStale(backend: Backend, queue: QueueName, one: Receipt): Promise<void> {
  const before = await fingerprint(backend, queue);
  assert.deepEqual(await backend.ack(queue, [{ receipt: one }]), [{ outcome: "stale" }], "ack");
  assert.deepEqual(await backend.nack(queue, [{ receipt: one }]), ["stale"], "nack");
  assert.deepEqual(await backend.nack(queue, [{ receipt: one, giveUp: true, reason: "stale" }]), ["stale"], "nack that gives up");
  assert.deepEqual(await backend.release(queue, [one]), ["stale"], "release");
  assert.deepEqual(await backend.extend(queue, [{ receipt: one, leaseMs: 1000 }]), ["stale"], "extend");
  assert.deepEqual(await fingerprint(backend, queue), before, "nothing changed");
}

/** Everything that can be seen of a queue and does not change with time. */
export async function fingerprint(backend: Backend, queue: QueueName): Promise<unknown> {
  const { oldestPendingMs: _pending, oldestProcessingMs: _processing, ...statistics } = await backend.statistics(queue);
  return {
    status: await backend.status(queue),
    messages: (await everyMessage(backend, queue)).map(comparable),
    dead: (await everyDeadLetter(backend, queue)).map(comparable),
    statistics,
  };
}

/** A message with its bytes as hexadecimal text, so that a difference is readable. */
export function comparable<Item extends { readonly data: Uint8Array }>(message: Item): Omit<Item, "data"> & { readonly data: string } {
  return { ...message, data: Buffer.from(message.data).toString("hex") };
}

/** All items of a listing, page by page. */
export async function everyListed<Item>(page: (after: string | undefined) => Promise<Page<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let after: string | undefined;
  for (;;) {
    const { items: more, next } = await page(after);
    items.push(...more);
    if (next === undefined) return items;
    assert.notEqual(next, after, "a page leads on");
    after = next;
  }
}

/** All unacked messages of a queue. */
export function everyMessage(backend: Backend, queue: QueueName, limit = 1000): Promise<ListedMessage[]> {
  return everyListed((after) => backend.messages(queue, after === undefined ? { limit } : { limit, after }));
}

/** All dead letters of a queue. */
export function everyDeadLetter(backend: Backend, queue: QueueName, limit = 1000): Promise<DeadLetter[]> {
  return everyListed((after) => backend.deadLetters(queue, after === undefined ? { limit } : { limit, after }));
}

/** Fails unless `action` rejects (or throws) with a QueueFSError of one of these codes. Returns its message. */
export async function refused(action: () => Promise<unknown>, ...codes: readonly ErrorCode[]): Promise<string> {
  let result: unknown;
  try {
    result = await action();
  } catch (error) {
    if (!isQueueFSError(error)) throw error;
    assert.ok(codes.includes(error.code), `refused as ${codes.join(" or ")}, not as ${error.code}: ${error.message}`);
    return error.message;
  }
  assert.fail(`refused as ${codes.join(" or ")}, but it answered ${JSON.stringify(result)}`);
}

/** Lets time pass in small steps until `condition` holds; fails when it does not after `withinMs` of the store's time. */
export async function eventually(
  context: ConformanceContext,
  what: string,
  condition: () => Promise<boolean> | boolean,
  withinMs = 10_000,
): Promise<void> {
  for (let passed = 0; passed < withinMs; passed += 20) {
    if (await condition()) return;
    await context.passTime(20);
  }
  assert.fail(`${what}, within ${withinMs} ms`);
}

/** Recovers until nothing more is to be done, and returns how many deliveries ended and how many messages died. */
export async function recoverAll(backend: Backend): Promise<{ recovered: number; dead: number }> {
  const total = { recovered: 0, dead: 0 };
  for (;;) {
    const step = await backend.recover();
    total.recovered += step.recovered;
    total.dead += step.dead;
    if (!step.more) return total;
  }
}

/** Lets everything else run that can run now: a turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Looks again and again while work is done, at least once before and once after it, and returns the work's result. Every look is followed by
 * a turn of the event loop: a store that answers within the turn would otherwise let nobody else work.
 */
export async function whileLooking<Result>(look: () => Promise<void>, work: () => Promise<Result>): Promise<Result> {
  let over = false;
  const looking = (async () => {
    do {
      await look();
      await turn();
    } while (!over);
    await look();
  })();
  // Without this a failed look would count as unhandled while the work goes on.
  looking.catch(() => {});
  try {
    return await work();
  } finally {
    over = true;
    await looking;
  }
}
