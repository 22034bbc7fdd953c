/** The checks are meant for long histories: their work must grow about as the number of operations does. */

import { expect, it } from "vitest";
import { check } from "../../faults/proof/check/check.ts";
import { STRICT_PROMISES } from "../../faults/proof/check/promises.ts";
import type { Operation } from "../../faults/proof/operation.ts";
import { ack, dequeue, enqueue, status } from "./script.ts";

/** A legal history of several clients that overlap: each message is enqueued, counted, delivered, and forwarded or acked. */
function history(messages: number): Operation[] {
  const operations: Operation[] = [];
  for (let index = 0; index < messages; index += 1) {
    const at = index * 2;
    const [queue, other] = index % 2 === 0 ? ["a", "b"] : ["b", "a"];
    const forward = [{ queue: `${other}-done`, messages: [{ value: `f${index}` }] }];
    operations.push(enqueue([at, at + 3], queue, `v${index}`));
    operations.push(status([at + 3.2, at + 3.4], { a: [1 - (index % 2), 0], b: [index % 2, 0] }));
    operations.push(dequeue([at + 3.5, at + 3.9], queue, [`v${index}`]));
    operations.push(ack([at + 3.95, at + 3.99], queue, `v${index}/1`, forward));
    operations.push(dequeue([at + 4, at + 4.5], `${other}-done`, [`f${index}`]));
    operations.push(ack([at + 4.6, at + 4.8], `${other}-done`, `f${index}/1`));
  }
  return operations;
}

it("thousands of operations are checked, and one wrong among them is found", () => {
  const operations = history(4_000);
  const legal = check({ operations, faults: [], drained: true }, STRICT_PROMISES);
  expect(legal.violations).toEqual([]);
  expect(legal.tallies.C3.checks).toBe(4_000);
  const wrong = [...operations, status([4_001.2, 4_001.3], { a: [5, 0] })];
  const report = check({ operations: wrong, faults: [], drained: true }, STRICT_PROMISES);
  expect(report.violations.map(({ property }) => property)).toEqual(["S7"]);
});
