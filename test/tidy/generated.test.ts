/** What is written by a script is fresh: generated modules and the tables of the documentation. */

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

it.each(["generate", "docs"])("npm run %s has nothing to write", (script) => {
  const run = spawnSync("npm", ["run", "--silent", script, "--", "--check"], { cwd: root, encoding: "utf8" });
  expect({ status: run.status, output: run.stdout + run.stderr }).toEqual({ status: 0, output: "" });
});
