/** What the memory store does beyond the conformance suite: its bounds, its copies, its listeners, its counters. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { MemoryStore, openMemory } from "../../../src/backend/memory/index.ts";
import type { MemoryOptions } from "../../../src/backend/memory/options.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import type { MessageId, QueueName } from "../../../src/core/names.ts";
import { ManualClock, SeededRandom } from "../../../src/testing/index.ts";

const JOBS = "jobs" as QueueName;
const OTHER = "other" as QueueName;
const REMEMBER_MS = 1_000;

let clock: ManualClock;
let opened: Backend[];

beforeEach(() => {
  clock = new ManualClock();
  opened = [];
});

afterEach(async () => {
  for (const backend of opened) await backend.close();
  expect(clock.timerCount).toBe(0);
});

async function open(options: MemoryOptions = {}): Promise<Backend> {
  const backend = await openMemory({ clock, random: new SeededRandom(7), rememberMs: REMEMBER_MS, sweepIntervalMs: 3_600_000, ...options });
  opened.push(backend);
  if ((await backend.listQueues()).items.length === 0) {
    await backend.createQueue(JOBS);
    await backend.createQueue(OTHER);
  }
  return backend;
}

function bytes(length: number, seed = 1): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (seed * 37 + index * 11) & 255);
}

async function findings(backend: Backend): Promise<Record<string, string>> {
  return Object.fromEntries((await backend.inspect()).map(({ check, severity }) => [check, severity]));
}

const full = expect.objectContaining({ code: "store-full", retryable: true });

describe("bounds", () => {
  it("refuses bytes beyond maxBytes, whole calls at once, and takes them again after an ack", async () => {
    const backend = await open({ maxBytes: 1_000 });
    await backend.enqueue(JOBS, [{ data: bytes(600) }]);
    await expect(backend.enqueue(OTHER, [{ data: bytes(100) }, { data: bytes(301) }])).rejects.toEqual(full);
    expect(await backend.status(OTHER)).toEqual({ pending: 0, processing: 0 });
    await backend.enqueue(OTHER, [{ data: bytes(400) }]);
    expect((await findings(backend))["byte-limit"]).toBe("warning");
    const [held] = await backend.dequeue(JOBS);
    await expect(backend.enqueue(JOBS, [{ data: bytes(1) }])).rejects.toEqual(full);
    await backend.ack(JOBS, [{ receipt: (held as DeliveredMessage).receipt }]);
    await backend.enqueue(JOBS, [{ data: bytes(600) }]);
  });

  it("counts dead letters and texts of failures, and still lets a full store fail, bury, redrive and forward", async () => {
    const backend = await open({ maxBytes: 100, maxMessages: 2 });
    await backend.enqueue(JOBS, [{ data: bytes(50) }, { data: bytes(50) }]);
    const [one, two] = await backend.dequeue(JOBS, { limit: 2 });
    expect(await backend.nack(JOBS, [{ receipt: (one as DeliveredMessage).receipt, reason: "x".repeat(4_000), giveUp: true }])).toEqual([
      "dead",
    ]);
    expect(await backend.redrive(JOBS, [(one as DeliveredMessage).id])).toEqual(["redriven"]);
    const [again] = await backend.dequeue(JOBS);
    expect(await backend.nack(JOBS, [{ receipt: (again as DeliveredMessage).receipt, giveUp: true }])).toEqual(["dead"]);
    await expect(backend.enqueue(JOBS, [{ data: bytes(0) }])).rejects.toEqual(full);
    const forward = [{ queue: OTHER, messages: [{ data: bytes(49) }] }];
    await expect(backend.ack(JOBS, [{ receipt: (two as DeliveredMessage).receipt, forward: [...forward, ...forward] }])).rejects.toEqual(
      full,
    );
    expect(await backend.status(JOBS)).toEqual({ pending: 0, processing: 1 });
    // Still in processing after the refusal: the step makes the room that it needs.
    expect(await backend.ack(JOBS, [{ receipt: (two as DeliveredMessage).receipt, forward }])).toMatchObject([{ outcome: "acked" }]);
    expect(await backend.drop(JOBS, [(one as DeliveredMessage).id])).toEqual(["dropped"]);
    await backend.enqueue(JOBS, [{ data: bytes(0) }]);
    expect((await findings(backend)).counters).toBe("ok");
  });

  it("refuses ids beyond maxRemembered, not messages without one, and forgets by time", async () => {
    const backend = await open({ maxRemembered: 2 });
    const send = (...ids: string[]): Promise<unknown> =>
      backend.enqueue(
        JOBS,
        ids.map((id) => ({ data: bytes(1), id: id as MessageId })),
      );
    await send("a", "b");
    await expect(send("c")).rejects.toEqual(full);
    await send("a", "b");
    await backend.enqueue(JOBS, [{ data: bytes(1) }]);
    await expect(backend.dequeue(JOBS, { requestId: "q" })).rejects.toEqual(full);
    for (const message of await backend.dequeue(JOBS, { limit: 3 })) await backend.ack(JOBS, [{ receipt: message.receipt }]);
    await expect(send("c")).rejects.toEqual(full);
    clock.advance(REMEMBER_MS);
    await send("c", "d");
    // Kept beyond their time, because their messages are still there.
    clock.advance(REMEMBER_MS * 10);
    await backend.recover();
    await expect(send("e")).rejects.toEqual(full);
    expect(await backend.enqueue(JOBS, [{ data: bytes(1), id: "c" as MessageId }])).toEqual([{ outcome: "repeated", id: "c" }]);
    await backend.clear(JOBS);
    await backend.recover();
    clock.advance(REMEMBER_MS);
    await send("e", "f");
    expect((await findings(backend)).counters).toBe("ok");
  });

  it("keeps answers to requests within maxBytes of their own, so that a full store can be drained", async () => {
    const backend = await open({ maxBytes: 1_000 });
    await backend.enqueue(JOBS, [{ data: bytes(500) }, { data: bytes(500) }]);
    for (const requestId of ["1", "2"]) {
      const [held] = await backend.dequeue(JOBS, { requestId });
      await backend.ack(JOBS, [{ receipt: (held as DeliveredMessage).receipt }]);
    }
    await backend.enqueue(JOBS, [{ data: bytes(500) }]);
    await expect(backend.dequeue(JOBS, { requestId: "3" })).rejects.toEqual(full);
    expect((await backend.dequeue(JOBS, { requestId: "1" })).map(({ data }) => data)).toEqual([bytes(500)]);
    clock.advance(REMEMBER_MS);
    expect(await backend.dequeue(JOBS, { requestId: "3" })).toHaveLength(1);
  });

  it("refuses queues beyond maxQueues", async () => {
    const backend = await open({ maxQueues: 3 });
    expect(await backend.createQueue("third" as QueueName)).toBe("created");
    await expect(backend.createQueue("fourth" as QueueName)).rejects.toEqual(full);
    expect(await backend.createQueue("third" as QueueName)).toBe("exists");
    await backend.removeQueue(OTHER);
    expect(await backend.createQueue("fourth" as QueueName)).toBe("created");
  });

  it("takes everything of a removed queue out of its sums", async () => {
    const backend = await open({ maxMessages: 3, maxRemembered: 2 });
    await backend.enqueue(JOBS, [{ data: bytes(9), id: "a" as MessageId }, { data: bytes(9) }, { data: bytes(9) }]);
    const [held] = await backend.dequeue(JOBS, { requestId: "q" });
    await backend.nack(JOBS, [{ receipt: (held as DeliveredMessage).receipt, giveUp: true }]);
    await backend.dequeue(JOBS);
    await backend.removeQueue(JOBS);
    const messages = (await backend.inspect()).map(({ message }) => message);
    expect(messages).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^0 of 3 /),
        expect.stringMatching(/^0 of 2 /),
        expect.stringMatching(/^0 of \d+ \(maxBytes\)/),
      ]),
    );
  });

  it("clears a hundred thousand messages in one step", async () => {
    const backend = await open();
    const batch = Array.from({ length: 10_000 }, () => ({ data: bytes(4) }));
    for (let round = 0; round < 10; round += 1) await backend.enqueue(JOBS, batch);
    const held = await backend.dequeue(JOBS, { limit: 1_000 });
    expect(await backend.clear(JOBS)).toEqual({ pending: 99_000, processing: 1_000 });
    expect(await backend.ack(JOBS, [{ receipt: (held[0] as DeliveredMessage).receipt }])).toEqual([{ outcome: "stale" }]);
    expect(await backend.status(JOBS)).toEqual({ pending: 0, processing: 0 });
    expect((await findings(backend)).counters).toBe("ok");
  });
});

describe("copies", () => {
  it.each([0, 1, 64, 65, 2_048, 2_049, 9_000, 70_000])("are the caller's own on every way out, at %i bytes", async (length) => {
    const backend = await open();
    const given = bytes(length);
    await backend.enqueue(JOBS, [{ data: given }, { data: given, id: "x" as MessageId }, { data: given, delayMs: 1 }]);
    given.fill(0);
    clock.advance(1);
    const requestId = "q";
    const ways = {
      peek: async () => [(await backend.peek(JOBS))?.data],
      messages: async () => (await backend.messages(JOBS)).items.map(({ data }) => data),
      dequeue: async () => (await backend.dequeue(JOBS, { limit: 3, requestId })).map(({ data }) => data),
      again: async () => (await backend.dequeue(JOBS, { limit: 3, requestId })).map(({ data }) => data),
      held: async () => (await backend.messages(JOBS)).items.map(({ data }) => data),
      dead: async () => {
        for (const { receipt } of await backend.dequeue(JOBS, { limit: 3, requestId }))
          await backend.nack(JOBS, [{ receipt, giveUp: true }]);
        return (await backend.deadLetters(JOBS)).items.map(({ data }) => data);
      },
      "dead again": async () => (await backend.deadLetters(JOBS)).items.map(({ data }) => data),
    };
    const taken: Uint8Array[] = [];
    for (const [way, read] of Object.entries(ways)) {
      for (const data of await read()) {
        expect(Buffer.compare(data as Uint8Array, bytes(length)), way).toBe(0);
        expect(Object.getPrototypeOf(data), way).toBe(Uint8Array.prototype);
        // The next ways must not see what is written here, nor may it reach a copy that was given before.
        (data as Uint8Array).fill(taken.length + 1);
        taken.push(data as Uint8Array);
      }
    }
    expect(taken).toHaveLength(19);
    expect(taken.filter((data, index) => data.some((byte) => byte !== index + 1))).toEqual([]);
  });

  it("cannot be taken away together with others by moving one to another thread", async () => {
    const backend = await open();
    await backend.enqueue(JOBS, [{ data: bytes(10) }, { data: bytes(20) }]);
    const [first, second] = await backend.dequeue(JOBS, { limit: 2 });
    const { data } = first as DeliveredMessage;
    try {
      structuredClone(data, { transfer: [data.buffer as ArrayBuffer] });
    } catch (error) {
      // Newer versions of Node.js refuse, older ones copy.
      expect(error).toMatchObject({ name: "DataCloneError" });
    }
    expect((second as DeliveredMessage).data).toEqual(bytes(20));
  });
});

describe("listeners", () => {
  it("hear once of all changes of a turn, after it, until they are ended or their client is closed", async () => {
    const store = new MemoryStore();
    const backend = await open({ store });
    const other = await open({ store });
    const heard: string[][] = [];
    const end = backend.subscribe((queues) => heard.push([...(queues ?? [])]));
    other.subscribe((queues) => heard.push([...(queues ?? []), "other client"]));
    const calls = [backend.enqueue(JOBS, [{ data: bytes(1) }]), other.enqueue(OTHER, [{ data: bytes(1) }]), backend.status(JOBS)];
    expect(heard).toEqual([]);
    await Promise.all(calls);
    expect(heard).toEqual([
      [JOBS, OTHER],
      [JOBS, OTHER, "other client"],
    ]);
    end();
    end();
    await other.dequeue(JOBS);
    expect(heard.splice(0)).toHaveLength(3);
    await other.close();
    await backend.clear(JOBS);
    expect(heard).toEqual([]);
  });

  it("do not hinder each other or the call when one throws: its client's onError hears of it", async () => {
    const errors: unknown[] = [];
    const backend = await open({ onError: (error) => errors.push(error) });
    const heard: number[] = [];
    backend.subscribe(() => {
      throw new Error("on purpose");
    });
    backend.subscribe(() => heard.push(1));
    await backend.enqueue(JOBS, [{ data: bytes(1) }]);
    await Promise.resolve();
    expect([errors, heard]).toEqual([[expect.objectContaining({ message: "on purpose" })], [1]]);
    expect(await backend.status(JOBS)).toEqual({ pending: 1, processing: 0 });
  });

  it("hear of delays that are over and of leases that the sweep recovers", async () => {
    const backend = await open({ sweepIntervalMs: 100 });
    await backend.enqueue(JOBS, [{ data: bytes(1), delayMs: 50 }]);
    await backend.enqueue(OTHER, [{ data: bytes(1) }]);
    await backend.dequeue(OTHER, { leaseMs: 50 });
    const heard: string[] = [];
    backend.subscribe((queues) => heard.push(...(queues ?? [])));
    await clock.advanceAndSettle(100);
    expect(heard).toEqual([JOBS, OTHER]);
    await clock.advanceAndSettle(1_000);
    expect(heard).toEqual([JOBS, OTHER]);
  });
});

describe("options", () => {
  it.each([
    [{ store: {} }, "MemoryStore"],
    [{ onError: {} }, "onError"],
    [{ maxMessages: 0 }, "maxMessages"],
    [{ maxBytes: 1.5 }, "maxBytes"],
    [{ durability: "full" }, "durability"],
  ])("%o is refused by name", async (options, name) => {
    await expect(openMemory(options as MemoryOptions)).rejects.toMatchObject({
      code: "invalid-argument",
      message: expect.stringContaining(name),
    });
  });

  it("are not needed: a store opened without any works and says that it is not durable", async () => {
    await using backend = await openMemory();
    expect(backend.description).toMatchObject({ kind: "memory", durable: false, sharedBy: "process" });
    await backend.createQueue(JOBS);
    await backend.enqueue(JOBS, [{ data: bytes(3) }]);
    expect((await backend.dequeue(JOBS))[0]?.data).toEqual(bytes(3));
    expect((await findings(backend)).durability).toBe("warning");
  });
});

describe("the event loop", () => {
  it.each([1, 64])("turns while %i callers await one answer after the other", async (callers) => {
    const backend = await open();
    let hasTurned = false;
    setImmediate(() => {
      hasTurned = true;
    });
    let cycles = 0;
    const cycle = async (): Promise<void> => {
      // Without turns it would go on to the last.
      for (let count = 0; count < 100_000 && !hasTurned; count += 1) {
        await backend.enqueue(JOBS, [{ data: bytes(8) }]);
        const deliveries = await backend.dequeue(JOBS);
        await backend.ack(
          JOBS,
          deliveries.map(({ receipt }) => ({ receipt })),
        );
        cycles += 1;
      }
    };
    await Promise.all(Array.from({ length: callers }, cycle));
    expect(hasTurned).toBe(true);
    expect(cycles).toBeLessThan(1_000);
  });

  it("turns while callers look at the status", async () => {
    const backend = await open();
    let hasTurned = false;
    setImmediate(() => {
      hasTurned = true;
    });
    let looks = 0;
    for (; looks < 100_000 && !hasTurned; looks += 1) await backend.status(JOBS);
    expect(looks).toBeLessThan(1_000);
  });
});
