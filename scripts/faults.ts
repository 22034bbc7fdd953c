/**
 * Runs clients that are killed, stopped and cut off, on a store that is too, and checks every answer they got against what QueueFS promises:
 * `npm run faults -- --backend sqlite|redis|http --seconds N --seed N --clients N`, two minutes on SQLite unless told otherwise. Exits 1 when
 * anything was not as it must be. `--keep FOLDER` keeps the histories that show a violation, `--check FILE` checks one of them again.
 */
import { parseArgs } from "node:util";
import { describeReport } from "../test/faults/proof/describe.ts";
import { checkKept } from "../test/faults/proof/kept-history.ts";
import { prove } from "../test/faults/proof/runner.ts";

const { values } = parseArgs({
  options: {
    backend: { type: "string", default: "sqlite" },
    seconds: { type: "string", default: "120" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
    clients: { type: "string", default: "4" },
    "epoch-seconds": { type: "string", default: "30" },
    keep: { type: "string" },
    check: { type: "string" },
  },
});
if (values.check !== undefined) {
  const found = describeReport(checkKept(values.check));
  process.stdout.write(found === "" ? "no violation\n" : `${found}\n`);
  process.exit(found === "" ? 0 : 1);
}
const { backend } = values;
const [seconds, seed, clients, epochSeconds] = [values.seconds, values.seed, values.clients, values["epoch-seconds"]].map(Number) as [
  number,
  number,
  number,
  number,
];
const isSound = seconds > 0 && Number.isInteger(seed) && Number.isInteger(clients) && clients > 0 && epochSeconds > 0;
if ((backend !== "sqlite" && backend !== "redis" && backend !== "http") || !isSound) {
  process.stderr.write(
    "usage: npm run faults -- [--backend sqlite|redis|http] [--seconds N] [--seed N] [--clients N] [--epoch-seconds N]\n",
  );
  process.exit(2);
}
process.stdout.write(`faults on ${backend} for ${seconds} s, seed ${seed}\n`);
const report = await prove({
  backend,
  seconds,
  seed,
  clients,
  epochSeconds,
  ...(values.keep === undefined ? {} : { keepFolder: values.keep }),
  onProgress: (line) => void process.stdout.write(`${line}\n`),
});
const { violations, ...figures } = report;
const found = describeReport({ violations });
process.stdout.write(
  `${JSON.stringify({ ...figures, violations: violations.map(({ property, text }) => `${property}: ${text}`) }, undefined, 2)}\n`,
);
if (found !== "") process.stdout.write(`${found}\n`);
process.exitCode = violations.length === 0 && report.troubles.length === 0 ? 0 : 1;
