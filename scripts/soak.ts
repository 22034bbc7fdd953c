/**
 * Runs workers that are killed at random under mixed load: `npm run soak -- --backend sqlite|redis --seconds N --seed N`, ten minutes on SQLite
 * unless told otherwise. Exits 1 when anything was not as it must be.
 */
import { parseArgs } from "node:util";
import { soak } from "../test/soak/soak.ts";

const { values } = parseArgs({
  options: {
    backend: { type: "string", default: "sqlite" },
    seconds: { type: "string", default: "600" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
  },
});
const { backend } = values;
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
if ((backend !== "sqlite" && backend !== "redis") || !(seconds > 0) || !Number.isInteger(seed)) {
  process.stderr.write("usage: npm run soak -- [--backend sqlite|redis] [--seconds N] [--seed N]\n");
  process.exit(2);
}
process.stdout.write(`soak on ${backend} for ${seconds} s, seed ${seed}\n`);
const report = await soak({ backend, seconds, seed, onProgress: (line) => void process.stdout.write(`${line}\n`) });
process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
process.exitCode = report.faults.length === 0 ? 0 : 1;
