import { describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { BatchSender } from "../../../src/cli/batch-sender.ts";
import { MAX_BATCH_ITEMS } from "../../../src/core/limits.ts";
import { parseQueueName } from "../../../src/core/names.ts";

const queue = parseQueueName("q");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A real store, which tells how many messages each call carried. */
async function counted(maxMessageBytes = 1_000_000): Promise<{ backend: Backend; calls: number[] }> {
  const store = await openMemory({ maxMessageBytes });
  await store.createQueue(queue);
  const calls: number[] = [];
  const backend = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "enqueue") return value.bind(target);
      return (...given: Parameters<Backend["enqueue"]>) => {
        calls.push(given[1].length);
        return target.enqueue(...given);
      };
    },
  });
  return { backend, calls };
}

describe("BatchSender", () => {
  it("sends at once when nothing is in the air, and what gathers meanwhile as one call", async () => {
    const { backend, calls } = await counted();
    const sender = new BatchSender(backend, queue, async () => {});
    for (let index = 0; index < 100; index += 1) {
      await sender.add({ data: bytes(`${index}`) });
      sender.offer();
    }
    await sender.finish();
    expect(calls[0]).toBe(1);
    expect(calls.length).toBeLessThan(100);
    expect(calls.reduce((sum, count) => sum + count, 0)).toBe(100);
    const { items } = await backend.messages(queue);
    expect(items.map((item) => Buffer.from(item.data).toString())).toEqual(Array.from({ length: 100 }, (_, index) => `${index}`));
    await backend.close();
  });

  it("keeps to the limits of one call, in number and in bytes", async () => {
    const { backend, calls } = await counted(1_000);
    const sender = new BatchSender(backend, queue, async () => {});
    for (let index = 0; index < MAX_BATCH_ITEMS + 1; index += 1) await sender.add({ data: new Uint8Array() });
    for (let index = 0; index < 3; index += 1) await sender.add({ data: new Uint8Array(600) });
    await sender.finish();
    expect(calls).toEqual([MAX_BATCH_ITEMS, 2, 1, 1]);
    await backend.close();
  });

  it("tells a failure from then on, and sends nothing after it", async () => {
    const { backend, calls } = await counted();
    const sender = new BatchSender(backend, queue, async () => {});
    await backend.removeQueue(queue);
    await sender.add({ data: bytes("a") });
    await expect(sender.finish()).rejects.toMatchObject({ code: "queue-not-found" });
    await expect(sender.add({ data: bytes("b") })).rejects.toMatchObject({ code: "queue-not-found" });
    await expect(sender.finish()).rejects.toMatchObject({ code: "queue-not-found" });
    expect(calls).toEqual([1]);
    await backend.close();
  });

  it("gives the answers of one call before it begins the next", async () => {
    const { backend } = await counted(10);
    const events: string[] = [];
    const sender = new BatchSender(backend, queue, async (answers) => {
      events.push(`begin ${answers.length}`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push("end");
    });
    for (let index = 0; index < 3; index += 1) await sender.add({ data: new Uint8Array(10) });
    await sender.finish();
    expect(events).toEqual(["begin 1", "end", "begin 1", "end", "begin 1", "end"]);
    await backend.close();
  });
});
