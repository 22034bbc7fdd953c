/** NamedQueue: the same answers over every store. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { bytesCodec, giveUp, NamedQueue, retryAfter, textCodec } from "../../src/queue/index.ts";
import { type OpenStore, STORES } from "../support/stores.ts";

describe.each(STORES)("named queue over $name", (kind) => {
  let store: OpenStore;
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    store = await kind.open();
  });
  afterEach(() => store.close());

  const text = (name = "jobs"): NamedQueue<string> => new NamedQueue(store.backend, name, { codec: textCodec });

  test("makes its queue at first use, and values go in and out in order", async () => {
    const queue = text("a/b");
    expect(await queue.size()).toBe(0);
    const ids = await queue.enqueueMany(["one", "two", "three"]);
    expect(new Set(ids).size).toBe(3);
    expect(await queue.peek()).toEqual({ id: ids[0], value: "one" });
    await using first = await queue.dequeue();
    expect(first?.value).toBe("one");
    expect(first?.deliveryCount).toBe(1);
    expect(await queue.getStatus()).toMatchObject({ pending: 2, processing: 1 });
    expect(await first?.ack()).toBe("acked");
    expect(await first?.ack()).toBe("stale");
    expect((await queue.messages()).items.map(({ state }) => state)).toEqual(["pending", "pending"]);
    expect(await queue.clear()).toEqual({ pending: 2, processing: 0 });
    expect(await queue.isAllComplete()).toBe(true);
  });

  test("a hook changes what is stored, and what it throws rejects the enqueue", async () => {
    const queue = new NamedQueue<string>(store.backend, "hooked", {
      codec: textCodec,
      onEnqueue: (value) => {
        if (value === "bad") throw new Error("refused by the hook");
        return value.toUpperCase();
      },
    });
    await queue.enqueue("good");
    await expect(queue.enqueue("bad")).rejects.toThrow("refused by the hook");
    expect((await queue.peek())?.value).toBe("GOOD");
    expect(await queue.size()).toBe(1);
  });

  test("the same id again stores nothing; with another value it is a conflict", async () => {
    const queue = text();
    expect(await queue.enqueue("x", { id: "k" })).toBe("k");
    expect(await queue.enqueue("x", { id: "k" })).toBe("k");
    await expect(queue.enqueue("y", { id: "k" })).rejects.toMatchObject({ code: "id-conflict" });
    expect(await queue.size()).toBe(1);
  });

  test("what is left unsettled is given back with a reason", async () => {
    const queue = text();
    await queue.enqueue("x");
    {
      await using delivery = await queue.dequeue();
      expect(delivery?.value).toBe("x");
    }
    expect(await store.backend.status(queue.name)).toEqual({ pending: 1, processing: 0 });
    expect((await queue.dequeue())?.deliveryCount).toBe(2);
  });

  test("a handler's end settles its message: done, retry, give up, throw", async () => {
    const queue = text();
    expect(await queue.dequeue(() => undefined)).toBe("empty");
    await queue.enqueueMany(["done", "retry", "give up", "throw"]);
    expect(await queue.dequeue(() => undefined)).toBe("done");
    expect(await queue.dequeue(() => retryAfter(60_000, "not yet"))).toBe("retry");
    expect(await queue.dequeue(() => giveUp("never"))).toBe("dead");
    const thrown = async (): Promise<never> => {
      throw undefined;
    };
    expect(await queue.dequeue(thrown)).toBe("retry");
    expect(await queue.getStatus()).toMatchObject({
      pending: 2,
      processing: 0,
      telemetry: { processed: 1, requeueCount: 2, errorCount: 2 },
    });
    expect((await store.backend.deadLetters(queue.name)).items.map(({ reason }) => reason)).toEqual(["never"]);
  });

  test("forwarding happens with the ack or not at all", async () => {
    const from = text("from");
    const to = text("to");
    await from.enqueueMany(["fails", "works"]);
    await from.dequeue(async (value, context) => {
      await context.forward(to, `after ${value}`);
      throw new Error("after all");
    });
    expect(await to.size()).toBe(0);
    await from.dequeue(async (value, context) => context.forward(to, `after ${value}`));
    expect((await to.peek())?.value).toBe("after works");
    const [delivery] = await from.take(1, false);
    expect(delivery).toBeUndefined();
  });

  test("a message that cannot be decoded is put aside, and the next one is delivered", async () => {
    const raw = new NamedQueue(store.backend, "mixed", { codec: bytesCodec });
    await raw.enqueueMany([Uint8Array.of(0xff), new TextEncoder().encode("good"), Uint8Array.of(0xfe)]);
    const queue = text("mixed");
    const good = await queue.dequeue();
    expect(good?.value).toBe("good");
    await good?.ack();
    expect(await queue.dequeue()).toBeUndefined();
    expect(await queue.isAllComplete()).toBe(true);
    const { items } = await store.backend.deadLetters(queue.name);
    expect(items.map(({ data, reason }) => [[...data], reason.startsWith("cannot be decoded as text")])).toEqual([
      [[0xff], true],
      [[0xfe], true],
    ]);
  });

  test("telemetry cannot influence completion, and resetting it changes nothing in the store (C03)", async () => {
    const queue = text();
    for (let count = 0; count < 7; count += 1) queue.telemetry.countRequeue();
    for (let count = 0; count < 150; count += 1) queue.telemetry.recordError(new Error(`${count}`));
    expect(await queue.isAllComplete()).toBe(true);
    const { telemetry } = await queue.getStatus();
    expect(telemetry).toMatchObject({ requeueCount: 7, errorCount: 150 });
    expect(telemetry.recentErrors).toHaveLength(100);
    expect(telemetry.recentErrors.at(-1)?.text).toBe("149");
    await queue.enqueue("x");
    queue.resetStatus();
    expect(await queue.isAllComplete()).toBe(false);
    expect(await queue.getStatus()).toEqual({
      pending: 1,
      processing: 0,
      telemetry: { processed: 0, requeueCount: 0, errorCount: 0, recentErrors: [] },
    });
  });

  test("consume gives deliveries as they come, takes no more than its prefetch, and releases what it did not reach", async () => {
    const queue = text();
    await queue.enqueueMany(["1", "2", "3", "4", "5"]);
    const seen: string[] = [];
    for await (const delivery of queue.consume({ prefetch: 3 })) {
      seen.push(delivery.value);
      await delivery.ack();
      if (seen.length === 1) expect(await store.backend.status(queue.name)).toEqual({ pending: 2, processing: 2 });
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(["1", "2"]);
    expect(await store.backend.status(queue.name)).toEqual({ pending: 3, processing: 0 });
    expect((await queue.dequeue())?.deliveryCount).toBe(1);
  });

  test("consume waits for messages, and an aborted signal ends it", async () => {
    const queue = text();
    const ending = new AbortController();
    const seen: string[] = [];
    const loop = (async () => {
      for await (const delivery of queue.consume({ signal: ending.signal })) {
        seen.push(delivery.value);
        await delivery.ack();
        if (delivery.value === "last") ending.abort();
      }
    })();
    await queue.enqueue("first");
    await queue.waitComplete({ timeoutMs: 10_000 });
    await queue.enqueue("last");
    await loop;
    expect(seen).toEqual(["first", "last"]);
  });

  test("an instant ahead delays, one in the past does not, and both together are refused", async () => {
    const queue = text();
    await queue.enqueue("later", { at: new Date(Date.now() + 3_600_000) });
    await queue.enqueue("now", { at: new Date(0) });
    expect((await queue.dequeue())?.value).toBe("now");
    expect(await queue.dequeue()).toBeUndefined();
    await expect(queue.enqueue("x", { at: new Date(), delayMs: 1 })).rejects.toMatchObject({ code: "invalid-argument" });
    await expect(queue.enqueue("x", { at: new Date(Number.NaN) })).rejects.toMatchObject({ code: "invalid-argument" });
  });

  test("ack takes an id or a receipt, and never removes a pending message", async () => {
    const queue = text();
    const [one, two] = await queue.enqueueMany(["1", "2"]);
    expect(await queue.ack(one as string)).toBe("stale");
    const first = await queue.dequeue();
    const second = await queue.dequeue();
    expect(await queue.ack(first?.receipt as string)).toBe("acked");
    expect(second?.id).toBe(two);
    expect(await queue.ack(two as string)).toBe("acked");
    expect(await queue.ack(two as string)).toBe("stale");
    expect(await queue.isAllComplete()).toBe(true);
  });
});
