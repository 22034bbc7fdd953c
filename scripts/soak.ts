/**
 * `npm run soak`: ten minutes of mixed load with workers killed at random, on SQLite and then on Redis.
 * Options: `--backend sqlite|redis` (default both), `--seconds N` for each (default 600), `--seed N` (default: drawn and printed).
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { backend: { type: "string" }, seconds: { type: "string", default: "600" }, seed: { type: "string" } },
});
const numbers = [values.seconds, values.seed ?? "0"].map(Number);
if (
  (values.backend !== undefined && !["sqlite", "redis"].includes(values.backend)) ||
  !numbers.every((number) => Number.isInteger(number))
) {
  console.error("usage: npm run soak -- [--backend sqlite|redis] [--seconds N] [--seed N]");
  process.exit(2);
}
const only = values.backend === undefined ? [] : ["--testNamePattern", values.backend];
const { status } = spawnSync("npx", ["vitest", "run", "test/faults/soak.test.ts", ...only], {
  stdio: "inherit",
  env: { ...process.env, QUEUEFS_SOAK_SECONDS: values.seconds, ...(values.seed === undefined ? {} : { QUEUEFS_SEED: values.seed }) },
});
process.exitCode = status ?? 1;
