/** Slips of callers, found by a newcomer: none may read as "complete", make a queue that no surface can name, or lose work. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { batch, NamedQueue, type QueueSelection, Tasks, textCodec, Worker, type WorkerOptions, waitComplete } from "../../src/index.ts";
import { type OpenStore, STORES } from "../support/stores.ts";

describe.each(STORES)("slips over $name", (kind) => {
  let store: OpenStore;
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());
  beforeEach(async () => {
    store = await kind.open();
  });
  afterEach(() => store.close());

  test.each([
    {},
    { queue: ["a"] },
    ["a"],
    { queues: "a" },
    { queues: undefined },
    { queues: [{}] },
    "a",
    null,
    undefined,
    { queues: ["a"], timeoutMs: 1 },
  ])("a selection that is none, %j, is refused and never complete", async (selection) => {
    const queue = new NamedQueue<string>(store.backend, "a", { codec: textCodec });
    await queue.enqueue("x");
    await expect(waitComplete(store.backend, selection as QueueSelection)).rejects.toMatchObject({ code: "invalid-argument" });
    await expect(store.backend.statuses(selection as QueueSelection)).rejects.toMatchObject({ code: "invalid-argument" });
    await expect(store.backend.mark(selection as QueueSelection)).rejects.toMatchObject({ code: "invalid-argument" });
  });

  test.each([5_000, null, "5s"])("options of a wait that are none, %j, are refused, and never taken for no limit", async (options) => {
    const queue = new NamedQueue<string>(store.backend, "a", { codec: textCodec });
    await queue.enqueue("x");
    await expect(queue.waitComplete(options as never)).rejects.toMatchObject({ code: "invalid-argument" });
    const tasks = new Tasks(store.backend);
    const { id } = await tasks.create({ type: "t" }, [batch(queue, ["y"])]);
    await expect(tasks.wait(id, options as never)).rejects.toMatchObject({ code: "invalid-argument" });
  });

  test.each([{ delay: 5_000 }, { dealyMs: 5_000 }, "my-id", null, 5, { at: 5_000 }, { delayMs: "5s" }])(
    "options of an enqueue that are none, %j, are refused, and nothing is stored",
    async (options) => {
      const queue = new NamedQueue<string>(store.backend, "a", { codec: textCodec });
      await queue.ensure();
      await expect(queue.enqueue("x", options as never)).rejects.toMatchObject({ code: "invalid-argument" });
      await expect(queue.enqueueMany(["x"], () => options as never)).rejects.toMatchObject({ code: "invalid-argument" });
      const from = new NamedQueue<string>(store.backend, "from", { codec: textCodec });
      await from.enqueue("y");
      expect(await from.dequeue((_value, context) => context.forward(queue, "z", options as never))).toBe("retry");
      expect(await queue.size()).toBe(0);
    },
  );

  test.each(["../x", "a//b", "\ud800", "", 5, null])("a queue cannot be made under the name %j, also past the types", async (name) => {
    await expect(store.backend.createQueue(name as never)).rejects.toMatchObject({ code: "invalid-name" });
    await expect(store.backend.createQueue("a/ack" as never)).rejects.toMatchObject({ code: "reserved-name" });
  });

  test("items that are none, or have misspelt properties, are refused as what they are, and nothing changes", async () => {
    const { backend } = store;
    const queue = new NamedQueue<string>(backend, "a", { codec: textCodec });
    await queue.enqueueMany(["x", "y"]);
    const { name } = queue;
    const [held] = await backend.dequeue(name);
    const receipt = held?.receipt as never;
    const data = new Uint8Array(1);
    const slips: (() => Promise<unknown>)[] = [
      ...[null, undefined, 5, "m"].map((item) => () => backend.ack(name, [item as never])),
      ...[null, undefined, 5, "r"].map((item) => () => backend.nack(name, [item as never])),
      ...[null, undefined, 5].map((item) => () => backend.extend(name, [item as never])),
      ...[null, undefined, 5, {}].map((item) => () => backend.release(name, [item as never])),
      ...[null, undefined, 5, {}].map((item) => () => backend.ackById(name, [item as never])),
      () => backend.redrive(name, [null as never]),
      () => backend.drop(name, [null as never]),
      () => backend.ack(name, [{ receipt, forwards: [] } as never]),
      () => backend.ack(name, [{ receipt, forward: [{ queue: name, message: [] }] } as never]),
      () => backend.nack(name, [{ receipt, dealyMs: 5 } as never]),
      () => backend.nack(name, [{ receipt, giveup: true } as never]),
      () => backend.nack(name, [{ receipt, giveUp: "yes" } as never]),
      () => backend.extend(name, [{ receipt, lease: 5_000 } as never]),
      () => backend.enqueue(name, [{ data, dealyMs: 5 } as never]),
      () => backend.enqueue(name, [null as never]),
    ];
    for (const slip of slips) await expect(slip(), String(slip)).rejects.toMatchObject({ code: "invalid-argument" });
    expect(await backend.status(name)).toEqual({ pending: 1, processing: 1 });
    expect(() => new Worker(null as never, () => {})).toThrow(/NamedQueue/);
  });

  test("a forward that the handler did not await is stored with the ack, and its failure fails the handler", async () => {
    const from = new NamedQueue<string>(store.backend, "from", { codec: textCodec });
    const to = new NamedQueue<string>(store.backend, "to", { codec: textCodec });
    await from.enqueueMany(["good", "bad"]);
    expect(await from.dequeue((value, context) => void context.forward(to, value))).toBe("done");
    expect((await to.peek())?.value).toBe("good");
    expect(await from.dequeue((_value, context) => void context.forward(to, undefined as never))).toBe("retry");
    expect(await to.size()).toBe(1);
  });

  test("a forward whose failure the handler caught itself does not fail it", async () => {
    const from = new NamedQueue<string>(store.backend, "from", { codec: textCodec });
    const to = new NamedQueue<string>(store.backend, "to", { codec: textCodec });
    await from.enqueue("x");
    const outcome = await from.dequeue(async (_value, context) => {
      try {
        await context.forward(to, undefined as never);
      } catch {
        await context.forward(to, "instead");
      }
    });
    expect(outcome).toBe("done");
    expect((await to.peek())?.value).toBe("instead");
  });

  test.each([{}, { firstMs: 5 }, { firstMs: 5, maximumMs: 1 }, { firstMs: Number.NaN, maximumMs: 5 }, () => 5])(
    "a backoff that is none, %j, is refused at once",
    (backoff) => {
      const queue = new NamedQueue<string>(store.backend, "a", { codec: textCodec });
      expect(() => new Worker(queue, () => undefined, { backoff } as WorkerOptions)).toThrow(/backoff/);
    },
  );
});
