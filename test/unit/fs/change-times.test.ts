/** Modification times that follow what the store tells. */

import { expect, test } from "vitest";
import type { ChangeListener } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { parseQueueName, type QueueName } from "../../../src/core/names.ts";
import { ChangeTimes } from "../../../src/fs/change-times.ts";
import { QueueFS } from "../../../src/fs/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

function times(clock: ManualClock): { readonly times: ChangeTimes; readonly tell: ChangeListener; readonly listeners: () => number } {
  const listeners = new Set<ChangeListener>();
  const subscribe = (listener: ChangeListener): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    times: new ChangeTimes({ subscribe }, clock),
    tell: (queues) => {
      for (const listener of listeners) listener(queues);
    },
    listeners: () => listeners.size,
  };
}

function queues(...names: string[]): Set<QueueName> {
  return new Set(names.map(parseQueueName));
}

test("rise with each hint, also while the wall clock stands still or is set back", () => {
  const clock = new ManualClock({ wallMs: 1_000 });
  const { times: of, tell } = times(clock);
  expect(of.of("a")).toBe(1_000);
  tell(queues("a"));
  tell(queues("a", "b"));
  expect(of.of("a")).toBe(1_002);
  expect(of.of("b")).toBe(1_002);
  expect(of.of("c")).toBe(1_000);
  clock.advance(5_000);
  tell(undefined);
  expect(of.of("a")).toBe(6_000);
  expect(of.of("c")).toBe(6_000);
});

test("are kept of a bounded number of queues, and never fall", () => {
  const clock = new ManualClock({ wallMs: 0 });
  const { times: of, tell } = times(clock);
  expect(of.of("q0")).toBe(0);
  const before = new Map<string, number>();
  for (let index = 0; index < 10_050; index += 1) {
    tell(queues(`q${index}`));
    if (index < 100) before.set(`q${index}`, of.of(`q${index}`));
  }
  for (const [queue, atMs] of before) expect(of.of(queue)).toBeGreaterThanOrEqual(atMs);
  expect(of.of("q10049")).toBe(10_050);
});

test("follow from the first question on, and no more when the face is closed", async () => {
  const { times: of, tell, listeners } = times(new ManualClock({ wallMs: 7 }));
  expect(listeners()).toBe(0);
  expect(of.of("a")).toBe(7);
  expect(listeners()).toBe(1);
  of.end();
  tell(undefined);
  expect(of.of("a")).toBe(7);
  expect(listeners()).toBe(0);
});

test("of a queue and its control files are those of its last change, of others they stay", async () => {
  await using backend = await openMemory();
  const clock = new ManualClock({ wallMs: 50_000 });
  await using face = new QueueFS(backend, { clock, followChanges: true });
  await face.mkdir("/a");
  await face.mkdir("/b/c");
  await new Promise((resolve) => setTimeout(resolve, 20));
  const before = (await face.stat("/a/peek")).modifiedAtMs;
  clock.advance(1_000);
  await face.write("/a/enqueue", new TextEncoder().encode("x"));
  await expect.poll(async () => (await face.stat("/a/peek")).modifiedAtMs).toBeGreaterThan(before);
  const listed = await face.readdir("/");
  expect(listed.find(({ name }) => name === "a")?.modifiedAtMs).toBe((await face.stat("/a")).modifiedAtMs);
  expect(listed.find(({ name }) => name === "b")?.modifiedAtMs).toBe(50_000);
  expect((await face.stat("/b/c/size")).modifiedAtMs).toBeLessThan(51_000);
});
