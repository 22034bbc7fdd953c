/** Long histories of many messages of many sizes on one queue, beside a list that does the same. */

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import type { DeliveredMessage, ListedMessage } from "../../../src/core/message.ts";
import type { MessageId, QueueName, Receipt } from "../../../src/core/names.ts";
import { ManualClock } from "../../../src/testing/index.ts";

const JOBS = "jobs" as QueueName;
const LEASE_MS = 1_000;

/** A message as the list has it; its bytes follow from its number. */
interface Naive {
  readonly number: number;
  readonly length: number;
  readonly id: MessageId;
  receipt: Receipt | undefined;
}

function payload({ number, length }: { readonly number: number; readonly length: number }): Uint8Array {
  const data = new Uint8Array(length);
  for (let index = 0; index < length; index += 1) data[index] = number * 37 + index * 11;
  return data;
}

function differs(message: { readonly data: Uint8Array } | undefined, one: Naive | undefined): boolean {
  return message === undefined || one === undefined || Buffer.compare(message.data, payload(one)) !== 0;
}

/** The queue and the list. */
class Pair {
  readonly #backend: Backend;
  readonly #clock: ManualClock;
  #unacked: Naive[] = [];
  #dead: Naive[] = [];
  #last = 0;

  constructor(backend: Backend, clock: ManualClock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  async enqueue(count: number, longest: number): Promise<void> {
    const added = Array.from({ length: count }, (_, index) => ({ number: this.#last + index, length: (longest + index) % 12_000 }));
    this.#last += count;
    const answers = await this.#backend.enqueue(
      JOBS,
      added.map((one) => ({ data: payload(one) })),
    );
    for (const [index, one] of added.entries()) this.#unacked.push({ ...one, id: answers[index]?.id as MessageId, receipt: undefined });
  }

  async dequeue(count: number): Promise<void> {
    const expected = this.#unacked.filter((one) => one.receipt === undefined).slice(0, count);
    const delivered = await this.#backend.dequeue(JOBS, { limit: count, leaseMs: LEASE_MS });
    expect(delivered.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    expect(delivered.filter((message, index) => differs(message, expected[index]))).toEqual([]);
    for (const [index, one] of expected.entries()) one.receipt = (delivered[index] as DeliveredMessage).receipt;
  }

  async settle(how: "ack" | "release" | "nack" | "bury", from: number, count: number): Promise<void> {
    const some = this.#held.slice(from, from + count);
    const receipts = some.map((one) => one.receipt as Receipt);
    for (const one of some) one.receipt = undefined;
    if (how === "ack")
      await this.#backend.ack(
        JOBS,
        receipts.map((receipt) => ({ receipt })),
      );
    else if (how === "release") await this.#backend.release(JOBS, receipts);
    else
      await this.#backend.nack(
        JOBS,
        receipts.map((receipt) => ({ receipt, giveUp: how === "bury" })),
      );
    if (how === "ack" || how === "bury") this.#unacked = this.#unacked.filter((one) => !some.includes(one));
    if (how === "bury") this.#dead.push(...some);
  }

  async redrive(): Promise<void> {
    await this.#backend.redrive(
      JOBS,
      this.#dead.map(({ id }) => id),
    );
    this.#unacked = [...this.#unacked, ...this.#dead].toSorted((left, right) => left.number - right.number);
    this.#dead = [];
  }

  async passTime(): Promise<void> {
    this.#clock.advance(LEASE_MS);
    for (let more = true; more; ) ({ more } = await this.#backend.recover());
    for (const one of this.#held) one.receipt = undefined;
  }

  async clear(): Promise<void> {
    const processing = this.#held.length;
    expect(await this.#backend.clear(JOBS)).toEqual({ pending: this.#unacked.length - processing, processing });
    this.#unacked = [];
  }

  async check(): Promise<void> {
    const processing = this.#held.length;
    expect(await this.#backend.status(JOBS)).toEqual({ pending: this.#unacked.length - processing, processing });
    const listed: ListedMessage[] = [];
    for (let after: string | undefined = "0"; after !== undefined; ) {
      const page = await this.#backend.messages(JOBS, { after, limit: 77 });
      listed.push(...page.items);
      after = page.next;
    }
    expect(listed.map(({ id }) => id)).toEqual(this.#unacked.map(({ id }) => id));
    expect(listed.filter((message, index) => differs(message, this.#unacked[index]))).toEqual([]);
    const findings = await this.#backend.inspect();
    expect(findings.filter(({ check, severity }) => check === "counters" && severity !== "ok")).toEqual([]);
  }

  get #held(): Naive[] {
    return this.#unacked.filter((one) => one.receipt !== undefined);
  }
}

const count = fc.integer({ min: 1, max: 200 });
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constant("enqueue" as const), count, fc.oneof(fc.nat(400), fc.nat(12_000))) },
    { weight: 4, arbitrary: fc.tuple(fc.constant("dequeue" as const), count, fc.constant(0)) },
    {
      weight: 4,
      arbitrary: fc.tuple(fc.constantFrom("ack" as const, "release" as const, "nack" as const, "bury" as const), count, fc.nat(50)),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom("redrive" as const, "pass time" as const, "clear" as const), count, fc.constant(0)) },
  ),
  { maxLength: 30 },
);

it("keeps order, bytes and counters as a list does", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const clock = new ManualClock();
      await using backend = await openMemory({ clock, sweepIntervalMs: 3_600_000 });
      await backend.createQueue(JOBS, { maxDeliveries: 0 });
      const pair = new Pair(backend, clock);
      for (const [what, number, extra] of list) {
        if (what === "enqueue") await pair.enqueue(number, extra);
        else if (what === "dequeue") await pair.dequeue(number);
        else if (what === "redrive") await pair.redrive();
        else if (what === "pass time") await pair.passTime();
        else if (what === "clear") await pair.clear();
        else await pair.settle(what, extra, number);
      }
      await pair.check();
    }),
    { numRuns: 30 },
  );
});
