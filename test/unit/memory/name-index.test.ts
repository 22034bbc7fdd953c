import fc from "fast-check";
import { expect, it } from "vitest";
import { NameIndex } from "../../../src/backend/memory/name-index.ts";
import { compareNames, isWithin, type QueueName } from "../../../src/core/names.ts";

/** Names of few letters, so that one often begins like another; the letters stand around "/" in the order of bytes. */
const component = fc.string({ unit: fc.constantFrom("a", "-", "0", "\ud83d\ude00", "\ufffd"), minLength: 1, maxLength: 2 });
const names = fc.array(component, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/") as QueueName);

it("lists the names at and under a path after a text, in order", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(names),
      fc.array(names),
      fc.oneof(names, fc.constant("")),
      fc.oneof(names, fc.string()),
      fc.nat(5),
      (all, gone, path, after, atMost) => {
        const index = new NameIndex();
        for (const name of all) index.add(name);
        const removed = new Set(gone.filter((name) => all.includes(name)));
        for (const name of removed) index.delete(name);
        const expected = all
          .filter((name) => !removed.has(name) && (path === "" || isWithin(name, path)) && (after === "" || compareNames(name, after) > 0))
          .toSorted(compareNames);
        expect(index.within(path, after)).toEqual(expected);
        expect(index.within(path, after, atMost)).toEqual(expected.slice(0, atMost));
      },
    ),
    { numRuns: 1_000 },
  );
});
