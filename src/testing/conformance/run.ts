/** Runs conformance cases on a harness. */

import assert from "node:assert/strict";
import type { Backend } from "../../backend/contract.ts";
import type { ConformanceCase, ConformanceHarness } from "./case.ts";
import { everyListed, everyMessage } from "./steps.ts";

/** Whether the harness lacks something that the case needs. */
export function isSkipped(one: ConformanceCase, harness: ConformanceHarness): boolean {
  return (one.needs ?? []).some((capability) => !harness.capabilities.includes(capability));
}

/** Title of a case: its section and its name. */
export function caseTitle(one: ConformanceCase): string {
  return `${one.section}: ${one.name}`;
}

/** Titles of the cases that this harness skips, for a test that pins the list. */
export function skippedTitles(cases: readonly ConformanceCase[], harness: ConformanceHarness): string[] {
  return cases.filter((one) => isSkipped(one, harness)).map(caseTitle);
}

/**
 * Runs one case on a store of its own. After it, the store must still be sound: `inspect` finds no error, and the counts of every queue
 * equal what it lists. All clients are closed, and the store removed, whatever happened.
 */
export async function runCase(one: ConformanceCase, harness: ConformanceHarness): Promise<void> {
  const store = await harness.createStore();
  const clients: Backend[] = [];
  const open = async (): Promise<Backend> => {
    const client = await store.open(one.options ?? {});
    clients.push(client);
    return client;
  };
  try {
    await one.run({
      backend: await open(),
      open,
      passTime: (ms) => store.passTime(ms),
      stepWall: (ms) => {
        assert.ok(store.stepWall, "the case needs the capability wall-clock-steps");
        store.stepWall(ms);
      },
      spanMs: harness.spanMs,
    });
    await assertSound(await open());
  } finally {
    for (const client of clients) await client.close();
    await store.destroy();
  }
}

/** Fails unless the store's own inspection is content and every queue counts what it lists. Nothing may change it meanwhile. */
export async function assertSound(backend: Backend): Promise<void> {
  const errors = (await backend.inspect()).filter((finding) => finding.severity === "error");
  assert.deepEqual(errors, [], "inspect() finds no error");
  for (const queue of await everyListed((after) => backend.listQueues(after === undefined ? {} : { after }))) {
    const listed = await everyMessage(backend, queue);
    const counted = {
      pending: listed.filter((message) => message.state === "pending").length,
      processing: listed.filter((message) => message.state === "processing").length,
    };
    assert.deepEqual(await backend.status(queue), counted, `status and messages of ${queue} agree`);
  }
}

/** What {@link registerConformance} needs of a test runner; vitest, node:test, jest and mocha have it. */
export interface TestRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
  /** Registers a test that is shown as skipped. */
  skip(name: string): void;
}

/** Registers every case with a test runner, grouped by section. */
export function registerConformance(cases: readonly ConformanceCase[], harness: ConformanceHarness, runner: TestRunner): void {
  for (const name of new Set(cases.map((one) => one.section))) {
    runner.describe(`${harness.name}: ${name}`, () => {
      for (const one of cases.filter((candidate) => candidate.section === name)) {
        if (isSkipped(one, harness)) runner.skip(`${one.name} (needs ${one.needs?.join(", ")})`);
        else runner.it(one.name, () => runCase(one, harness));
      }
    });
  }
}
