/** The directory of tasks, when there are many. */

import { expect, test } from "vitest";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import { MAX_LISTED_TASKS, MAX_PAGE_ITEMS } from "../../../src/core/limits.ts";
import { QueueFS } from "../../../src/fs/index.ts";

test("a listing goes through all pages, and refuses more tasks than it may name instead of leaving some out", async () => {
  await using backend = await openMemory({ maxTasks: MAX_LISTED_TASKS + 1 });
  await using fs = new QueueFS(backend);
  const make = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) await backend.createTask({ type: "import" });
  };
  await make(2 * MAX_PAGE_ITEMS + 1);
  const listed = (await fs.readdir("/.tasks")).map(({ name }) => name);
  expect(new Set(listed).size).toBe(2 * MAX_PAGE_ITEMS + 1);
  await make(MAX_LISTED_TASKS - listed.length);
  expect(await fs.readdir("/.tasks")).toHaveLength(MAX_LISTED_TASKS);
  await make(1);
  const refused: unknown = await fs.readdir("/.tasks").catch((error: unknown) => error);
  expect(isQueueFSError(refused, "message-too-large")).toBe(true);
});
