/** Hints of changes: merged, bounded, and without anything left behind. */

import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend, ChangeListener } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import { MAX_PAGE_ITEMS } from "../../../src/core/limits.ts";
import { parseQueueName, type QueueName } from "../../../src/core/names.ts";
import { QueueFS } from "../../../src/fs/index.ts";
import { interpose } from "../../support/interpose.ts";

let backend: Backend;
let listeners: Set<ChangeListener>;
let fs: QueueFS;

beforeEach(async () => {
  backend = await openMemory();
  listeners = new Set();
  const handHinted = interpose(backend, {
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  fs = new QueueFS(handHinted);
  await fs.mkdir("/a");
});

afterEach(async () => {
  await fs.close();
  expect(listeners.size).toBe(0);
  await backend.close();
});

function hint(...names: readonly string[]): void {
  const queues: ReadonlySet<QueueName> | undefined = names.length === 0 ? undefined : new Set(names.map(parseQueueName));
  for (const listener of listeners) listener(queues);
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

describe("hints", () => {
  test("that nobody took are merged into one", async () => {
    const watch = fs.watch("/");
    hint("a");
    hint("b", "c");
    hint("a");
    expect(await watch.next()).toEqual({ done: false, value: { queues: ["a", "b", "c"] } });
    hint("d");
    hint();
    hint("e");
    expect(await watch.next()).toEqual({ done: false, value: {} });
    const next = watch.next();
    hint("f");
    expect(await next).toEqual({ done: false, value: { queues: ["f"] } });
  });

  test("never grow beyond their bound, however many queues change", async () => {
    const watch = fs.watch("/");
    for (let index = 0; index <= MAX_PAGE_ITEMS; index += 1) hint(`q${index}`);
    expect(await watch.next()).toEqual({ done: false, value: {} });
    for (let index = 0; index < MAX_PAGE_ITEMS; index += 1) hint(`q${index}`);
    expect((await watch.next()).value.queues).toHaveLength(MAX_PAGE_ITEMS);
  });

  test("are those of the watched path and of what lies under it", async () => {
    const watch = fs.watch("/a/size");
    hint("ab", "a_b", "b");
    const next = watch.next();
    await turns();
    hint("b");
    hint("a/b", "ab");
    expect(await next).toEqual({ done: false, value: { queues: ["a/b"] } });
  });

  test("without any queue are those of tasks: told at the root and in the directory of tasks, not under queues", async () => {
    const onlyTasks = (): void => {
      for (const listener of listeners) listener(new Set());
    };
    const root = fs.watch("/");
    const tasks = fs.watch("/.tasks");
    const nextOfQueue = fs.watch("/a").next();
    await turns();
    onlyTasks();
    expect(await root.next()).toEqual({ done: false, value: { queues: [] } });
    expect(await tasks.next()).toEqual({ done: false, value: {} });
    onlyTasks();
    hint("a");
    expect(await nextOfQueue).toEqual({ done: false, value: { queues: ["a"] } });
    expect(await root.next()).toEqual({ done: false, value: { queues: ["a"] } });
    expect(await tasks.next()).toEqual({ done: false, value: {} });
  });

  test("go to those who wait, one each, in turn", async () => {
    const watch = fs.watch("/a");
    const both = [watch.next(), watch.next()];
    await turns();
    hint("a");
    hint("a/b");
    expect(await Promise.all(both)).toEqual([
      { done: false, value: { queues: ["a"] } },
      { done: false, value: { queues: ["a/b"] } },
    ]);
  });
});

describe("the end", () => {
  test("by the signal, before and during, leaves no listener", async () => {
    expect(await fs.watch("/a", { signal: AbortSignal.abort() }).next()).toEqual({ done: true, value: undefined });
    const controller = new AbortController();
    const watch = fs.watch("/a", { signal: controller.signal });
    const waiting = [watch.next(), watch.next()];
    await turns();
    controller.abort();
    expect(await Promise.all(waiting)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect([listeners.size, getEventListeners(controller.signal, "abort").length]).toEqual([0, 0]);
  });

  test("by leaving the loop", async () => {
    const watch = fs.watch("/a");
    await turns();
    hint("a");
    for await (const change of watch) {
      expect(change).toEqual({ queues: ["a"] });
      break;
    }
    expect(listeners.size).toBe(0);
  });

  test("by the close of the face", async () => {
    const next = fs.watch("/a").next();
    await turns();
    await fs.close();
    expect((await next).done).toBe(true);
  });

  test("at once, with the reason, when there is nothing to watch", async () => {
    for (const path of ["/missing", "/missing/size"]) {
      const error = await fs
        .watch(path)
        .next()
        .catch((thrown: unknown) => thrown);
      expect(isQueueFSError(error, "queue-not-found")).toBe(true);
    }
    const unread = fs.watch("/missing");
    await turns();
    expect(listeners.size).toBe(0);
    await expect(unread.next()).rejects.toThrow("not found");
    expect((await unread.next()).done).toBe(true);
    expect(() => fs.watch("relative")).toThrow("absolute");
  });
});
