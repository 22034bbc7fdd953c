/** Listing a directory out of the sorted names of all queues. */

import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { compareNames, parseQueueName, type QueueName } from "../../../src/core/names.ts";
import { listDirectory, roleOf } from "../../../src/fs/directory.ts";
import { interpose } from "../../support/interpose.ts";

let backend: Backend;

beforeEach(async () => {
  backend = await openMemory();
});
afterEach(() => backend.close());

/** The backend with pages of `limit` entries, whatever is asked for, and a count of them. */
function smallPages(limit: number): { paged: Backend; pages: { count: number } } {
  const pages = { count: 0 };
  const paged = interpose(backend, {
    listQueues(options) {
      pages.count += 1;
      return backend.listQueues({ ...options, limit });
    },
  });
  return { paged, pages };
}

test("any queues are listed as their directories, whatever the size of a page", async () => {
  // Characters on both sides of the slash, and the greatest of all.
  const component = fc.string({ unit: fc.constantFrom("!", "0", "a", "\uffff", "\u{10ffff}"), minLength: 1, maxLength: 2 });
  const name = fc.array(component, { minLength: 1, maxLength: 3 }).map((components) => components.join("/"));
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(name, { maxLength: 12 }), name, fc.integer({ min: 1, max: 3 }), async (names, at, limit) => {
      await backend.removeQueue(parseQueueName("root"), { recursive: true }).catch(() => 0);
      const queues = names.map((one) => parseQueueName(`root/${one}`));
      for (const queue of queues) await backend.createQueue(queue);
      const { paged } = smallPages(limit);
      for (const directory of [parseQueueName("root"), parseQueueName(`root/${at}`)]) {
        expect(await listDirectory(paged, directory)).toEqual(expected(queues, directory));
        expect(await roleOf(paged, directory)).toBe(expected(queues, directory)?.role);
      }
    }),
    { numRuns: 200 },
  );
});

test("all that lies under a child is passed over, not read", async () => {
  for (let index = 0; index < 300; index += 1) await backend.createQueue(parseQueueName(`many/${index}`));
  for (const name of ["a", "z"]) await backend.createQueue(parseQueueName(name));
  const { paged, pages } = smallPages(2);
  expect(await listDirectory(paged, "")).toEqual({
    role: "directory",
    children: [
      ["a", "queue"],
      ["many", "directory"],
      ["z", "queue"],
    ],
  });
  expect(pages.count).toBeLessThanOrEqual(3);
});

function expected(queues: readonly QueueName[], directory: QueueName): Awaited<ReturnType<typeof listDirectory>> {
  const under = queues.filter((queue) => queue.startsWith(`${directory}/`)).map((queue) => queue.slice(directory.length + 1).split("/"));
  const isQueue = queues.includes(directory);
  if (!isQueue && under.length === 0) return undefined;
  const children = [...new Set(under.map(([first]) => first as string))].sort(compareNames);
  return {
    role: isQueue ? "queue" : "directory",
    children: children.map(
      (child) => [child, under.some((rest) => rest.length === 1 && rest[0] === child) ? "queue" : "directory"] as const,
    ),
  };
}
