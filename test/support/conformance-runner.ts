/** Hands the conformance cases to vitest. */

import { describe, it } from "vitest";
import type { TestRunner } from "../../src/testing/index.ts";

/**
 * A case that a harness cannot run is shown as skipped; which these are is pinned beside the call, and the linter refuses every other
 * way to skip a test.
 */
export const vitestRunner: TestRunner = {
  describe: (name, body) => void describe(name, body),
  it: (name, body) => void it(name, body),
  skip: (name) => void it(name, (context) => context.skip()),
};
