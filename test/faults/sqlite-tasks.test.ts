/** A producer whose process dies before it sealed its task: others see it at once, whatever its lease. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { parseQueueName, type TaskId } from "../../src/core/names.ts";
import { childProcesses } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openStore, type StoreSpec } from "./store-spec.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUE = parseQueueName("jobs");
const TASK = "import-1" as TaskId;

afterEach(() => children.end());

it("fails its task once its messages are settled, and a producer known by its token only is left alone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "queuefs-producer-"));
  const spec: StoreSpec = { kind: "sqlite", path: join(folder, "queue.db"), durability: "normal", sweepIntervalMs: 3_600_000 };
  const survivor = await openStore(spec, () => {});
  await survivor.createQueue(QUEUE);
  const child = await children.start();
  const store = await child.call("openShared", spec);
  const messages = [{ data: new Uint8Array(1) }];
  await child.call("callStore", store, "createTask", [
    { id: TASK, type: "import", producer: { leaseMs: 600_000 } },
    [{ queue: QUEUE, messages }],
  ]);
  await child.call("callStore", store, "createTask", [
    { id: "other", type: "import", producer: { leaseMs: 600_000, owner: "receipt" } },
    [],
  ]);
  await survivor.recover();
  expect(await survivor.task(TASK)).toMatchObject({ status: "pending", sealed: false });
  await child.kill();
  await survivor.recover();
  expect(await survivor.task(TASK)).toMatchObject({
    status: "pending",
    sealed: true,
    error: { reason: expect.stringContaining("producer") },
  });
  expect(await survivor.task("other" as TaskId)).toMatchObject({ sealed: false });
  const [taken] = await survivor.dequeue(QUEUE);
  if (taken !== undefined) await survivor.ack(QUEUE, [{ receipt: taken.receipt }]);
  expect(await survivor.task(TASK)).toMatchObject({ status: "failed", progress: { total: 1, done: 1 } });
  await survivor.close();
  await rm(folder, { recursive: true });
});
