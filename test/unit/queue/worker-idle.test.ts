/** What a worker does that has nothing to do. */

import { expect, test } from "vitest";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { QueueFSError } from "../../../src/core/errors.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { NamedQueue, textCodec, Worker } from "../../../src/queue/index.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { interpose } from "../../support/interpose.ts";

const JOBS = parseQueueName("jobs");
const SECOND_MS = 1_000;

test("looks once in each interval without taking, takes what came although nothing woke it, and sees that the store is back", async () => {
  const clock = new ManualClock();
  const backend = await openMemory({ clock });
  let looks = 0;
  let takes = 0;
  let isAway = true;
  const silent = interpose(backend, {
    subscribe: () => () => {},
    nextDue: (queue) => {
      looks += 1;
      return backend.nextDue(queue);
    },
    dequeue: (queue, options) => {
      takes += 1;
      return isAway ? Promise.reject(new QueueFSError("store-unreachable", "away")) : backend.dequeue(queue, options);
    },
  });
  const queue = new NamedQueue<string>(silent, JOBS, { codec: textCodec, clock });
  const done: string[] = [];
  const worker = new Worker(queue, (text) => void done.push(text), { clock, pollIntervalMs: 5 * SECOND_MS }).start();
  await clock.advanceAndSettle(1);
  expect(worker.health.failure).toMatchObject({ code: "store-unreachable" });
  isAway = false;
  await clock.advanceAndSettle(SECOND_MS);
  expect(worker.health.failure).toBeUndefined();
  takes = 0;
  looks = 0;
  await clock.advanceAndSettle(60 * SECOND_MS);
  expect([takes, looks]).toEqual([0, 12]);
  await queue.enqueue("1");
  await clock.advanceAndSettle(5 * SECOND_MS);
  expect(done).toEqual(["1"]);
  await worker.stop({ graceMs: 0 });
  await backend.close();
});
